/**
 * The engine: everything that its modules keep, by numbers, as asynchronous calls with plain
 * values. It runs in a worker or in the page; wick.ts gives it the form that callers see.
 *
 * A page that only generates text has the small module for that alone. Tensors, kernels of the
 * page's own and verification are in a larger one, which comes when the first of them is used, with
 * a device of its own; or from the beginning, and then models are in it, too.
 */
import { ModelCache } from "./cache.js";
import { Core } from "./core.js";
import { CancelledError } from "./errors.js";
import type { HttpOptions } from "./download.js";
import type { ApiRequest } from "./apis.js";
import type { LoadingOptions } from "./loader.js";
import { type ChatRequest, Models, type RankOptions } from "./models.js";
import type { SessionEvent } from "./sessions.js";
import type { PromisedMemory } from "./promised_memory.js";
import type { ModelSource } from "./model_source.js";
import { mergeProfiles, mergeStats } from "./stats.js";
import { Tensors } from "./tensors.js";
import type { Command } from "./tensor_commands.js";
import type { Contents } from "./tensors.js";
import type { ThreadHost } from "./thread_workers.js";
import { Verifier } from "./verifier.js";
import type {
  ApiOptions, BackendName, Capabilities, ChatMessage, ChatOptions, DeviceInfo, DeviceStats, EmbedOptions,
  FinetuneEvent, FinetuneOptions, GenerateOptions, KernelCheck, KernelStats, LogLevel, OpenOptions, Progress,
  SessionOptions, SessionStats, TokenizeOptions, VerifyOptions,
} from "./types.js";
import type { KernelOptions, TensorInfo } from "./tensor_types.js";

/** The caller's side of a call. */
export interface CallContext {
  signal: AbortSignal;
  progress(value: Progress): void;
}

/** News that no call asked for. */
export type Notice =
  { kind: "log"; level: LogLevel; message: string } | { kind: "lost"; message: string };

export type EngineOptions =
  Pick<OpenOptions, "backend" | "math" | "threads" | "gpuOptions" | "strict" | "verify" | "profile"
    | "tensors" | "api"> & { isWorker: boolean; memory: PromisedMemory };

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

/** What the larger module is for. */
interface Extras {
  core: Core;
  tensors: Tensors;
  verifier: Verifier;
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #parts: EngineParts;
  /** Of the models. */
  readonly #core: Core;
  readonly #models: Models;
  /** All that are open, #core among them. */
  readonly #cores: Core[];
  #extras: Promise<Extras> | undefined;
  readonly #closing = new AbortController();

  static async open(options: EngineOptions, parts: EngineParts): Promise<Engine> {
    const cores: Core[] = [];
    const { tensors, api } = options;
    await Core.open(tensors ? "tensors" : api ? "api" : "text", options, parts, cores);
    return new Engine(options, parts, cores);
  }

  private constructor(options: EngineOptions, parts: EngineParts, cores: Core[]) {
    this.#options = options;
    this.#parts = parts;
    this.#cores = cores;
    this.#core = cores[0]!;
    this.#models = new Models(this.#core.module, this.#core.device);
  }

