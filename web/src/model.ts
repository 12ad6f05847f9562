/** A model on a device. */
import { Adapter, adapterFile } from "./adapter.js";
import { Api } from "./api.js";
import { kindOf, WickError } from "./errors.js";
import { Finetuning } from "./finetuning.js";
import type { Leaks } from "./leaks.js";
import { API, checked, DETOKENIZE, EMBED, FINETUNE, RERANK, SESSION, TEMPLATE, TOKENIZE } from "./options.js";
import type { Port } from "./port.js";
import { Session } from "./session.js";
import type {
  ApiOptions, ChatMessage, ChatOptions, EmbedOptions, FinetuneOptions, ModelInfo, RankedDocument, RerankOptions,
  SessionOptions, TokenizeOptions,
} from "./types.js";
import { tokenIds } from "./values.js";

export class Model {
  readonly #port: Port;
  readonly #id: number;
  readonly #leaks: Leaks | undefined;
  readonly info: ModelInfo;

  /** @internal */
  constructor(port: Port, id: number, info: ModelInfo, leaks?: Leaks) {
    this.#port = port;
    this.#id = id;
    this.info = info;
    this.#leaks = leaks;
    leaks?.open(this, "model");
  }

  /** A sequence of tokens with its cache and sampler. Close it when it is not needed any more. */
  async session(options: SessionOptions = {}): Promise<Session> {
    const given = checked(SESSION, options);
    const id = await this.#port.call("openSession", [this.#id, given]);
    return new Session(this.#port, this.#id, id, given, this.#leaks);
  }

  /**
   * What answers the requests that programs send to servers of language models, without a network:
   * the APIs of OpenAI, Anthropic, llama-server and ollama, as `wick serve` does, by the same code.
   * In an engine that was opened with `api: true`.
   */
  async api(options: ApiOptions = {}): Promise<Api> {
    return new Api(this.#port, await this.#port.call("openApi", [this.#id, checked(API, options)]));
  }

  async tokenize(text: string, options: TokenizeOptions = {}): Promise<Uint32Array> {
    return this.#port.call("tokenize", [this.#id, text, checked(TOKENIZE, options)]);
  }

  /** special: control tokens appear in the text. */
  detokenize(tokens: Iterable<number>, options: { special?: boolean } = {}): Promise<string> {
    const { special = false } = checked(DETOKENIZE, options);
    return this.#port.call("detokenize", [this.#id, tokenIds(tokens), special]);
  }

  /** The tokens of a conversation by the model's own template. */
  async chatTokens(messages: ChatMessage[], options: ChatOptions = {}): Promise<Uint32Array> {
    return this.#port.call("chatTokens", [this.#id, messages, checked(TEMPLATE, options)]);
  }

  /** Texts as vectors of `info.embeddingLength` numbers: one per text, or one per token. */
  async embed(texts: string[], options: EmbedOptions & { signal?: AbortSignal } = {}):
  Promise<Float32Array[]> {
    const { signal, ...rest } = checked(EMBED, options);
    return this.#port.call("embed", [this.#id, texts, rest], { signal });
  }

  /**
   * Documents in the order of how well they answer the query, the best first, by a reranker
   * (`info.labels`). In an engine that was opened with `api: true`.
   */
  async rerank(query: string, documents: string[], options: RerankOptions & { signal?: AbortSignal } = {}):
  Promise<RankedDocument[]> {
    const { signal, ...rest } = checked(RERANK, options);
    const given = { ...rest, pooling: "rank" } as const;
    const rows = await this.#port.call("embed", [this.#id, documents, given, query], { signal });
    return rows.map(([score], index) => ({ index, score: score! })).sort((a, b) => b.score - a.score);
  }

  /**
   * Begins to train an adapter of this model, whose weights stay as they are; it has no sessions
   * until that is closed. In an engine that was opened with `tensors: true`.
   */
  async finetune(options: FinetuneOptions & { signal?: AbortSignal }): Promise<Finetuning> {
    const { signal, ...given } = checked(FINETUNE, options);
    const { id, info } = await this.#port.call("startFinetuning", [this.#id, given]);
    return new Finetuning(this.#port, id, info, this.#leaks, signal);
  }

  /**
   * Adds an adapter (LoRA), a GGUF file as `finetune` makes them, for the sessions that are opened
   * from now on: W x + scale alpha / rank B (A x). Several add up. While no session is open, in an
   * engine that was opened with `tensors: true`.
   */
  async addAdapter(file: Uint8Array | ArrayBuffer, scale = 1): Promise<void> {
    const bytes = adapterFile(file);
    if (!Number.isFinite(scale))
      throw new WickError("VALUE", `the scale of an adapter must be a number, not ${kindOf(scale)}`);
    await this.#port.call("addAdapter", [this.#id, bytes, scale]);
  }

  /**
   * Loads an adapter (LoRA), a GGUF file, for the sessions that choose it with `setAdapters`; others
   * go on as they are. In an engine that was opened with `tensors: true`.
   */
  async loadAdapter(file: Uint8Array | ArrayBuffer): Promise<Adapter> {
    return new Adapter(this.#port, await this.#port.call("loadAdapter", [this.#id, adapterFile(file)]));
  }

  /** Closes it with its sessions. */
  close(): Promise<void> {
    this.#leaks?.close(this);
    return this.#port.call("closeModel", [this.#id]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
