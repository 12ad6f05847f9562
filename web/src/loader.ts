/** From sources of bytes to a model of the module, and what its header alone says. */
import type { ByteSource } from "./byte_source.js";
import type { CallContext } from "./engine.js";
import { WickError } from "./errors.js";
import type { ModelSource } from "./model_source.js";
import type { Module } from "./module.js";
import { MOST_BYTES } from "./promised_memory.js";
import { openSources } from "./source.js";
import type { SourceOptions } from "./source.js";
import type { DeviceInfo, Preflight, SessionOptions } from "./types.js";

export interface LoadingOptions extends SourceOptions {
  /** Also what has no room. */
  force?: boolean;
}

export class Loader {
  readonly #module: Module;
  readonly #device: number;
  /** Bytes that loads may count on that are not forced. */
  readonly #promised: number;
  /** What a poll writes. */
  readonly #progress: number;

  constructor(module: Module, device: number) {
    this.#module = module;
    this.#device = device;
    this.#promised = module.promised.bytes;
    this.#progress = module.alloc(16);
  }

  /** What a session of these options needs, by the header. */
  async preflight(options: SourceOptions & { signal: AbortSignal }, from: ModelSource,
                  sessions: SessionOptions): Promise<Preflight> {
    return this.#whileWanted(options.signal, (signal) =>
      this.#preflight({ ...options, signal }, from, sessions));
  }

  async #preflight(options: SourceOptions & { signal: AbortSignal }, from: ModelSource,
                   sessions: SessionOptions): Promise<Preflight> {
    const m = this.#module, { signal } = options;
    const given = { ...options, cache: "read", connections: 1 } as const;
    const sources = await this.#sources(from, given);
    const source = await this.#open(sources, signal);
    const file = await this.#finish("file", m.pointer("file_open", source), signal)
      .catch((reason: unknown) => { throw named(reason, sources); });
    try {
      const limit = this.#memoryLimit();
      return describeFit(m.record<Preflight>("file_predict", file, this.#device,
                                             JSON.stringify(sessions)), limit);
    } finally {
      m.call("file_close", file);
    }
  }

  /** The model's pointer. */
  async load(context: CallContext, from: ModelSource, options: LoadingOptions,
             sessions: SessionOptions): Promise<number> {
    return this.#whileWanted(context.signal, (signal) =>
      this.#load({ ...context, signal }, from, options, sessions));
  }

  async #load({ signal, progress }: CallContext, from: ModelSource,
              { force = false, ...options }: LoadingOptions,
              sessions: SessionOptions): Promise<number> {
    const m = this.#module;
    let isWarned = false; // a split model has several files
    const onWarning = (message: string): void => {
      if (!isWarned) m.warn(message);
      isWarned = true;
    };
    if (force) m.promised.bytes = MOST_BYTES; // the caller knows better
    const sources = await this.#sources(from,
                                        { ...options, signal, onProgress: progress, onWarning });
    const source = await this.#open(sources, signal);
    const loading = m.pointer("model_open", this.#device, source, JSON.stringify(sessions),
                              force ? 0 : this.#memoryLimit());
    return this.#finish("model", loading, signal, () => {
      const [done, total] = m.memory.doubles(this.#progress, 2) as unknown as [number, number];
      const isRead = total > 0 && done === total;
      progress({ phase: isRead ? "compile" : "load", done, total: total || undefined });
    }).catch((reason: unknown) => { throw named(reason, sources); });
  }

  /**
   * Work with a signal of its own, which the caller's signal and the engine's end abort, but only
   * until the work is done: a lost device reads the sources again later.
   */
  async #whileWanted<T>(outer: AbortSignal, work: (own: AbortSignal) => Promise<T>): Promise<T> {
    const { stopping } = this.#module;
    const own = new AbortController(), ending = new AbortController();
    for (const signal of [outer, stopping]) {
      const stop = (): void => own.abort(signal.reason);
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop, { signal: ending.signal });
    }
    try {
      return await work(own.signal);
    } catch (reason) {
      this.#module.checkStopped();
      throw reason;
    } finally {
      ending.abort();
    }
  }

  /**
   * Bytes that a model may take altogether, as if none had been forced before; Infinity for GPUs,
   * whose memory is not known.
   */
  #memoryLimit(): number {
    const { promised } = this.#module;
    const { backend, memoryAvailable } =
      this.#module.record<DeviceInfo>("device_info", this.#device);
    if (backend === "cpu")
      return Math.max(memoryAvailable - (promised.bytes - this.#promised), 1); // 0: no limit
    return promised.isShared ? this.#promised : Infinity;
  }

  /** Polls WHAT_poll, then takes the result of WHAT_finish, which also gives it up. */
  async #finish(what: "file" | "model" | "join", pointer: number, signal: AbortSignal,
                report: () => void = () => undefined): Promise<number> {
    const m = this.#module;
    const given = what === "model" ? [pointer, this.#progress] : [pointer];
    try {
      await m.finish(() => {
        const status = m.call(`${what}_poll`, ...given);
        report();
        return status;
      }, signal);
    } catch (reason) {
      m.call(`${what}_finish`, pointer);
      await m.closeSources();
      throw reason;
    }
    return m.pointer(`${what}_finish`, pointer);
  }

  /** Unless the engine is closed meanwhile. */
  async #sources(from: ModelSource, options: SourceOptions): Promise<ByteSource[]> {
    const sources = await openSources(from, options);
    try {
      this.#module.checkStopped();
    } catch (reason) {
      await Promise.all(sources.map((source) => source.close()));
      throw reason;
    }
    return sources;
  }

  /** A source of the module; several are the files of a split model. */
  async #open(sources: ByteSource[], signal: AbortSignal): Promise<number> {
    const made = sources.map((source) => this.#module.addSource(source));
    return made.length === 1 ? made[0]! : this.#join(made, sources.map(({ name }) => name), signal);
  }

  async #join(sources: number[], names: string[], signal: AbortSignal): Promise<number> {
    const m = this.#module;
    const texts = names.map((name) => m.put(new TextEncoder().encode(`${name}\0`)));
    const lists = [sources, texts].map((list) => m.put(bytesOf(list)));
    try {
      const joining = m.pointer("sources_join", lists[0]!, lists[1]!, sources.length);
      return await this.#finish("join", joining, signal);
    } finally {
      for (const at of [...lists, ...texts]) m.release(at);
    }
  }
}