  /** Opens them once; a failure stays, as commands are lost by it. */
  async #withTensors(): Promise<Extras> {
    const { signal } = this.#closing;
    this.#extras ??= this.#openExtras(signal);
    const extras = await this.#extras.catch((reason: unknown) => reason as Error);
    if (signal.aborted) throw new CancelledError("the engine was closed meanwhile");
    if (extras instanceof Error) throw extras;
    return extras;
  }

  async #openExtras(signal: AbortSignal): Promise<Extras> {
    let core = this.#core;
    if (!this.#options.tensors) {
      const backend = core.record<DeviceInfo>("device_info").backend as BackendName;
      core = await Core.open("tensors", { ...this.#options, backend }, this.#parts, this.#cores,
                             signal);
    }
    return {
      core,
      tensors: new Tensors(core.module, core.device),
      verifier: new Verifier(core.module, core.device),
    };
  }

  /** One of the calls below by its name, a CallName. */
  call(name: string, context: CallContext, given: unknown[]): Promise<unknown> {
    return (this as unknown as Record<string, Method>)[name]!(context, ...given);
  }

  /** Closes all that is open; what is under way, and every call from now on, fails. */
  async close(_: CallContext): Promise<void> {
    this.#closing.abort();
    const extras = await this.#extras?.catch(() => undefined);
    const closeExtras = async () => {
      await extras?.tensors.close();
      extras?.verifier.close();
    };
    const closeModels = () => this.#models.closeAll();
    await Promise.all(this.#cores.map((core) => core.close(async () => {
      if (core === extras?.core) await closeExtras();
      if (core === this.#core) await closeModels();
    })));
  }

  // --- The device ---

  async capabilities(_: CallContext): Promise<Capabilities> {
    const m = this.#core.module;
    return {
      version: m.memory.text(m.call("version")),
      device: this.#core.record<DeviceInfo>("device_info"),
      ...m.record<Pick<Capabilities, "backends">>("backends"),
      module: m.threads ? "threads" : "simd",
      isWorker: this.#options.isWorker,
      isCrossOriginIsolated: globalThis.crossOriginIsolated ?? false,
      cache: (await ModelCache.open()).kind,
    };
  }

  async deviceStats(_: CallContext): Promise<DeviceStats> {
    return mergeStats(this.#cores.map((core) => ({
      ...core.record<DeviceStats>("device_stats"), heapBytes: core.module.memory.size,
    })));
  }

  async profile(_: CallContext): Promise<KernelStats[]> {
    return mergeProfiles(this.#cores.map((core) =>
      core.record<{ kernels: KernelStats[] }>("device_profile").kernels));
  }

  /** As if the driver had taken the GPU away; for tests. */
  async loseDevice(_: CallContext): Promise<void> {
    for (const { module } of this.#cores) module.gpus.lose();
  }

  // --- Tensors ---

  async tensorCommands(_: CallContext, commands: Command[]): Promise<void> {
    return (await this.#withTensors()).tensors.run(commands);
  }

  async describeTensor(_: CallContext, id: number): Promise<TensorInfo> {
    return (await this.#withTensors()).tensors.describe(id);
  }

  async readTensor(context: CallContext, id: number): Promise<Contents> {
    return (await this.#withTensors()).tensors.read(id, context);
  }

  async syncTensors({ signal }: CallContext): Promise<void> {
    return (await this.#withTensors()).tensors.sync(signal);
  }

  async makeKernel({ signal }: CallContext, id: number, options: KernelOptions): Promise<void> {
    return (await this.#withTensors()).tensors.makeKernel(id, options, signal);
  }

  async releaseKernel(_: CallContext, id: number): Promise<void> {
    return (await this.#withTensors()).tensors.releaseKernel(id);
  }

  async optimizerStates(_: CallContext, optimizer: number): Promise<string[]> {
    return (await this.#withTensors()).tensors.optimizerStates(optimizer);
  }

  async takeOptimizerStates(_: CallContext, optimizer: number, outputs: number[]): Promise<void> {
    return (await this.#withTensors()).tensors.takeOptimizerStates(optimizer, outputs);
  }

  async optimizerSteps(_: CallContext, optimizer: number): Promise<number[]> {
    return (await this.#withTensors()).tensors.optimizerSteps(optimizer);
  }

  // --- Kernels on this machine ---

  async startVerification(_: CallContext, options: VerifyOptions): Promise<number> {
    return (await this.#withTensors()).verifier.start(options);
  }

  /** What is wrong on one device of a GPU is wrong on the other. */
  async nextCheck({ signal }: CallContext, id: number): Promise<KernelCheck | undefined> {
    const { core, verifier } = await this.#withTensors();
    const check = await verifier.next(id, signal);
    if (check?.isDisabled && core !== this.#core)
      this.#core.module.checked("device_tune", this.#core.device, `disable ${check.kernel}`);
    return check;
  }

  async endVerification(_: CallContext, id: number): Promise<void> {
    (await this.#withTensors()).verifier.end(id);
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

  embed({ signal }: CallContext, model: number, texts: string[], options: EmbedOptions | RankOptions,
        query?: string) {
    return this.#models.embed(model, texts, options, signal, query);
  }

  // --- Fine-tuning ---

  startFinetuning(_: CallContext, model: number, options: FinetuneOptions) {
    return this.#models.startFinetuning(model, options);
  }

  nextFinetuneEvent({ signal }: CallContext, id: number): Promise<FinetuneEvent | undefined> {
    return this.#models.finetunings.next(id, signal);
  }

  saveFinetuning({ signal }: CallContext, id: number, file: string):
  Promise<Uint8Array<ArrayBuffer>> {
    return this.#models.finetunings.save(id, file, signal);
  }

  endFinetuning(_: CallContext, id: number): Promise<void> {
    return this.#models.finetunings.end(id);
  }

  async addAdapter(_: CallContext, model: number, file: Uint8Array, scale: number): Promise<void> {
    this.#models.addAdapter(model, file, scale);
  }

  async loadAdapter(_: CallContext, model: number, file: Uint8Array): Promise<number> {
    return this.#models.loadAdapter(model, file);
  }

  async closeAdapter(_: CallContext, id: number): Promise<void> {
    this.#models.adapters.close(id);
  }

  setAdapters(_: CallContext, session: number, uses: [number, number][]): Promise<void> {
    return this.#models.sessions.setAdapters(session, () => this.#models.adapters.uses(uses));
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

  // --- APIs ---

  async openApi(_: CallContext, model: number, options: ApiOptions): Promise<number> {
    return this.#models.openApi(model, options);
  }

  closeApi(_: CallContext, id: number): Promise<void> {
    return this.#models.apis.close(id);
  }

  async beginExchange(_: CallContext, api: number, request: ApiRequest): Promise<number> {
    return this.#models.apis.begin(api, request);
  }

  nextPart({ signal }: CallContext, exchange: number) {
    return this.#models.apis.next(exchange, signal);
  }

  async endExchange(_: CallContext, exchange: number): Promise<void> {
    this.#models.apis.end(exchange);
  }
}
