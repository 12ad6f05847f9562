/** The engine's side of models: loaded, asked, their tokens, and texts as vectors. */
import { Adapters } from "./adapters.js";
import { Apis } from "./apis.js";
import { checkArray, kindOf, WickError } from "./errors.js";
import type { CallContext } from "./engine.js";
import { Finetunings } from "./finetunings.js";
import { Loader, type LoadingOptions } from "./loader.js";
import type { ModelSource } from "./model_source.js";
import type { Module } from "./module.js";
import { Sessions, type Shown } from "./sessions.js";
import type { SourceOptions } from "./source.js";
import { Table } from "./table.js";
import type {
  ApiOptions, ChatMessage, ChatOptions, EmbedOptions, FinetuneOptions, ModelInfo, Preflight, RerankOptions,
  SessionOptions, TokenizeOptions,
} from "./types.js";

/** WICK_TOKENIZE_*. */
const ADD_SPECIAL = 5, PARSE_SPECIAL = 2;

/** maxTokens: of the answer. */
export interface ChatRequest extends ChatOptions {
  maxTokens?: number;
}

/** Of scores in place of vectors. */
export interface RankOptions extends RerankOptions {
  pooling: "rank";
}

interface Held {
  pointer: number;
  /** Texts that are being embedded: none of these promises fails. */
  embedding: Set<Promise<unknown>>;
}

function encode(text: string): Uint8Array {
  if (typeof text !== "string")
    throw new WickError("ARGUMENT", `a text is wanted, not ${kindOf(text)}`);
  return new TextEncoder().encode(text);
}

const TEXT_PARTS = [undefined, "text", "input_text", "output_text"];

const isTextPart = (part: { type?: string; text?: unknown } | null): boolean =>
  typeof part?.text === "string" && TEXT_PARTS.includes(part.type);

/** A message whose parts, as in OpenAI's API, are one text if all of them are texts. */
function plainMessage(message: ChatMessage, i: number): ChatMessage {
  if (typeof message?.role !== "string")
    throw new WickError("ARGUMENT", `the role of messages[${i}] must be a text, not `
      + kindOf(message?.role));
  const { content } = message;
  if (!Array.isArray(content) || !content.every(isTextPart)) return message;
  return { ...message, content: content.map((part) => part.text).join("\n") };
}

export class Models {
  readonly sessions: Sessions;
  readonly finetunings: Finetunings;
  readonly adapters: Adapters;
  readonly apis: Apis;
  readonly #module: Module;
  readonly #loader: Loader;
  readonly #held = new Table<Held>("model", (held) => this.#end(held));
  /** Numbers that doors write. */
  readonly #scratch: number;

  constructor(module: Module, device: number) {
    this.#module = module;
    this.#loader = new Loader(module, device);
    this.sessions = new Sessions(module);
    this.finetunings = new Finetunings(module, device);
    this.adapters = new Adapters(module);
    this.apis = new Apis(module);
    this.#scratch = module.alloc(8);
  }

  preflight(options: SourceOptions & { signal: AbortSignal }, from: ModelSource,
            sessions: SessionOptions): Promise<Preflight> {
    return this.#loader.preflight(options, from, sessions);
  }

  /** The number and description of a model. */
  async load(context: CallContext, from: ModelSource, options: LoadingOptions,
             sessions: SessionOptions): Promise<{ id: number; info: ModelInfo }> {
    const pointer = await this.#loader.load(context, from, options, sessions);
    return { id: this.#held.add({ pointer, embedding: new Set() }), info: this.#info(pointer) };
  }

  #info(pointer: number): ModelInfo {
    return this.#module.record<ModelInfo>("model_info", pointer);
  }

  /** With its sessions; what is under way fails. */
  close(id: number): Promise<void> {
    return this.#held.close(id);
  }

  closeAll(): Promise<void> {
    return this.#held.closeAll(() => true);
  }

