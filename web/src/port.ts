/** The way to an engine: in this thread, or in a worker behind messages. */
import {
  CancelledError, closedError, fromPlain, messageOf, toPlain, toWickError, WickError,
} from "./errors.js";
import type { PlainError } from "./errors.js";
import type { CallContext, Engine, EngineOptions, Notice } from "./engine.js";
import { receiveStream, sendStream } from "./stream.js";
import { ThreadWorkers } from "./thread_workers.js";
import type { ThreadHost, ThreadReply, ThreadStart } from "./thread_workers.js";
import type { Progress } from "./types.js";

type Calls = {
  [K in keyof Engine as Engine[K] extends (context: CallContext, ...given: never[]) => unknown
    ? K : never]: Engine[K];
};
export type CallName = keyof Calls;
export type CallArguments<K extends CallName> =
  Calls[K] extends (context: CallContext, ...given: infer A) => unknown ? A : never;
export type CallResult<K extends CallName> =
  Calls[K] extends (...given: never[]) => infer R ? Awaited<R> : never;

export interface CallOptions {
  signal?: AbortSignal | undefined;
  onProgress?: ((value: Progress) => void) | undefined;
  /** Buffers of the arguments that are handed over. */
  transfer?: Transferable[];
}

/** Calls of the engine's methods, wherever it runs. */
export interface Port {
  call<K extends CallName>(name: K, given: CallArguments<K>,
                           options?: CallOptions): Promise<CallResult<K>>;
  close(): Promise<void>;
}

/** What the page sends to its worker. */
export type Request =
  | { kind: "open"; options: EngineOptions; baseUrl: string | undefined }
  | { kind: "call"; id: number; name: CallName; given: unknown[] }
  | { kind: "cancel"; id: number }
  /** Of the worker for a thread: how it has started. */
  | { kind: "thread"; id: number; reply: ThreadReply };

/** What the worker sends back. */
export type Reply =
  | { kind: "opened" }
  | { kind: "failed"; error: PlainError }
  | { kind: "notice"; notice: Notice }
  | { kind: "thread"; id: number; start: ThreadStart }
  | { kind: "progress"; id: number; value: Progress }
  | { kind: "result"; id: number; value: unknown }
  | { kind: "error"; id: number; error: PlainError };

type Method = (context: CallContext, ...given: unknown[]) => Promise<unknown>;

/** Calls a method of an engine by its name. */
function callEngine(engine: Engine, name: CallName, context: CallContext,
                           given: unknown[]): Promise<unknown> {
  return (engine[name] as unknown as Method).call(engine, context, ...given);
}

