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
import { cacheName } from "./cache.js";
import type { EngineOptions, Notice } from "./engine.js";
import { messageOf, WickError } from "./errors.js";
import { ENGINE_WORKER } from "./engine_worker.js";
import { isNode, makeWorker, workerObstacle } from "./files.js";
import { findGpu } from "./find_gpu.js";
import { Leaks } from "./leaks.js";
import { Model } from "./model.js";
import { checked, GPU, LOAD, OPEN, PREFLIGHT, SESSION, VERIFY } from "./options.js";
import { LocalPort, WorkerPort } from "./port.js";
import type { Port } from "./port.js";
import type { ModelSource } from "./source.js";
import { askToPersist } from "./storage.js";
import { TensorMaker } from "./tensor_maker.js";
import { ThreadWorkers } from "./thread_workers.js";
import type {
  Capabilities, DeviceStats, KernelCheck, KernelStats, OpenOptions, Preflight, Progress,
  SessionOptions, VerifyOptions,
} from "./types.js";

export { CancelledError, DeviceLostError, OutOfMemoryError, WickError } from "./errors.js";
export type { ErrorCode } from "./errors.js";
export type * from "./types.js";
export { Generation, Session } from "./session.js";
export type { CallOptions } from "./session.js";
export { Model } from "./model.js";
export { Tensor } from "./tensor.js";
export { TensorMaker } from "./tensor_maker.js";
export type { Dims } from "./tensor.js";
export { Kernel } from "./kernel.js";
export type { KernelSize } from "./kernel.js";
export { ModelCache } from "./cache.js";
export type { CacheEntry } from "./cache.js";
export type { FileSource, ModelSource } from "./source.js";

declare global {
  // Names that projects without the types of WebGPU know, too; elsewhere this adds nothing.
  interface GPU {}
  interface GPUAdapter {}
}

export interface LoadOptions {
  /** Called often; `download` and `load` alternate where a file is loaded as it comes. */
  onProgress?: (progress: Progress) => void;
  /** Gives the loading up; what was downloaded stays in the cache. */
  signal?: AbortSignal;
  /** Keeps what comes from URLs, and goes on with what is there (default); `read`: the latter. */
  cache?: boolean | "read";
  /** Of the file, or of each file of a split model, in hexadecimal digits: none else is loaded. */
  sha256?: string | readonly string[];
  /** A session to come: room is left for it, and its kernels are compiled meanwhile. */
  session?: SessionOptions;
}

/** Options that are not the page's own. */
function engineOptions(options: OpenOptions, isWorker: boolean): EngineOptions {
  const { worker: _, onLog: __, onDeviceLost: ___, baseUrl: ____, gpu: _____, debug: ______,
          gpuOptions = {}, ...given } = options;
  return { ...given, gpuOptions: checked(GPU, gpuOptions), isWorker };
}

/** The folder of the package's files, where the caller says it. */
function folderOf({ baseUrl }: OpenOptions): string | undefined {
  if (baseUrl === undefined) return undefined;
  try {
    const url = new URL(baseUrl, globalThis.location?.href);
    if (!url.pathname.endsWith("/")) url.pathname += "/";
    return url.href;
  } catch (cause) {
    throw new WickError("ARGUMENT", `the option 'baseUrl' is no address: ${baseUrl}`, { cause });
  }
}

/** Callers are told when the module has returned: they may call it, and throw. */
function makeNotify(options: OpenOptions): (notice: Notice) => void {
  return (notice) => queueMicrotask(() => {
    if (notice.kind === "log") options.onLog?.(notice.level, notice.message);
    else options.onDeviceLost?.(notice.message);
  });
}

async function openHere(baseUrl: string | undefined, options: EngineOptions,
                        gpu: GPU | undefined, notify: (notice: Notice) => void): Promise<Port> {
  const { Engine } = await import("./engine.js");
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
  let worker: Worker;
  try {
    worker = makeWorker(baseUrl, ENGINE_WORKER);
  } catch (cause) { // of another origin, or not allowed by the page's policy
    throw new WickError("IO", `the worker does not start: ${messageOf(cause)}`, { cause });
  }
  return WorkerPort.open(worker, options, baseUrl, notify);
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
    const given = engineOptions(wanted, isWorker);
    if (isWorker && wanted.gpu)
      throw new WickError("ARGUMENT", "the option 'gpu' cannot go to a worker: set worker: false");
    const port = isWorker ? await openWorker(baseUrl, given, notify)
      : await openHere(baseUrl, given, await findGpu(wanted), notify);
    const leaks = wanted.debug
      ? new Leaks((message) => wanted.onLog?.("warning", message)) : undefined;
    return new Wick(port, await port.call("capabilities", []), leaks);
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

  /** Reads a model's header alone and tells whether it fits, and with which context. */
  async preflight(source: ModelSource, options: SessionOptions & { signal?: AbortSignal } = {}):
  Promise<Preflight> {
    const { signal, ...rest } = checked(PREFLIGHT, options);
    return this.#port.call("preflight", [plainSource(source), rest], { signal });
  }

  /** Loads a model; its bytes stream to the device in pieces. */
  async load(source: ModelSource, options: LoadOptions = {}): Promise<Model> {
    const { onProgress, signal, session = {}, ...given } = checked(LOAD, options);
    const plain = plainSource(source);
    const isStored = given.cache !== false && given.cache !== "read";
    if (isStored && typeof [plain].flat()[0] === "string") askToPersist();
    const { id, info } = await this.#port.call("load", [plain, given, checked(SESSION, session)],
                                               { signal, onProgress });
    return new Model(this.#port, id, info, this.#leaks);
  }

  /**
   * Proves on this very machine that its kernels are right: random operations against plain loops
   * on the CPU. A WebGPU device does not take one that is wrong any more. onCheck is called behind
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
      await this.#port.call("endVerification", [id]);
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

/** Addresses as absolute texts: a worker has another base, and no URL passes to it. */
function plainSource(source: ModelSource): ModelSource {
  const absolute = (url: string | URL) =>
    globalThis.location === undefined ? String(url) : cacheName(url);
  if (typeof source === "string" || source instanceof URL) return absolute(source);
  if (Array.isArray(source))
    return source.map((part: string | URL | Blob) =>
      typeof part === "string" || part instanceof URL ? absolute(part) : part) as string[] | Blob[];
  const { cached } = (source ?? {}) as { cached?: string | URL };
  return cached === undefined ? source : { cached: absolute(cached) };
}
