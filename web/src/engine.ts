/**
 * The engine: everything that the module keeps, by numbers, as asynchronous calls with plain
 * values. It runs in a worker or in the page; wick.ts gives it the form that callers see.
 */
import { ModelCache } from "./cache.js";
import { isNode } from "./files.js";
import type { HttpOptions } from "./download.js";
import type { LoadingOptions } from "./loader.js";
import { type ChatRequest, Models } from "./models.js";
import { Module } from "./module.js";
import type { SessionEvent } from "./sessions.js";
import type { PromisedMemory } from "./promised_memory.js";
import type { ModelSource } from "./model_source.js";
import { Tensors } from "./tensors.js";
import type { Command, Contents } from "./tensors.js";
import type { ThreadHost } from "./thread_workers.js";
import { Verifier } from "./verifier.js";
import type {
  Capabilities, ChatMessage, ChatOptions, DeviceInfo, DeviceStats, EmbedOptions, GenerateOptions,
  KernelCheck, KernelOptions, KernelStats, LogLevel, OpenOptions, Progress, SessionOptions,
  SessionStats, TensorInfo, TokenizeOptions, VerifyOptions,
} from "./types.js";

const LOG_LEVELS: LogLevel[] = ["debug", "info", "warning"];
/** In the page's own thread a slice of work must leave time to draw. */
const PAGE_SLICE_US = 6000, WORKER_SLICE_US = 20000;

/** The caller's side of a call. */
export interface CallContext {
  signal: AbortSignal;
  progress(value: Progress): void;
}

/** News that no call asked for. */
export type Notice =
  { kind: "log"; level: LogLevel; message: string } | { kind: "lost"; message: string };

export type EngineOptions =
  Pick<OpenOptions, "backend" | "math" | "threads" | "gpuOptions" | "strict" | "verify" | "profile">
  & { isWorker: boolean; memory: PromisedMemory };

export interface EngineParts {
  /** Where the package's files lie; undefined: where they were built to. */
  baseUrl: string | undefined;
  gpu: GPU | undefined;
  threadHost: ThreadHost;
  notify(notice: Notice): void;
}

/** Functions are arguments of their own, see port.ts. */
const withFetch = <T extends object>(options: T, get: typeof fetch | undefined): T =>
  get === undefined ? options : { ...options, fetch: get };

type Method = (context: CallContext, ...given: unknown[]) => Promise<unknown>;

export class Engine {
  readonly #module: Module;
  readonly #device: number;
  readonly #isWorker: boolean;
  readonly #tensors: Tensors;
  readonly #verifier: Verifier;
  readonly #models: Models;

  static async open(options: EngineOptions, parts: EngineParts): Promise<Engine> {
    const { isWorker, gpuOptions, memory, ...given } = options;
    const { backend = "auto", math = "fast" } = given;
    const module = await Module.load({
      baseUrl: parts.baseUrl,
      backend,
      gpu: backend === "cpu" ? undefined : parts.gpu,
      threads: given.threads,
      threadHost: parts.threadHost,
      mayWait: isWorker || isNode(),
      memory,
      log: (level, message) => parts.notify({ kind: "log", level: LOG_LEVELS[level]!, message }),
      lost: (message) => parts.notify({ kind: "lost", message }),
    });
    const text = JSON.stringify({
      ...given, backend, math, ...gpuOptions,
      sliceMicroseconds: isWorker ? WORKER_SLICE_US : PAGE_SLICE_US,
    });
    const opening = module.pointer("device_open", text);
    await module.finish(() => module.call("device_poll", opening));
    return new Engine(module, module.pointer("device_finish", opening), isWorker);
  }

  private constructor(module: Module, device: number, isWorker: boolean) {
    this.#module = module;
    this.#device = device;
    this.#isWorker = isWorker;
    this.#tensors = new Tensors(module, device);
    this.#verifier = new Verifier(module, device);
    this.#models = new Models(module, device);
  }

  /** One of the calls below by its name, a CallName. */
  call(name: string, context: CallContext, given: unknown[]): Promise<unknown> {
    return (this as unknown as Record<string, Method>)[name]!(context, ...given);
  }

