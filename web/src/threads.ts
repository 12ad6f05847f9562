/**
 * The module with threads: whether it can run here, its shared memory, and the threads that workers
 * serve (src/sys/wasm/thread_atomics.c says how). They are all started before the module computes
 * anything: an engine that waits does not hear of them.
 */
import { makeError, messageOf } from "./errors.js";
import { importInNode, isNode, loadModule, workerObstacle } from "./files.js";
import type { ModuleChoice } from "./files.js";
import type { ThreadHost, ThreadStart } from "./thread_workers.js";

/** More hardly help: memory is then what limits. */
const MAX_THREADS = 16;
/** Pages of 64 KiB. The first ones are more than the module's data and stack need. */
const FIRST_PAGES = 64, MAX_PAGES = 65536, LEAST_PAGES = 4096;
/** Of a worker, with its wk_thread at the low end. */
const STACK_BYTES = 262144;
/** How long the engine waits for workers before it looks whether they still live. */
const WAIT_LIMIT_NS = 1e9;
/** wick_log_level. */
const INFO = 1, WARNING = 2;
/** A module of one function over shared memory: i32.atomic.load of address 0, dropped. */
const PROBE = new Uint8Array([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 5, 4, 1, 3, 1, 1,
  10, 11, 1, 9, 0, 0x41, 0, 0xfe, 0x10, 2, 0, 0x1a, 0x0b,
]);

export interface ThreadsOptions extends ModuleChoice {
  /** With the engine's own; undefined or 0: one for each processor, where the CPU computes. */
  threads: number | undefined;
  isOnGpu: boolean;
  /** The engine has its thread to itself: it is in a worker of its own, or in Node. */
  mayWait: boolean;
  threadHost: ThreadHost;
  log(level: number, message: string): void;
}

/** Why threads cannot be had; empty: they can. */
function findObstacle(mayWait: boolean): string {
  if (!mayWait) return `the engine has no worker of its own${workerObstacle()}`;
  const { crossOriginIsolated } = globalThis as { crossOriginIsolated?: boolean };
  if (!isNode() && !crossOriginIsolated)
    return "the page is not cross-origin isolated (by the headers COOP and COEP)";
  const hasThem = typeof SharedArrayBuffer !== "undefined" && WebAssembly.validate(PROBE);
  return hasThem ? "" : "this WebAssembly has no shared memory";
}

async function countProcessors(): Promise<number> {
  if (!isNode()) return navigator.hardwareConcurrency;
  const { availableParallelism } =
    await importInNode<{ availableParallelism(): number }>("node:os");
  return availableParallelism();
}

/** As much as this place reserves addresses for. */
function makeMemory(): WebAssembly.Memory {
  for (let maximum = MAX_PAGES; ; maximum /= 2) {
    try {
      return new WebAssembly.Memory({ initial: FIRST_PAGES, maximum, shared: true });
    } catch (reason) {
      if (maximum <= LEAST_PAGES) throw reason;
    }
  }
}

export class Threads {
  readonly module: WebAssembly.Module;
  readonly #memory: WebAssembly.Memory;
  readonly #nWorkers: number;
  readonly #options: ThreadsOptions;
  /** Where the wk_threads of those that started are. */
  readonly #places: number[] = [];
  readonly #free: number[] = [];

  /** Loads the module where threads are wanted and possible; says in the log where only wanted. */
  static async prepare(options: ThreadsOptions): Promise<Threads | undefined> {
    const { threads, isOnGpu, mayWait, log } = options;
    const wanted = Math.min(threads || (isOnGpu ? 1 : await countProcessors()), MAX_THREADS);
    if (!(wanted > 1)) return undefined;
    try {
      const obstacle = findObstacle(mayWait);
      if (obstacle !== "") throw new Error(obstacle);
      const module = await loadModule(options, "threads");
      return new Threads(module, makeMemory(), Math.ceil(wanted) - 1, options);
    } catch (reason) {
      log(threads ? WARNING : INFO, `the CPU computes with one thread: ${messageOf(reason)}`);
      return undefined;
    }
  }

  private constructor(module: WebAssembly.Module, memory: WebAssembly.Memory, nWorkers: number,
                      options: ThreadsOptions) {
    this.module = module;
    this.#memory = memory;
    this.#nWorkers = nWorkers;
    this.#options = options;
  }

  /** The module's imports of "env". */
  get environment(): { memory: WebAssembly.Memory } {
    return { memory: this.#memory };
  }

  /** The module's imports of "wick" for threads: see src/sys/wasm/host.h. */
  imports(): Record<string, (thread: number) => number | void> {
    return {
      threads_free: () => this.#free.length,
      thread_take: () => this.#free.pop() ?? 0,
      thread_return: (thread) => void this.#free.push(thread),
      wait_limit_ns: () => {
        if (this.#places.some((at) => Atomics.load(this.#words(at), 0) < 0))
          throw makeError("INTERNAL", "a thread has failed; open the engine again");
        return WAIT_LIMIT_NS;
      },
    };
  }

  #words(at: number): Int32Array {
    return new Int32Array(this.#memory.buffer, at, STACK_BYTES / 4);
  }

  /** Starts the workers on stacks that alloc gives; goes on without those that do not start. */
  async start(alloc: (size: number) => number): Promise<void> {
    const places = Array.from({ length: this.#nWorkers }, () => alloc(STACK_BYTES));
    const started = await Promise.allSettled(places.map((at) => this.#startOne(at)));
    const failed = started.filter((result) => result.status === "rejected");
    if (failed.length > 0)
      this.#options.log(WARNING, `${failed.length} of ${this.#nWorkers} workers for threads do not `
        + `start: ${messageOf(failed[0]!.reason)}`);
  }

  async #startOne(at: number): Promise<void> {
    this.#words(at).fill(0);
    const start: ThreadStart = {
      module: this.module, memory: this.#memory, thread: at, stackEnd: at + STACK_BYTES,
    };
    const { port1, port2 } = new MessageChannel();
    port1.postMessage(start);
    await this.#options.threadHost.start(port2).finally(() => port1.close());
    this.#places.push(at);
    this.#free.push(at);
  }
}
