/**
 * libwick: tensors and language models on WebGPU and the CPU, in the browser and in Node.
 *
 * ```js
 * const wick = await Wick.open();
 * const model = await wick.load("model.gguf");
 * const session = await model.session();
 * for await (const { text } of session.generate("Once upon a time")) show(text);
 * ```
 */
/// <reference lib="esnext.disposable" preserve="true" />
import { Adapter } from "./adapter.js";
import { Api } from "./api.js";
import { ModelCache, pageUrl } from "./cache.js";
import type { EngineOptions, Notice } from "./engine.js";
import {
  CancelledError, DeviceLostError, messageOf, OutOfMemoryError, WickError,
} from "./errors.js";
import { ENGINE_WORKER } from "./engine_worker.js";
import { loadEngine } from "./engine_here.js";
import {
  isForeign, isNode, makeWorker, missingFile, workerObstacle, workerUrl,
} from "./files.js";
import { findGpu } from "./find_gpu.js";
import { Finetuning } from "./finetuning.js";
import { Kernel } from "./kernel.js";
import { Leaks } from "./leaks.js";
import { Model } from "./model.js";
import { Operation } from "./operation.js";
import { Optimizer } from "./optimizer.js";
import { plainSource, type ModelSource } from "./model_source.js";
import { checked, GPU, LOAD, OPEN, PREFLIGHT, SESSION, VERIFY } from "./options.js";
import { LocalPort, WorkerPort } from "./port.js";
import type { Port } from "./port.js";
import { promisedMemory } from "./promised_memory.js";
import { Generation, Session } from "./session.js";
import { askToPersist } from "./storage.js";
import { headerList } from "./stream.js";
import { Tape } from "./tape.js";
import { Tensor } from "./tensor.js";
import { TensorMaker } from "./tensor_maker.js";
import { ThreadWorkers } from "./thread_workers.js";
import type {
  Capabilities, DeviceStats, KernelCheck, KernelStats, OpenOptions, Preflight, Progress,
  SessionOptions, VerifyOptions,
} from "./types.js";

export { CancelledError, DeviceLostError, OutOfMemoryError, WickError };
export type { ErrorCode } from "./errors.js";
export type * from "./types.js";
export { Generation, Session };
export type { CallOptions } from "./session.js";
export type * from "./tensor_types.js";
export { Model, Tensor, TensorMaker };
export { Adapter, Api };
export type { AdapterUse } from "./adapter.js";
export { Finetuning, Operation, Optimizer, Tape };
export type { OperationOptions } from "./operation.js";
export type { Dims } from "./tensor_numbers.js";
export { Kernel };
export type { KernelSize } from "./kernel.js";
export { ModelCache };
export type { CacheEntry } from "./cache.js";
export type { FileSource, ModelSource } from "./model_source.js";

declare global {
  // Names that projects without the types of WebGPU know, too; elsewhere this adds nothing.
  interface GPU {}
  interface GPUAdapter {}
}

/** How addresses are fetched. */
export interface RequestOptions {
  /** Sent to the server of the model, as `{ Authorization: "Bearer ..." }`. */
  headers?: HeadersInit;
  /** In place of the browser's own; it is called in the page, also for an engine in a worker. */
  fetch?: typeof fetch;
  /** Milliseconds without a byte after which a connection counts as lost; default: 30000. */
  stallTimeout?: number;
}

export interface LoadOptions extends RequestOptions {
  /**
   * Called often; `download` and `load` alternate where a file is loaded as it comes. What it
   * throws goes to the console; `signal` gives the loading up.
   */
  onProgress?: (progress: Progress) => void;
  /** Gives the loading up; what was downloaded stays in the cache. */
  signal?: AbortSignal;
  /** Keeps what comes from URLs, and goes on with what is there (default); `read`: the latter. */
  cache?: boolean | "read";
  /** Of the file, or of each file of a split model, in hexadecimal digits: none else is loaded. */
  sha256?: string | readonly string[];
  /** A session to come: room is left for it, and its kernels are compiled meanwhile. */
  session?: SessionOptions;
  /** Tries also what has no room, as its header says; else that is an OutOfMemoryError at once. */
  force?: boolean;
  /** Most connections at once to fetch a large file, 1 to 16; default: 4. */
  connections?: number;
}