  /** Closes all that is open; what is under way, and every call from now on, fails. */
  async close(_: CallContext): Promise<void> {
    await this.#module.stop();
    try {
      if (this.#module.isBroken) return;
      await this.#tensors.close();
      this.#verifier.close();
      await this.#models.closeAll();
      this.#module.call("device_close", this.#device);
    } finally {
      this.#module.end();
    }
  }

  // --- The device ---

  async capabilities(_: CallContext): Promise<Capabilities> {
    const m = this.#module;
    return {
      version: m.memory.text(m.call("version")),
      device: m.record<DeviceInfo>("device_info", this.#device),
      ...m.record<Pick<Capabilities, "backends">>("backends"),
      module: this.#module.threads ? "threads" : "simd",
      isWorker: this.#isWorker,
      isCrossOriginIsolated: globalThis.crossOriginIsolated ?? false,
      cache: (await ModelCache.open()).kind,
    };
  }

  async deviceStats(_: CallContext): Promise<DeviceStats> {
    const stats = this.#module.record<DeviceStats>("device_stats", this.#device);
    return { ...stats, heapBytes: this.#module.memory.size };
  }

  async profile(_: CallContext): Promise<KernelStats[]> {
    return this.#module.record<{ kernels: KernelStats[] }>("device_profile", this.#device).kernels;
  }

  /** As if the driver had taken the GPU away; for tests. */
  async loseDevice(_: CallContext): Promise<void> {
    this.#module.gpus.lose();
  }

  // --- Tensors ---

  async tensorCommands(_: CallContext, commands: Command[]): Promise<void> {
    return this.#tensors.run(commands);
  }

  async describeTensor(_: CallContext, id: number): Promise<TensorInfo> {
    return this.#tensors.describe(id);
  }

  async readTensor(context: CallContext, id: number): Promise<Contents> {
    return this.#tensors.read(id, context);
  }

  async syncTensors({ signal }: CallContext): Promise<void> {
    return this.#tensors.sync(signal);
  }

  async makeKernel({ signal }: CallContext, id: number, options: KernelOptions): Promise<void> {
    return this.#tensors.makeKernel(id, options, signal);
  }

  async releaseKernel(_: CallContext, id: number): Promise<void> {
    return this.#tensors.releaseKernel(id);
  }

  // --- Kernels on this machine ---

  async startVerification(_: CallContext, options: VerifyOptions): Promise<number> {
    return this.#verifier.start(options);
  }

  async nextCheck({ signal }: CallContext, id: number): Promise<KernelCheck | undefined> {
    return this.#verifier.next(id, signal);
  }

  async endVerification(_: CallContext, id: number): Promise<void> {
    this.#verifier.end(id);
  }

  // --- Models ---

  preflight({ signal }: CallContext, from: ModelSource, request: HttpOptions,
            sessions: SessionOptions, get?: typeof fetch) {
    return this.#models.preflight(withFetch({ ...request, signal }, get), from, sessions);
  }

  load(context: CallContext, from: ModelSource, options: LoadingOptions, sessions: SessionOptions,
       get?: typeof fetch) {
    return this.#models.load(context, from, withFetch(options, get), sessions);
  }

  closeModel(_: CallContext, id: number): Promise<void> {
    return this.#models.close(id);
  }

  async tokenize(_: CallContext, model: number, text: string, options: TokenizeOptions) {
    return this.#models.tokenize(model, text, options);
  }

  async detokenize(_: CallContext, model: number, tokens: Uint32Array, special: boolean) {
    return this.#models.detokenize(model, tokens, special);
  }

  async chatTokens(_: CallContext, model: number, messages: ChatMessage[], options: ChatOptions) {
    return this.#models.chatTokens(model, messages, options);
  }

  embed({ signal }: CallContext, model: number, texts: string[], options: EmbedOptions) {
    return this.#models.embed(model, texts, options, signal);
  }

  // --- Sessions ---

  async openSession(_: CallContext, model: number, options: SessionOptions): Promise<number> {
    return this.#models.openSession(model, options);
  }

  closeSession(_: CallContext, id: number): Promise<void> {
    return this.#models.sessions.close(id);
  }

  configure(_: CallContext, id: number, options: GenerateOptions): Promise<void> {
    return this.#models.sessions.configure(id, options);
  }

  append(_: CallContext, id: number, prompt: string | Uint32Array): Promise<void> {
    return this.#models.sessions.append(id, prompt);
  }

  chat(_: CallContext, id: number, model: number, messages: ChatMessage[],
       options: ChatRequest): Promise<number> {
    return this.#models.chat(id, model, messages, options);
  }

  async reset(_: CallContext, id: number): Promise<void> {
    return this.#models.sessions.reset(id);
  }

  next({ signal }: CallContext, id: number): Promise<SessionEvent> {
    return this.#models.sessions.next(id, signal);
  }

  async sessionStats(_: CallContext, id: number): Promise<SessionStats> {
    return this.#models.sessions.stats(id);
  }

  async sessionTokens(_: CallContext, id: number): Promise<Uint32Array> {
    return this.#models.sessions.tokens(id);
  }

  save({ signal }: CallContext, id: number): Promise<Uint8Array> {
    return this.#models.sessions.save(id, signal);
  }

  restore({ signal }: CallContext, id: number, bytes: Uint8Array | ArrayBuffer): Promise<void> {
    return this.#models.sessions.restore(id, bytes, signal);
  }
}
