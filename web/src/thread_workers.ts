/**
 * The workers of threads, made where the engine was opened: by the page, for an engine in a worker.
 * A worker that starts another one may hang in Firefox (files.ts). What they work on goes from the
 * engine to them through ports: a page would hold the memory until it collects garbage.
 */
import { closedError, messageOf } from "./errors.js";
import { importInNode, isNode, makeWorker, workerUrl } from "./files.js";
import { THREAD_WORKER } from "./thread_worker.js";

/** What a worker receives through its port. */
export interface ThreadStart {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  /** The wk_thread. The worker makes its first word negative when it fails. */
  thread: number;
  stackEnd: number;
}

/** What it answers to who made it: null, it is ready; or why it is not. */
export type ThreadReply = string | null;

/** Makes the workers of an engine, and ends them after it. */
export interface ThreadHost {
  /** Makes one that finds its ThreadStart in the port; until it is ready, or why it is not. */
  start(port: MessagePort): Promise<void>;
}

/** Seconds that a worker may take to start, without those in which its maker was busy. */
const START_SECONDS = 10;

/** A worker of a page or of Node. */
interface AnyWorker {
  postMessage(port: MessagePort, transfer: MessagePort[]): void;
  terminate(): unknown;
  /** In Node: it does not keep the process alive. */
  unref?(): void;
}

interface NodeWorker extends AnyWorker {
  on(event: string, listener: (value: unknown) => void): void;
}

async function makeAnyWorker(baseUrl: string | undefined,
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
  /** Answers for those who wait for a worker. */
  readonly #starting = new Set<(reply: ThreadReply) => void>();
  #hasEnded = false;

  constructor(baseUrl: string | undefined) {
    this.#baseUrl = baseUrl;
  }

  async start(port: MessagePort): Promise<void> {
    let settle!: (reply: ThreadReply) => void;
    const answer = new Promise<ThreadReply>((resolve) => (settle = resolve));
    this.#starting.add(settle);
    let seconds = 0;
    const clock = setInterval(() => {
      if (++seconds === START_SECONDS) settle("it does not answer");
    }, 1000);
    let worker: AnyWorker | undefined;
    try {
      worker = await makeAnyWorker(this.#baseUrl, settle);
      if (this.#hasEnded) throw closedError(); // meanwhile
      this.#workers.add(worker);
      worker.postMessage(port, [port]);
      const reply = await answer;
      if (reply !== null) throw new Error(reply);
      worker.unref?.();
    } catch (reason) {
      if (worker) this.#workers.delete(worker);
      worker?.terminate();
      throw reason;
    } finally {
      clearInterval(clock);
      this.#starting.delete(settle);
    }
  }

  /** Ends all, whatever they do; none starts any more. */
  end(): void {
    this.#hasEnded = true;
    for (const settle of this.#starting) settle(closedError().message);
    for (const worker of this.#workers) worker.terminate();
    this.#workers.clear();
  }
}