/** Options that are not the page's own. */
async function engineOptions(options: OpenOptions, isWorker: boolean): Promise<EngineOptions> {
  const { worker: _, onLog: __, onDeviceLost: ___, baseUrl: ____, gpu: _____, debug: ______,
          gpuOptions = {}, memoryLimit, ...given } = options;
  const memory = await promisedMemory(memoryLimit);
  return { ...given, gpuOptions: checked(GPU, gpuOptions), memory, isWorker };
}

/** Headers as they pass to a worker. */
function plainHeaders(headers: HeadersInit | undefined): [string, string][] {
  try {
    return headerList(headers);
  } catch (cause) {
    throw new WickError("VALUE", `the option 'headers' cannot be sent: ${messageOf(cause)}`,
                        { cause });
  }
}

/** The folder of the package's files, where the caller says it. */
function folderOf({ baseUrl }: OpenOptions): string | undefined {
  if (baseUrl === undefined) return undefined;
  try {
    const url = new URL(baseUrl, pageUrl());
    if (!url.pathname.endsWith("/")) url.pathname += "/";
    return url.href;
  } catch (cause) {
    throw new WickError("ARGUMENT", `the option 'baseUrl' is not an address: ${baseUrl}`,
                        { cause });
  }
}

/** A callback of the page's; what it throws ends nothing here, and goes to the console. */
function guarded<T extends unknown[]>(callback: ((...given: T) => unknown) | undefined) {
  return (...given: T): void => void (async () => callback?.(...given))().catch(console.error);
}

/** Callbacks run after the module has returned, because they may call it. */
function makeNotify(options: OpenOptions): (notice: Notice) => void {
  return (notice) => queueMicrotask(() => {
    if (notice.kind === "log") guarded(options.onLog)(notice.level, notice.message);
    else guarded(options.onDeviceLost)(notice.message);
  });
}

async function openHere(baseUrl: string | undefined, options: EngineOptions,
                        gpu: GPU | undefined, notify: (notice: Notice) => void): Promise<Port> {
  const Engine = await loadEngine().catch((cause: unknown) => {
    throw missingFile("libwick's engine", cause);
  });
  const threadHost = new ThreadWorkers(baseUrl);
  try {
    const engine = await Engine.open(options, { baseUrl, gpu, threadHost, notify });
    return new LocalPort(engine, threadHost);
  } catch (reason) {
    threadHost.end();
    throw reason;
  }
}

async function openWorker(baseUrl: string | undefined, options: EngineOptions,
                          notify: (notice: Notice) => void): Promise<Port> {
  const obstacle = workerObstacle();
  if (obstacle !== "")
    throw new WickError("UNSUPPORTED", `the engine gets no worker of its own${obstacle}`);
  const url = workerUrl(baseUrl, ENGINE_WORKER);
  try {
    return await WorkerPort.open(makeWorker(baseUrl, ENGINE_WORKER), url, options, baseUrl,
                                 notify);
  } catch (cause) { // it is not there, or not allowed by the page's policy
    throw cause instanceof WickError ? cause : missingFile(url, cause);
  }
}

/** An engine: one device, and the models and tensors on it. */
export class Wick extends TensorMaker {
  readonly #port: Port;
  readonly #leaks: Leaks | undefined;
  readonly #capabilities: Capabilities;
  #closing: Promise<void> | undefined;

  /** Opens an engine. Says in `capabilities` why WebGPU is not used where it is not. */
  static async open(options: OpenOptions = {}): Promise<Wick> {
    const wanted = checked(OPEN, options);
    const baseUrl = folderOf(wanted);
    const isWorker = wanted.worker
      ?? (!isNode() && typeof Worker !== "undefined" && workerObstacle() === "");
    const notify = makeNotify(wanted);
    const given = await engineOptions(wanted, isWorker);
    if (wanted.api && wanted.tensors)
      throw new WickError("ARGUMENT", "the module with tensors answers no APIs: leave out one of "
        + "the options 'api' and 'tensors'");
    if (isWorker && wanted.gpu)
      throw new WickError("ARGUMENT", "the option 'gpu' cannot go to a worker: set worker: false");
    const here = async () =>
      openHere(baseUrl, { ...given, isWorker: false }, await findGpu(wanted), notify);
    const port = !isWorker ? await here()
      : await openWorker(baseUrl, given, notify).catch((reason: WickError) => {
        // A policy may forbid the worker that an engine of another origin needs.
        if (wanted.worker || reason.code !== "IO" || !isForeign(baseUrl)) throw reason;
        guarded(wanted.onLog)("warning", "the engine runs in the page's own thread: a worker of "
          + "another origin needs a policy of worker-src blob: (in sandboxed frames data:) and its origin");
        return here();
      });
    const leaks = wanted.debug
      ? new Leaks((message) => guarded(wanted.onLog)("warning", message)) : undefined;
    try {
      return new Wick(port, await port.call("capabilities", []), leaks);
    } catch (reason) {
      await port.close().catch(() => undefined); // the first failure is the reported one
      throw reason;
    }
  }