  async #end(held: Held): Promise<void> {
    this.#module.gpus.stir();
    await Promise.all(held.embedding);
    await this.apis.closeOf(held.pointer);
    await this.sessions.closeOf(held.pointer);
    await this.finetunings.endOf(held.pointer);
    this.adapters.forget(held.pointer);
    this.#module.call("model_close", held.pointer);
  }

  openSession(model: number, options: SessionOptions): number {
    const { pointer } = this.#held.get(model);
    this.finetunings.checkFree(pointer);
    return this.sessions.open(pointer, options);
  }

  openApi(model: number, options: ApiOptions): number {
    const { pointer } = this.#held.get(model);
    this.finetunings.checkFree(pointer);
    return this.apis.open(pointer, options);
  }

  startFinetuning(model: number, options: FinetuneOptions) {
    return this.finetunings.start(() => this.#held.get(model).pointer, options);
  }

  addAdapter(model: number, file: Uint8Array, scale: number): void {
    this.adapters.addWhole(this.#held.get(model).pointer, file, scale);
  }

  loadAdapter(model: number, file: Uint8Array): number {
    return this.adapters.load(this.#held.get(model).pointer, file);
  }

  // --- Tokens ---

  tokenize(model: number, text: string, options: TokenizeOptions): Uint32Array {
    const m = this.#module;
    const flags = (options.addSpecial ? ADD_SPECIAL : 0)
      | (options.parseSpecial ? PARSE_SPECIAL : 0);
    const { pointer } = this.#held.get(model);
    return this.#withText(text, (at, size) =>
      this.#tokens(m.checked("tokenize", pointer, at, size, flags)));
  }

  detokenize(model: number, tokens: Uint32Array, special: boolean): string {
    const m = this.#module;
    const { pointer } = this.#held.get(model);
    const capacity = m.call("detokenize_bound", pointer) * (tokens.length + 1);
    const ids = m.put(new Uint8Array(Uint32Array.from(tokens).buffer));
    const out = m.alloc(capacity);
    try {
      const size = m.checked("detokenize", pointer, ids, tokens.length, special ? 1 : 0, out,
                             capacity);
      return m.memory.text(out, size);
    } finally {
      m.release(out);
      m.release(ids);
    }
  }

  /** The tokens of a conversation by the model's template. */
  chatTokens(model: number, given: ChatMessage[], options: ChatOptions): Uint32Array {
    checkArray(given, "messages");
    const messages = given.map(plainMessage);
    const t = new Date();
    const now = [t.getFullYear(), t.getMonth() + 1, t.getDate(), t.getHours(), t.getMinutes(),
                 t.getSeconds()];
    const text = JSON.stringify({ messages, now, ...options });
    return this.#tokens(this.#module.checked("chat_tokens", this.#held.get(model).pointer, text));
  }

  /** What a session answers next. Returns how many of the messages the model does not see. */
  chat(session: number, model: number, messages: ChatMessage[],
       { maxTokens = 0, ...options }: ChatRequest): Promise<number> {
    return this.sessions.chat(session, (contextLength) => {
      const quarter = Math.max(Math.floor(contextLength / 4), 1);
      const room = Math.min(maxTokens || quarter, quarter);
      const shown = this.#shown(model, messages, options, contextLength - room);
      const n = shown.tokens.length;
      if (messages.length === 0) throw new WickError("STATE", "there is no message to answer");
      if (n < contextLength) return shown;
      throw new WickError("STATE", `this message takes ${n} tokens with what the template and the `
        + `system message add; the context holds ${contextLength}, the answer included`);
    });
  }

  /** A conversation within a limit of tokens, if the last turn allows that: as wick_chat_send. */
  #shown(model: number, messages: ChatMessage[], options: ChatOptions, most: number): Shown {
    const all = this.chatTokens(model, messages, options);
    const found = messages.findIndex((message) => message?.role !== "system");
    const fixed = found < 0 ? messages.length : found;
    const begins = [...messages.keys()].filter((i) => i > fixed && messages[i]?.role === "user");
    if (all.length <= most || begins.length === 0) return { tokens: all, leftOut: 0 };
    const from = (first: number): Uint32Array =>
      this.chatTokens(model, [...messages.slice(0, fixed), ...messages.slice(first)], options);
    let low = 0, high = begins.length - 1; // the first of them that fits, else the last
    while (low < high) {
      const middle = (low + high) >> 1;
      if (from(begins[middle]!).length <= most) high = middle;
      else low = middle + 1;
    }
    return { tokens: from(begins[low]!), leftOut: begins[low]! - fixed };
  }

  /** Those of the last call. */
  #tokens(n: number): Uint32Array {
    return this.#module.memory.words(this.#module.call("token_ids"), n).slice();
  }

  /** Calls with the places of the addresses of texts, and of their sizes. */
  #withTexts(texts: string[], call: (at: number, sizes: number) => void): void {
    const m = this.#module, n = texts.length, words = new Uint32Array(2 * n);
    const places: number[] = [];
    try {
      for (const [i, text] of texts.entries()) {
        const bytes = encode(text);
        places.push((words[i] = m.put(bytes)));
        words[n + i] = bytes.length;
      }
      const at = m.put(new Uint8Array(words.buffer));
      places.push(at);
      call(at, at + 4 * n);
    } finally {
      for (const at of places) m.release(at);
    }
  }

  #withText<T>(text: string, call: (at: number, size: number) => T): T {
    return this.#module.withBytes(encode(text), call);
  }

  // --- Texts as vectors ---

  /**
   * For each text its rows, concatenated: one, or with pooling `none` one per token; with pooling
   * `rank` the scores of its pair with the query.
   */
  async embed(model: number, texts: string[], options: EmbedOptions | RankOptions,
              signal: AbortSignal, query?: string): Promise<Float32Array[]> {
    checkArray(texts, "texts");
    const { embedding } = this.#held.get(model);
    const result = this.#embedAll(model, texts, options, signal, query);
    const running = result.catch(() => undefined);
    embedding.add(running);
    return result.finally(() => embedding.delete(running));
  }

  async #embedAll(model: number, texts: string[], options: EmbedOptions | RankOptions,
                  signal: AbortSignal, query?: string): Promise<Float32Array[]> {
    const m = this.#module;
    const { pointer } = this.#held.get(model);
    const { embeddingLength, labels } = this.#info(pointer);
    const isRanking = options.pooling === "rank";
    const width = isRanking ? labels : embeddingLength;
    const door = isRanking ? "embedder_start_pairs" : "embedder_start";
    m.checkDoor(door, "rerankers", "api");
    const embedder = m.pointer("embedder_open", pointer, JSON.stringify(options));
    const vectors: Float32Array[] = [];
    try {
      const most = m.call("embedder_most", embedder);
      for (let i = 0; i < texts.length; i += most) {
        const group = texts.slice(i, i + most);
        await this.#embed(door, embedder, model, isRanking ? [query!, ...group] : group, signal);
        const rows = m.call("embedder_result", embedder, this.#scratch);
        const size = m.memory.words(this.#scratch, 1)[0]! / group.length * width;
        for (const k of group.keys())
          vectors.push(m.memory.floats(rows + 4 * k * size, size).slice());
      }
    } finally {
      m.call("embedder_close", embedder);
    }
    return vectors;
  }

  /** Refuses to go on once the model is closed. */
  async #embed(door: string, embedder: number, model: number, texts: string[],
               signal: AbortSignal): Promise<void> {
    const m = this.#module;
    this.#held.get(model);
    this.#withTexts(texts, (at, sizes) =>
      m.checked(door, embedder, at, sizes, texts.length));
    await m.finish(() => {
      this.#held.get(model);
      return m.checked("embedder_poll", embedder);
    }, signal);
  }
}
