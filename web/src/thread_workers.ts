/**
 * The workers of threads, started where the engine was opened: in the page, for an engine in a
 * worker. A worker that starts another one may hang in Firefox (files.ts).
 */
import { messageOf } from "./errors.js";
import { importInNode, isNode, makeWorker, workerUrl } from "./files.js";
import { THREAD_WORKER } from "./thread_worker.js";

const START_MS = 10_000;

/** What a worker is told once. */
export interface ThreadStart {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  /** The wk_thread. The worker makes its first word negative when it fails. */
  thread: number;
  stackEnd: number;
}

/** What it answers: that it is ready, by an empty text, or why it is not or no longer. */
export type ThreadReply = string;

/** Who starts workers for an engine. */
export interface ThreadHost {
  /** Until it is ready; rejects with the reason why it is not. */
  start(start: ThreadStart): Promise<void>;
  /** Ends all, whatever they do. */
  end(): void;
}

/** A worker of a page or of Node. */
interface AnyWorker {
  postMessage(start: ThreadStart): void;
  terminate(): unknown;
  /** In Node: it does not keep the process alive. */
  unref?(): void;
}

interface NodeWorker extends AnyWorker {
  on(event: string, listener: (value: unknown) => void): void;
}

async function openWorker(baseUrl: string | undefined,
                          onReply: (reply: ThreadReply) => void): Promise<AnyWorker> {
  if (!isNode()) {
    const worker = makeWorker(baseUrl, THREAD_WORKER);
    worker.onmessage = ({ data }: MessageEvent<ThreadReply>) => onReply(data);
    worker.onerror = ({ message }) => onReply(message || "its script did not load");
    return worker;
  }
  const { Worker: Thread } =
    await importInNode<{ Worker: new (url: URL) => NodeWorker }>("node:worker_threads");
  const worker = new Thread(workerUrl(baseUrl, THREAD_WORKER));
  worker.on("message", (reply) => onReply(reply as ThreadReply));
  worker.on("error", (reason) => onReply(messageOf(reason)));
  return worker;
}

export class ThreadWorkers implements ThreadHost {
  readonly #baseUrl: string | undefined;
  readonly #workers = new Set<AnyWorker>();

  constructor(baseUrl: string | undefined) {
    this.#baseUrl = baseUrl;
  }

  async start(start: ThreadStart): Promise<void> {
    let settle!: (reply: ThreadReply) => void;
    const answer = new Promise<ThreadReply>((resolve) => (settle = resolve));
    const timer = setTimeout(() => settle("it does not answer"), START_MS);
    let worker: AnyWorker | undefined;
    try {
      worker = await openWorker(this.#baseUrl, settle);
      this.#workers.add(worker);
      worker.postMessage(start);
      const reply = await answer;
      if (reply !== "") throw new Error(reply);
      worker.unref?.();
    } catch (reason) {
      if (worker) this.#workers.delete(worker);
      worker?.terminate();
      throw reason;
    } finally {
      clearTimeout(timer);
    }
  }

  end(): void {
    for (const worker of this.#workers) worker.terminate();
    this.#workers.clear();
  }
}
