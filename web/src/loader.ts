/** From sources of bytes to a model of the module, and what its header alone tells. */
import type { ByteSource } from "./byte_source.js";
import type { CallContext } from "./engine.js";
import type { Module } from "./module.js";
import { openSources } from "./source.js";
import type { ModelSource, SourceOptions } from "./source.js";
import type { Preflight, SessionOptions } from "./types.js";

export class Loader {
  readonly #module: Module;
  readonly #device: number;
  /** What a poll writes. */
  readonly #progress: number;

  constructor(module: Module, device: number) {
    this.#module = module;
    this.#device = device;
    this.#progress = module.alloc(16);
  }

  /** What a session of these options needs, by the header. */
  async preflight(signal: AbortSignal, from: ModelSource,
                  sessions: SessionOptions): Promise<Preflight> {
    const m = this.#module;
    const source = await this.#open(await this.#sources(from, { cache: "read", signal }), signal);
    const file = await this.#finish("file", m.pointer("file_open", source), signal);
    try {
      return describeFit(m.record<Preflight>("file_predict", file, this.#device,
                                             JSON.stringify(sessions)));
    } finally {
      m.call("file_close", file);
    }
  }

  /** The model's pointer. */
  async load({ signal, progress }: CallContext, from: ModelSource, options: SourceOptions,
             sessions: SessionOptions): Promise<number> {
    const m = this.#module;
    const sources = await this.#sources(from, { ...options, signal, onProgress: progress });
    const source = await this.#open(sources, signal);
    const loading = m.pointer("model_open", this.#device, source, JSON.stringify(sessions));
    return this.#finish("model", loading, signal, () => {
      const [done, total] = m.memory.doubles(this.#progress, 2) as unknown as [number, number];
      const isRead = total > 0 && done === total;
      progress({ phase: isRead ? "compile" : "load", done, total: total || undefined });
    });
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

const bytesOf = (words: number[]): Uint8Array => new Uint8Array(Uint32Array.from(words).buffer);

const MIB = 2 ** 20;
const inMib = (bytes: number): string => `${Math.ceil(bytes / MIB)} MiB`;

/** Adds whether it fits, and a sentence with the numbers. */
function describeFit(p: Preflight): Preflight {
  const needs = `the model needs ${inMib(p.totalBytes)} with a context of ${p.contextLength} `
    + "tokens";
  const onDevice = p.deviceLayers === p.layers;
  const hasRoom = p.availableBytes === 0 || p.totalBytes <= p.availableBytes;
  const there = p.availableBytes === 0 ? "the device does not say what it has"
    : `the device has ${inMib(p.availableBytes)}`;
  const layers = onDevice ? "" : `; ${p.deviceLayers} of ${p.layers} layers have room there`;
  return { ...p, fits: onDevice && hasRoom, reason: `${needs}, ${there}${layers}` };
}
