/** A model on a device. */
import type { Leaks } from "./leaks.js";
import { checked, DETOKENIZE, EMBED, SESSION, TEMPLATE, TOKENIZE } from "./options.js";
import type { Port } from "./port.js";
import { Session } from "./session.js";
import type {
  ChatMessage, ChatOptions, EmbedOptions, ModelInfo, SessionOptions, TokenizeOptions,
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

  /** Closes it with its sessions. */
  close(): Promise<void> {
    this.#leaks?.close(this);
    return this.#port.call("closeModel", [this.#id]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
