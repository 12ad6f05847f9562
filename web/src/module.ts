/**
 * The wasm module: loaded, its doors (web/glue) as functions, its imports, and the loop that polls
 * what the module has begun until it is done. Nothing in it ever blocks.
 */
import {
  CancelledError, checkSignal, closedError, codeOfStatus, makeError, statusOfCode, toWickError,
} from "./errors.js";
import type { WickError } from "./errors.js";
import { loadModule } from "./files.js";
import type { ModuleChoice } from "./files.js";
import { Gpus } from "./gpu.js";
import { Memory } from "./memory.js";
import type { ByteSource } from "./byte_source.js";
import type { PromisedMemory } from "./promised_memory.js";
import type { ThreadHost } from "./thread_workers.js";
import { Threads } from "./threads.js";
import type { BackendName } from "./types.js";

const PENDING = 1;
/** wick_log_level. */
const WARNING = 2;
/** Something else may have work meanwhile. */
const READ_WAIT_MS = 4;

export interface ModuleOptions extends ModuleChoice {
  backend: BackendName;
  gpu: GPU | undefined;
  isLowPower: boolean;
  /** That the CPU is to have; undefined: as it makes sense here. */
  threads: number | undefined;
  threadHost: ThreadHost;
  memory: PromisedMemory;
  /** Bytes of that which other modules have taken. */
  taken(): number;
  /** The engine has its thread to itself: it is in a worker of its own, or in Node. */
  mayWait: boolean;
  log(level: number, message: string): void;
  /** A GPU is gone. */
  lost(message: string): void;
}

interface OpenSource {
  source: ByteSource;
  controller: AbortController;
}

export class Module {
  readonly memory: Memory;
  readonly gpus: Gpus;
  /** Undefined: this is the module without. */
  readonly threads: Threads | undefined;
  readonly promised: PromisedMemory;
  /** Puts a warning in the log. */
  readonly warn: (message: string) => void;
  /** Computes the gradient of an operation of the page's own (web/glue/tensors/operation.c). */
  gradient: ((number: number, inputs: number, output: number, gradOfOutput: number,
              grads: number) => void) | undefined;
  readonly #doors: Record<string, (...given: number[]) => number>;
  readonly #sources = new Map<number, OpenSource>();
  /** Of the host's side, which a cache's entry is busy until. */
  readonly #closing = new Set<Promise<void>>();
  readonly #writers = new Map<number, (bytes: Uint8Array) => void>();
  readonly #finishing = new Set<Promise<number>>();
  readonly #stopping = new AbortController();
  #hasEnded = false;
  /** What a door has thrown: the module's memory is as it was in the middle of something. */
  #failure: WickError | undefined;
  #lastId = 0;
  #reading = 0;
  readonly #encoder = new TextEncoder();

  static async load(options: ModuleOptions): Promise<Module> {
    let made: Module | undefined;
    const memory = () => made!.memory;
    const gpus = new Gpus(options.gpu, memory, options.lost);
    const isOnGpu = await gpus.find(options.isLowPower).then((found) => options.backend !== "cpu"
      && found.adapter !== undefined && (!found.isSoftware || options.backend === "webgpu"));
    const threads = await Threads.prepare({ ...options, isOnGpu });
    const wick = {
      ...threads?.imports(),
      clock_ns: () => performance.now() * 1e6,
      entropy: () => {
        const words = crypto.getRandomValues(new Uint32Array(2));
        return words[0]! * 2 ** 20 + (words[1]! >>> 12);
      },
      memory_limit: () => Math.max(options.memory.bytes - options.taken(), 1),
      log: (level: number, at: number) => options.log(level, memory().text(at)),
      read: (id: number, handle: number, offset: number, size: number, to: number) =>
        void made!.#read(id, handle, offset, size, to),
      close: (id: number) => made!.#close(id),
      gradient: (...given: Parameters<NonNullable<Module["gradient"]>>) => made!.gradient?.(...given),
      write: (id: number, at: number, size: number) =>
        made!.#writers.get(id)?.(memory().bytes(at, size).slice()),
    };
    const imports = { wick, gpu: gpus.imports(), ...(threads && { env: threads.environment }) };
    const module = threads?.module ?? await loadModule(options, "simd");
    made = new Module(await WebAssembly.instantiate(module, imports), gpus, threads, options);
    await threads?.start((size) => made!.alloc(size));
    return made;
  }

