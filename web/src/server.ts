/** In the worker: runs what the page asks for, and asks it for workers of threads. */
import type { Engine } from "./engine.js";
import { toPlain } from "./errors.js";
import type { Reply, Request } from "./messages.js";
import { type Carried, receiveFetch, receiveStream } from "./stream.js";
import type { ThreadHost } from "./thread_workers.js";
import type { Progress } from "./types.js";

export type Send = (reply: Reply, transfer: Transferable[]) => void;

/** Has the page make the workers of threads. */
export class PageThreads implements ThreadHost {
  readonly #send: Send;
  readonly #starting: { resolve: () => void; reject: (reason: Error) => void }[] = [];

  constructor(send: Send) {
    this.#send = send;
  }

  start(port: MessagePort): Promise<void> {
    return new Promise((resolve, reject) => {
      const id = this.#starting.push({ resolve, reject }) - 1;
      this.#send({ kind: "thread", id, port }, [port]);
    });
  }

  handle({ id, failure }: Extract<Request, { kind: "thread" }>): void {
    const { resolve, reject } = this.#starting[id]!;
    if (failure === undefined) resolve();
    else reject(new Error(failure));
  }
}

/** Runs what the page calls. */
export class Server {
  readonly #engine: Engine;
  readonly #send: Send;
  readonly #running = new Map<number, AbortController>();

  constructor(engine: Engine, send: Send) {
    this.#engine = engine;
    this.#send = send;
  }

  async handle(request: Request): Promise<void> {
    if (request.kind === "cancel") this.#running.get(request.id)?.abort();
    if (request.kind !== "call") return;
    const { id, name, given } = request;
    const controller = new AbortController();
    this.#running.set(id, controller);
    const context = {
      signal: controller.signal,
      progress: (value: Progress) => this.#send({ kind: "progress", id, value }, []),
    };
    try {
      const value = await this.#engine.call(name, context, given.map(withCarried));
      this.#send({ kind: "result", id, value }, buffersOf(value));
    } catch (reason) {
      this.#send({ kind: "error", id, error: toPlain(reason) }, []);
    } finally {
      this.#running.delete(id);
    }
  }
}

/** What of a result, or of its members, can be handed over instead of copied. */
function buffersOf(value: unknown): Transferable[] {
  const isObject = typeof value === "object" && value !== null;
  const parts = isObject && !ArrayBuffer.isView(value) ? Object.values(value) : [value];
  return parts.flatMap((part: unknown) =>
    ArrayBuffer.isView(part) && part.buffer instanceof ArrayBuffer ? [part.buffer] : []);
}

function withCarried(value: unknown): unknown {
  const { port, isStream } = (value ?? {}) as Partial<Carried>;
  if (!(port instanceof MessagePort)) return value;
  return isStream ? receiveStream(port) : receiveFetch(port);
}