/** What is wrong with a file, with its name; the core knows those of a split model. */
function named(reason: unknown, sources: ByteSource[]): unknown {
  const [{ name }] = sources as [ByteSource];
  const isFile = reason instanceof WickError && ["FORMAT", "UNSUPPORTED"].includes(reason.code);
  return !isFile || sources.length > 1 || reason.message.includes(name) ? reason
    : new WickError(reason.code, `${name}: ${reason.message}`, { cause: reason });
}

const bytesOf = (words: number[]): Uint8Array => new Uint8Array(Uint32Array.from(words).buffer);

const MIB = 2 ** 20;
const inMib = (bytes: number): string => `${Math.ceil(bytes / MIB)} MiB`;

/** Adds whether it fits, and a sentence with the numbers; limit: of all memory. */
function describeFit(p: Preflight, limit: number): Preflight {
  const needs = `the model needs ${inMib(p.totalBytes)} with a context of ${p.contextLength} `
    + "tokens";
  const onDevice = p.deviceLayers === p.layers;
  const available = Math.min(p.availableBytes || Infinity, limit);
  const availableBytes = available === Infinity ? 0 : available;
  const there = availableBytes === 0 ? "the device does not say what it has"
    : `the device has ${inMib(availableBytes)}`;
  const layers = onDevice ? "" : `; ${p.deviceLayers} of ${p.layers} layers have room there`;
  return { ...p, availableBytes, fits: onDevice && p.totalBytes <= available,
           reason: `${needs}, ${there}${layers}` };
}
