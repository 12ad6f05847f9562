/** Sessions: prompts in, tokens out one by one. */
import { adapterUses, type AdapterUse } from "./adapter.js";
import { checkSignal, WickError } from "./errors.js";
import type { Leaks } from "./leaks.js";
import { CHAT, checked, GENERATION } from "./options.js";
import type { Port } from "./port.js";
import type {
  AnswerToken, ChatMessage, ChatOptions, EndReason, GenerateOptions, PromptProgress,
  SessionOptions, SessionStats, Token,
} from "./types.js";
import { tokenIds } from "./values.js";

export interface CallOptions {
  /** Ends the generation within one submit; the session can go on from there. */
  signal?: AbortSignal;
  /** While the prompt is read. */
  onPrompt?: (progress: PromptProgress) => void;
}

/** What becomes known of a generation beside its tokens. */
interface Outcome {
  reason?: EndReason;
  leftOut: number;
}

/** Tokens that are generated as they are asked for. */
export class Generation<T extends Token = Token> implements AsyncIterable<T> {
  readonly #tokens: AsyncGenerator<T, void>;
  readonly #outcome: Outcome = { leftOut: 0 };
  #isTaken = false;

  /** @internal */
  constructor(run: (outcome: Outcome) => AsyncGenerator<T, void>) {
    this.#tokens = run(this.#outcome);
  }

  /** Why it has ended; undefined: it is still running. */
  get reason(): EndReason | undefined {
    return this.#outcome.reason;
  }

  /** Of `chat`, from the first token on: how many messages had no room, see there. */
  get leftOut(): number {
    return this.#outcome.leftOut;
  }

  /** All of the text. Tokens and text come once: STATE where they were taken before. */
  async text(): Promise<string> {
    let all = "";
    for await (const { text } of this) all += text;
    return all;
  }

  [Symbol.asyncIterator](): AsyncIterator<T, void> {
    if (this.#isTaken)
      throw new WickError("STATE", "the tokens of this generation were taken already, and come "
        + "once: keep the text, or call generate or chat again");
    this.#isTaken = true;
    return this.#tokens;
  }
}

export class Session {
  readonly #port: Port;
  readonly #model: number;
  readonly #id: number;
  readonly #options: SessionOptions;
  readonly #leaks: Leaks | undefined;
  /** How the engine has it now, as a text. */
  #configured: string;
  #adapters: [number, number][] = [];

  /** @internal */
  constructor(port: Port, model: number, id: number, options: SessionOptions, leaks?: Leaks) {
    this.#leaks = leaks;
    leaks?.open(this, "session");
    this.#configured = JSON.stringify(mannerOf(options));
    this.#port = port;
    this.#model = model;
    this.#id = id;
    this.#options = options;
  }

  /** Appends a prompt to the session's text and continues it. Options are for this call only. */
  generate(prompt: string | Iterable<number>,
           options: GenerateOptions & CallOptions = {}): Generation {
    const given = typeof prompt === "string" ? prompt : tokenIds(prompt);
    const { signal, onPrompt, ...rest } = checked(GENERATION, options);
    return new Generation((outcome) => this.#run(rest, { signal, onPrompt }, outcome, () =>
      this.#port.call("append", [this.#id, given])));
  }

  /**
   * Answers a conversation; what the session holds of its beginning is not computed again. Where it
   * leaves the answer less than a quarter of the context (or `maxTokens`, if those are fewer), the
   * model does not see the oldest turns: a turn is a user's message and all up to the next one. The
   * system message and the last turn always stay.
   */
  chat(messages: ChatMessage[],
       options: GenerateOptions & ChatOptions & CallOptions = {}): Generation<AnswerToken> {
    const { signal, onPrompt, tools, documents, template, continueLast, ...rest } =
      checked(CHAT, options);
    // Some of the tags around thinking and calls are control tokens.
    const shown = { special: true, ...mannerOf(this.#options), ...rest };
    const chat = { tools, documents, template, continueLast, maxTokens: shown.maxTokens };
    return new Generation((outcome) => this.#run(shown, { signal, onPrompt }, outcome, async () => {
      outcome.leftOut = await this.#port.call("chat", [this.#id, this.#model, messages, chat]);
    }));
  }

  async *#run<T extends Token>(options: GenerateOptions, call: { signal: AbortSignal | undefined;
                               onPrompt: CallOptions["onPrompt"] | undefined }, outcome: Outcome,
                               begin: () => Promise<void>): AsyncGenerator<T, void> {
    const begun = performance.now();
    checkSignal(call.signal);
    await this.#configure({ ...mannerOf(this.#options), ...options });
    await begin();
    for (;;) {
      const event = await this.#port.call("next", [this.#id], { signal: call.signal });
      const time = performance.now() - begun;
      if (event.kind === "prompt") {
        call.onPrompt?.({ done: event.done, total: event.total });
      } else if (event.kind === "token") {
        const { kind: _, ...token } = event;
        yield { ...token, time } as Token as T;
      } else if (event.kind === "end") {
        const { text, spans, reason } = event;
        outcome.reason = reason;
        // What was held back because it could have become a stop string, or a tag.
        if (text || spans?.length)
          yield { id: undefined, text, time, ...(spans && { spans }) } as Token as T;
        return;
      }
    }
  }

  /** Random numbers go on where nothing changes. */
  async #configure(options: GenerateOptions): Promise<void> {
    const text = JSON.stringify(options);
    if (text === this.#configured) return;
    await this.#port.call("configure", [this.#id, options]);
    this.#configured = text;
  }

  /**
   * The adapters that it computes with from now on, which add up; an empty list: none. What it holds
   * is computed again with them before it goes on.
   */
  async setAdapters(uses: AdapterUse[]): Promise<void> {
    const adapters = adapterUses(uses, this.#port);
    await this.#port.call("setAdapters", [this.#id, adapters]);
    this.#adapters = adapters;
  }

  /** Forgets everything. */
  reset(): Promise<void> {
    return this.#port.call("reset", [this.#id]);
  }

  /** Another session that goes on from here. */
  async fork(): Promise<Session> {
    const id = await this.#port.call("openSession", [this.#model, this.#options]);
    const made = new Session(this.#port, this.#model, id, this.#options, this.#leaks);
    try {
      made.#adapters = this.#adapters;
      if (this.#adapters.length > 0)
        await this.#port.call("setAdapters", [id, this.#adapters]);
      await made.restore(await this.save());
    } catch (reason) {
      await made.close();
      throw reason;
    }
    return made;
  }

  /** The session as bytes: tokens, cache, and where random numbers are. */
  save(options: { signal?: AbortSignal } = {}): Promise<Uint8Array> {
    return this.#port.call("save", [this.#id], options);
  }

  /** Puts what was saved in place of what the session holds. */
  restore(bytes: Uint8Array | ArrayBuffer, options: { signal?: AbortSignal } = {}): Promise<void> {
    return this.#port.call("restore", [this.#id, bytes], options);
  }

  stats(): Promise<SessionStats> {
    return this.#port.call("sessionStats", [this.#id]);
  }

  /** Of prompt and answers so far. */
  tokens(): Promise<Uint32Array> {
    return this.#port.call("sessionTokens", [this.#id]);
  }

  close(): Promise<void> {
    this.#leaks?.close(this);
    return this.#port.call("closeSession", [this.#id]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** What of a session's options a call may change. */
function mannerOf(options: SessionOptions): GenerateOptions {
  const { contextLength: _, chunkLength: __, cache: ___, logprobs: ____, ...manner } = options;
  return manner;
}