  private constructor(instance: WebAssembly.Instance, gpus: Gpus, threads: Threads | undefined,
                      { memory, log }: ModuleOptions) {
    this.promised = memory;
    this.warn = (message) => log(WARNING, message);
    this.#doors = instance.exports as Record<string, (...given: number[]) => number>;
    this.#doors["_initialize"]!();
    this.memory = new Memory(instance.exports["memory"] as WebAssembly.Memory);
    this.gpus = gpus;
    this.threads = threads;
  }

  /** Calls a door; strings are passed as terminated UTF-8 for the time of the call. */
  call(door: string, ...given: (number | string)[]): number {
    if (this.#hasEnded) this.checkStopped();
    const texts: number[] = [];
    const values = given.map((value) => {
      if (typeof value === "number") return value;
      const at = this.put(this.#encoder.encode(`${value}\0`));
      texts.push(at);
      return at;
    });
    try {
      return this.#enter(door, values);
    } finally {
      for (const at of texts) this.release(at);
    }
  }

  hasDoor(door: string): boolean {
    return door in this.#doors;
  }

  /** Refuses what is in the modules of an option alone. */
  checkDoor(door: string, what: string, option: string): void {
    if (!this.hasDoor(door))
      throw makeError("UNSUPPORTED", `${what} need an engine opened with { ${option}: true }`);
  }

  /** It has trapped, and no door can be called any more. */
  get isBroken(): boolean {
    return this.#failure !== undefined;
  }

  #enter(door: string, values: number[]): number {
    if (this.#failure) throw this.#failure;
    try {
      return this.#doors[door]!(...values);
    } catch (cause) {
      this.#failure = makeError("INTERNAL", `the engine has failed (${String(cause)}) and cannot `
        + "go on: close it and open another one", { cause });
      throw this.#failure;
    }
  }

  /** A door that returns a status, or a number that is not negative. */
  checked(door: string, ...given: (number | string)[]): number {
    const result = this.call(door, ...given);
    if (result < 0) throw this.error(result);
    return result;
  }

  /** A door that returns a pointer, 0 where it has failed. */
  pointer(door: string, ...given: (number | string)[]): number {
    const result = this.call(door, ...given);
    if (result === 0) throw this.error();
    return result;
  }

  /** A door that returns the text of a JSON object. */
  record<T>(door: string, ...given: (number | string)[]): T {
    return JSON.parse(this.memory.text(this.pointer(door, ...given))) as T;
  }

  /** What the last call that failed left behind. */
  error(status = 0): WickError {
    const kept = this.call("error_status");
    const message = this.memory.text(this.call("error_text"));
    return makeError(codeOfStatus(kept !== 0 ? kept : status), message || "the call failed", {
      bytesRequested: this.call("error_requested"),
      bytesAvailable: this.call("error_available"),
    });
  }

  /** The contents of a tensor on a device, of `size` bytes, once all before is computed. */
  async readTensor(tensor: number, device: number, size: number,
                   signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    return this.finishReading(this.pointer("read_start", tensor), device, size, signal);
  }

  /** Of a reading that has been started. */
  async finishReading(reading: number, device: number, size: number,
                      signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    let at = 0;
    let isFinished = false;
    try {
      at = this.alloc(size);
      await this.finish(() => this.checked("read_poll", reading, device), signal);
      isFinished = true;
      this.checked("read_finish", reading, device, at, size);
      return this.memory.bytes(at, size).slice();
    } finally {
      if (!isFinished) this.call("read_finish", reading, device, 0, 0);
      if (at !== 0) this.release(at);
    }
  }

  /** Calls with where a copy of the bytes is, which is released then. */
  withBytes<T>(bytes: Uint8Array, call: (at: number, size: number) => T): T {
    const at = this.put(bytes);
    try {
      return call(at, bytes.length);
    } finally {
      this.release(at);
    }
  }

  /** Copies bytes into memory that is to be released. */
  put(bytes: Uint8Array): number {
    const at = this.alloc(bytes.length);
    this.memory.bytes(at, bytes.length).set(bytes);
    return at;
  }

  alloc(size: number): number {
    const at = size < 2 ** 32 ? this.#enter("alloc", [Math.max(size, 1)]) : 0;
    if (at !== 0) return at;
    throw makeError("OUT_OF_MEMORY", `the module has no memory for ${size} bytes`,
                    { bytesRequested: size });
  }

  release(at: number): void {
    if (!this.#failure) this.#enter("release", [at]);
  }

  /** Polls until it is not pending any more, and returns the last status. */
  async finish(poll: () => number, signal?: AbortSignal): Promise<number> {
    const finishing = this.#finish(poll, signal);
    this.#finishing.add(finishing);
    try {
      return await finishing;
    } finally {
      this.#finishing.delete(finishing);
    }
  }

  /** Gives up all that waits for something, now and from now on. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.gpus.stir();
    await Promise.allSettled(this.#finishing);
    await nextTask(); // those who waited clean up
  }

  /** Nothing can be called any more. */
  end(): void {
    this.#hasEnded = true;
    for (const id of [...this.#sources.keys()]) this.#close(id);
  }

  /** Aborted when all is given up. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Throws where all is given up. */
  checkStopped(): void {
    if (this.#hasEnded) throw closedError();
    if (this.stopping.aborted) throw new CancelledError("the engine was closed meanwhile");
  }

  async #finish(poll: () => number, signal: AbortSignal | undefined): Promise<number> {
    const wake = () => this.gpus.stir();
    signal?.addEventListener("abort", wake);
    try {
      for (;;) {
        checkSignal(signal);
        this.checkStopped();
        const status = poll();
        if (status !== PENDING) return status;
        await this.turn();
      }
    } finally {
      signal?.removeEventListener("abort", wake);
    }
  }

  /** Lets everything else that waits have its turn, and the GPU or a source get on. */
  turn(): Promise<void> {
    if (this.gpus.isBusy) return this.gpus.activity();
    if (this.#reading === 0) return nextTask();
    const soon = new Promise<void>((resolve) => setTimeout(resolve, READ_WAIT_MS));
    return Promise.race([this.gpus.activity(), soon]);
  }

  // --- Sources and writers ---

  /** A source of the module for a door that takes it over; the module closes it. */
  addSource(source: ByteSource): number {
    const id = ++this.#lastId;
    this.#sources.set(id, { source, controller: new AbortController() });
    try {
      return this.pointer("source_make", id, source.size ?? -1, source.isSequential ? 1 : 0);
    } catch (reason) {
      this.#close(id);
      throw reason;
    }
  }

  addWriter(write: (bytes: Uint8Array) => void): number {
    this.#writers.set(++this.#lastId, write);
    return this.#lastId;
  }

  removeWriter(id: number): void {
    this.#writers.delete(id);
  }

  async #read(id: number, handle: number, offset: number, size: number, to: number) {
    const { source, controller } = this.#sources.get(id)!;
    this.#reading++;
    try {
      const bytes = await source.read(offset, size, controller.signal);
      if (this.#failure || !this.#sources.has(id)) return;
      this.memory.bytes(to, bytes.length).set(bytes);
      this.#enter("source_answered", [handle, bytes.length, 0, 0, 0, 0]);
    } catch (reason) {
      if (this.#failure || !this.#sources.has(id)) return;
      const { code, message, bytesRequested, bytesAvailable } = toWickError(reason);
      this.call("source_answered", handle, 0, statusOfCode(code), message, bytesRequested ?? 0,
                bytesAvailable ?? 0);
    } finally {
      this.#reading--;
      this.gpus.stir();
    }
  }

  #close(id: number): void {
    const open = this.#sources.get(id);
    this.#sources.delete(id);
    if (open === undefined) return;
    open.controller.abort();
    const closing = open.source.close().catch(() => undefined)
      .finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** Waits until the sources that the module has closed are: others may delete their entries. */
  async closeSources(): Promise<void> {
    await Promise.all(this.#closing);
  }
}

/** A turn of the event loop: messages and timers come in between, at no wait. */
const nextTask: () => Promise<void> = (() => {
  const { setImmediate } = globalThis as { setImmediate?: (go: () => void) => void };
  if (setImmediate) return () => new Promise<void>((resolve) => setImmediate(resolve));
  const { port1, port2 } = new MessageChannel();
  const waiting: (() => void)[] = [];
  port1.onmessage = () => waiting.shift()?.();
  return () => new Promise<void>((resolve) => {
    waiting.push(resolve);
    port2.postMessage(0);
  });
})();