/** An engine in this thread. */
export class LocalPort implements Port {
  readonly #engine: Engine;
  #isClosed = false;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async call<K extends CallName>(name: K, given: CallArguments<K>,
                                 { signal, onProgress }: CallOptions = {}) {
    const context = {
      signal: signal ?? new AbortController().signal,
      // As from a worker: what it throws is the page's alone.
      progress: (value: Progress) => onProgress && queueMicrotask(() => onProgress(value)),
    };
    if (this.#isClosed) throw closedError();
    try {
      return (await callEngine(this.#engine, name, context, given)) as CallResult<K>;
    } catch (reason) {
      throw toWickError(reason);
    }
  }

  async close(): Promise<void> {
    try {
      await this.call("close", []);
    } finally {
      this.#isClosed = true;
    }
  }
}

interface Waiting {
  resolve(value: unknown): void;
  reject(reason: unknown): void;
  onProgress: ((value: Progress) => void) | undefined;
}

/** An engine in a worker. */
export class WorkerPort implements Port {
  readonly #worker: Worker;
  readonly #threads: ThreadWorkers;
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;
  #ended: WickError | undefined;

  static open(worker: Worker, options: EngineOptions, baseUrl: string | undefined,
              notify: (notice: Notice) => void): Promise<WorkerPort> {
    const port = new WorkerPort(worker, new ThreadWorkers(baseUrl));
    return new Promise((resolve, reject) => {
      const fail = (error: WickError) => {
        port.#end(error);
        reject(error);
      };
      worker.onerror = (event) => fail(new WickError("INTERNAL",
        `the worker cannot run: ${event.message || "its script is not where baseUrl says"}`));
      worker.onmessageerror = () => fail(new WickError("INTERNAL",
        "what the worker sent cannot be read; is there memory for it?"));
      worker.onmessage = ({ data }: MessageEvent<Reply>) => {
        if (data.kind === "opened") resolve(port);
        else if (data.kind === "failed") fail(fromPlain(data.error));
        else if (data.kind === "notice") notify(data.notice);
        else if (data.kind === "thread") void port.#startThread(data.id, data.start);
        else port.#settle(data);
      };
      port.#post({ kind: "open", options, baseUrl });
    });
  }

  private constructor(worker: Worker, threads: ThreadWorkers) {
    this.#worker = worker;
    this.#threads = threads;
  }

  async #startThread(id: number, start: ThreadStart): Promise<void> {
    if (this.#ended) return;
    const reply = await this.#threads.start(start).then(() => "", messageOf);
    this.#post({ kind: "thread", id, reply });
  }

  #settle(reply: Extract<Reply, { kind: "progress" | "result" | "error" }>): void {
    const waiting = this.#waiting.get(reply.id);
    if (reply.kind === "progress") {
      waiting?.onProgress?.(reply.value);
      return;
    }
    this.#waiting.delete(reply.id);
    if (reply.kind === "result") waiting?.resolve(reply.value);
    else waiting?.reject(fromPlain(reply.error));
  }

  #end(error: WickError): void {
    this.#ended = error;
    this.#worker.terminate();
    this.#threads.end();
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  call<K extends CallName>(name: K, given: CallArguments<K>,
                           { signal, onProgress, transfer = [] }: CallOptions = {}):
  Promise<CallResult<K>> {
    if (this.#ended) return Promise.reject(this.#ended);
    if (signal?.aborted) return Promise.reject(new CancelledError());
    const id = ++this.#last;
    const cancel = () => this.#post({ kind: "cancel", id });
    signal?.addEventListener("abort", cancel, { once: true });
    const result = new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, onProgress });
      try {
        const { values, ports } = withPorts(given);
        this.#post({ kind: "call", id, name, given: values }, [...ports, ...transfer]);
      } catch (reason) {
        this.#waiting.delete(id);
        reject(new WickError("ARGUMENT",
          `an argument cannot go to the worker: ${messageOf(reason)}`));
      }
    });
    return result.finally(() => signal?.removeEventListener("abort", cancel)) as
      Promise<CallResult<K>>;
  }

  #post(request: Request, transfer: Transferable[] = []): void {
    this.#worker.postMessage(request, transfer);
  }

  async close(): Promise<void> {
    if (this.#ended) return;
    try {
      await this.call("close", []);
    } finally {
      this.#end(closedError());
    }
  }
}

/** In the worker: has the page start the workers of threads, which it ends with the engine. */
export class PageThreads implements ThreadHost {
  readonly #send: (reply: Reply) => void;
  readonly #starting = new Map<number, (reply: ThreadReply) => void>();

  constructor(send: (reply: Reply) => void) {
    this.#send = send;
  }

  async start(start: ThreadStart): Promise<void> {
    const id = start.thread;
    const reply = await new Promise<ThreadReply>((resolve) => {
      this.#starting.set(id, resolve);
      this.#send({ kind: "thread", id, start });
    });
    if (reply !== "") throw new Error(reply);
  }

  handle({ id, reply }: Extract<Request, { kind: "thread" }>): void {
    this.#starting.get(id)?.(reply);
    this.#starting.delete(id);
  }

  end(): void {}
}

/** In the worker: runs what the page asks for. */
export class Server {
  readonly #engine: Engine;
  readonly #send: (reply: Reply, transfer: Transferable[]) => void;
  readonly #running = new Map<number, AbortController>();

  constructor(engine: Engine, send: (reply: Reply, transfer: Transferable[]) => void) {
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
      const value = await callEngine(this.#engine, name, context, given.map(withStream));
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

/** Streams become ports on their way to the worker, and streams again there. */
function withPorts(given: unknown[]): { values: unknown[]; ports: MessagePort[] } {
  const ports: MessagePort[] = [];
  const values = given.map((value) => {
    if (!(value instanceof ReadableStream)) return value;
    ports.push(sendStream(value as ReadableStream<Uint8Array>));
    return ports.at(-1);
  });
  return { values, ports };
}

const withStream = (value: unknown): unknown =>
  value instanceof MessagePort ? receiveStream(value) : value;
