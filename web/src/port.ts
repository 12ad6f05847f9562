/** The way to an engine: in this thread, or in a worker behind messages. */
import {
  CancelledError, closedError, fromPlain, messageOf, toWickError, WickError,
} from "./errors.js";
import type { Engine, EngineOptions, Notice } from "./engine.js";
import type { CallArguments, CallName, CallResult, Reply, Request } from "./messages.js";
import { missingFile } from "./files.js";
import { type Carried, sendFetch, sendStream } from "./stream.js";
import { ThreadWorkers } from "./thread_workers.js";
import type { Progress } from "./types.js";

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

/** An engine in this thread. */
export class LocalPort implements Port {
  readonly #engine: Engine;
  readonly #threads: ThreadWorkers;
  #isClosed = false;

  constructor(engine: Engine, threads: ThreadWorkers) {
    this.#engine = engine;
    this.#threads = threads;
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
      return (await this.#engine.call(name, context, given)) as CallResult<K>;
    } catch (reason) {
      throw toWickError(reason);
    }
  }

  async close(): Promise<void> {
    try {
      await this.call("close", []);
    } finally {
      this.#isClosed = true;
      this.#threads.end();
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

  static open(worker: Worker, url: URL, options: EngineOptions, baseUrl: string | undefined,
              notify: (notice: Notice) => void): Promise<WorkerPort> {
    const port = new WorkerPort(worker, new ThreadWorkers(baseUrl));
    return new Promise((resolve, reject) => {
      const fail = (error: WickError) => {
        port.#end(error);
        reject(error);
      };
      // Without a message, the worker's script did not load.
      worker.onerror = ({ message }) => fail(message ? new WickError("INTERNAL",
        `the worker cannot run: ${message}`) : missingFile(url, "its script could not be fetched"));
      worker.onmessageerror = () => fail(new WickError("INTERNAL",
        "what the worker sent cannot be read; is there memory for it?"));
      worker.onmessage = ({ data }: MessageEvent<Reply>) => {
        if (data.kind === "opened") resolve(port);
        else if (data.kind === "failed") fail(fromPlain(data.error));
        else if (data.kind === "notice") notify(data.notice);
        else if (data.kind === "thread") void port.#startThread(data.id, data.port);
        else port.#settle(data);
      };
      port.#post({ kind: "open", options, baseUrl });
    });
  }

  private constructor(worker: Worker, threads: ThreadWorkers) {
    this.#worker = worker;
    this.#threads = threads;
  }

  async #startThread(id: number, threadPort: MessagePort): Promise<void> {
    if (this.#ended) return;
    const failure = await this.#threads.start(threadPort).then(() => undefined, messageOf);
    this.#post({ kind: "thread", id, failure });
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

/**
 * Streams and functions to fetch with become ports on their way to the worker, where server.ts
 * makes them what they were.
 */
function withPorts(given: unknown[]): { values: unknown[]; ports: MessagePort[] } {
  const ports: MessagePort[] = [];
  const carry = (port: MessagePort, isStream: boolean): Carried => {
    ports.push(port);
    return { port, isStream };
  };
  const values = given.map((value) =>
    value instanceof ReadableStream ? carry(sendStream(value as ReadableStream<Uint8Array>), true)
      : typeof value === "function" ? carry(sendFetch(value as typeof fetch), false) : value);
  return { values, ports };
}