  private constructor(port: Port, capabilities: Capabilities, leaks: Leaks | undefined) {
    super(port, leaks);
    this.#port = port;
    this.#leaks = leaks;
    this.#capabilities = capabilities;
  }

  /** What runs here, and why not something better. */
  capabilities(): Capabilities {
    return this.#capabilities;
  }

  /** What the device has done, and the memory it holds. */
  stats(): Promise<DeviceStats> {
    return this.#port.call("deviceStats", []);
  }

  /** Times of kernels, where the engine was opened with `profile`. */
  profile(): Promise<KernelStats[]> {
    return this.#port.call("profile", []);
  }

  /** Reads a model's header alone and reports whether it fits, and with which context. */
  async preflight(source: ModelSource,
                  options: SessionOptions & RequestOptions & { signal?: AbortSignal } = {}):
  Promise<Preflight> {
    const { signal, headers, fetch, stallTimeout, ...rest } = checked(PREFLIGHT, options);
    const request = { headers: plainHeaders(headers), ...(stallTimeout && { stallTimeout }) };
    return this.#port.call("preflight", [plainSource(source), request, rest, fetch], { signal });
  }

  /** Loads a model; its bytes stream to the device in pieces. */
  async load(source: ModelSource, options: LoadOptions = {}): Promise<Model> {
    const { onProgress, signal, session = {}, headers, fetch, ...rest } = checked(LOAD, options);
    const given = { ...rest, headers: plainHeaders(headers) };
    const plain = plainSource(source);
    const isStored = given.cache !== false && given.cache !== "read";
    if (isStored && typeof [plain].flat()[0] === "string") askToPersist();
    const { id, info } = await this.#port.call(
      "load", [plain, given, checked(SESSION, session), fetch],
      { signal, onProgress: onProgress && guarded(onProgress) });
    return new Model(this.#port, id, info, this.#leaks);
  }

  /**
   * Proves on this very machine that its kernels are right: random operations against plain loops
   * on the CPU. A WebGPU device does not take one that is wrong any more. onCheck is called after
   * each kernel.
   */
  async verify(options: VerifyOptions & {
    onCheck?: (check: KernelCheck) => void; signal?: AbortSignal;
  } = {}): Promise<KernelCheck[]> {
    const { onCheck, signal, ...given } = checked(VERIFY, options);
    const id = await this.#port.call("startVerification", [given]);
    const checks: KernelCheck[] = [];
    try {
      for (;;) {
        const check = await this.#port.call("nextCheck", [id], { signal });
        if (!check) return checks;
        checks.push(check);
        onCheck?.(check);
      }
    } finally {
      // Where the engine is gone, the call before has reported it.
      await this.#port.call("endVerification", [id]).catch(() => undefined);
    }
  }

  /** As if the driver had taken the GPU away; for tests. */
  loseDevice(): Promise<void> {
    return this.#port.call("loseDevice", []);
  }

  /** Closes it with all that it holds. */
  close(): Promise<void> {
    this.#leaks?.end();
    return (this.#closing ??= this.#port.close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

// Minifying shortens names, which consoles and debuggers show.
for (const [value, type] of Object.entries({
  Adapter, Api, CancelledError, DeviceLostError, Finetuning, Generation, Kernel, Model, ModelCache, Operation,
  Optimizer, OutOfMemoryError, Session, Tape, Tensor, TensorMaker, Wick, WickError,
})) Object.defineProperty(type, "name", { value });
