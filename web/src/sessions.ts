/** The engine's side of sessions: prompts in, events out, and what they hold as bytes. */
import { joinBytes } from "./byte_source.js";
import { CancelledError, kindOf, WickError } from "./errors.js";
import type { Module } from "./module.js";
import { MemorySource } from "./plain_source.js";
import { Table } from "./table.js";
import type {
  AnswerSpan, EndReason, GenerateOptions, Logprob, SessionOptions, SessionStats, ToolCall,
} from "./types.js";

const END_REASONS: EndReason[] =
  ["none", "token", "stop", "max-tokens", "context-full", "prompt", "grammar"];
const SPAN_KINDS: AnswerSpan["kind"][] = ["content", "reasoning", "call"];
const PENDING = 1;
const EVENT_PENDING = 0, EVENT_PROMPT = 1, EVENT_TOKEN = 3;
const EVENT_WORDS = 9;

/** What a session reports. */
export type SessionEvent =
  | { kind: "prompt"; done: number; total: number }
  | { kind: "token"; id: number; text: string; spans?: AnswerSpan[]; logprobs?: Logprob[] }
  | { kind: "end"; reason: EndReason; text: string; spans?: AnswerSpan[] };

/** What a model sees of a conversation, and how many messages it does not see. */
export interface Shown {
  tokens: Uint32Array;
  leftOut: number;
}

interface Held {
  pointer: number;
  model: number;
  /** What cuts the answer; 0: its text is not an answer. */
  answer: number;
  /** A call is at it; that call is `next`. */
  isBusy: boolean;
  isStepped: boolean;
  /** That call, or what is computed ahead, see #prepare. It never fails. */
  running: Promise<unknown>;
}

export class Sessions {
  readonly #module: Module;
  readonly #held = new Table<Held>("session", (held) => this.#end(held));
  /** Numbers that doors write. */
  readonly #scratch: number;

  constructor(module: Module) {
    this.#module = module;
    this.#scratch = module.alloc(64);
  }

  /** model: its pointer. */
  open(model: number, options: SessionOptions): number {
    const pointer = this.#module.pointer("session_open", model, JSON.stringify(options));
    return this.#held.add({
      pointer, model, answer: 0, isBusy: false, isStepped: false, running: Promise.resolve(),
    });
  }

  /** Ends what is under way, which fails. */
  close(id: number): Promise<void> {
    return this.#held.close(id);
  }

  closeOf(model: number): Promise<void> {
    return this.#held.closeAll((held) => held.model === model);
  }

  async #end(held: Held): Promise<void> {
    this.#module.gpus.stir();
    await held.running;
    this.#module.call("answer_close", held.answer);
    this.#module.call("session_close", held.pointer);
  }

  configure(id: number, options: GenerateOptions): Promise<void> {
    const text = JSON.stringify(options);
    return this.#alone(id, (pointer) =>
      void this.#module.checked("session_configure", pointer, text));
  }

  append(id: number, prompt: string | Uint32Array): Promise<void> {
    return this.#alone(id, (pointer) => {
      this.#answer(id, 0);
      if (typeof prompt !== "string") return this.#give("session_append_tokens", pointer, prompt);
      if (prompt.includes("\0"))
        throw new WickError("VALUE", "a text must not hold zero characters");
      this.#module.checked("session_append_text", pointer, prompt);
    });
  }

  /**
   * Makes the tokens of a conversation, of which `chat_tokens` is called then, the whole sequence;
   * what the session holds of its beginning is kept. Returns how many messages were left out.
   */
  chat(id: number, make: (contextLength: number) => Shown): Promise<number> {
    return this.#alone(id, (pointer) => {
      const { tokens, leftOut } = make(this.stats(id).contextLength);
      this.#answer(id, this.#module.call("chat_answer"));
      this.#give("session_sync_tokens", pointer, tokens);
      return leftOut;
    });
  }

  /** From now on its text is cut by this, or by nothing. */
  #answer(id: number, answer: number): void {
    const held = this.#held.get(id);
    this.#module.call("answer_close", held.answer);
    held.answer = answer;
  }

  /** listUses: called when nothing else runs, so that adapters that were closed meanwhile fail. */
  setAdapters(id: number, listUses: () => Uint8Array): Promise<void> {
    return this.#alone(id, (pointer) => {
      const uses = listUses();
      if (uses.length === 0 && !this.#module.hasDoor("session_set_loras")) return;
      this.#module.withBytes(uses, (at, size) =>
        this.#module.checked("session_set_loras", pointer, at, size / 8));
    });
  }

  #give(door: string, session: number, tokens: Uint32Array): void {
    this.#module.withBytes(new Uint8Array(Uint32Array.from(tokens).buffer), (at) =>
      this.#module.checked(door, session, at, tokens.length));
  }

  reset(id: number): void {
    this.#module.call("session_reset", this.#free(id).pointer);
  }

  stats(id: number): SessionStats {
    return this.#module.record<SessionStats>("session_stats", this.#held.get(id).pointer);
  }

  tokens(id: number): Uint32Array {
    const { memory } = this.#module;
    const at = this.#module.call("session_tokens", this.#held.get(id).pointer, this.#scratch);
    return memory.words(at, memory.words(this.#scratch, 1)[0]!).slice();
  }

  // --- One call at a time ---

  /** Alone with a session of which nothing is being computed; another call meanwhile fails. */
  #alone<T>(id: number, work: (pointer: number) => T | Promise<T>): Promise<T> {
    return this.#begin(id, async ({ running }) => {
      await running;
      return work(this.#held.get(id).pointer);
    });
  }

  /** One that no call is at. */
  #free(id: number): Held {
    const held = this.#held.get(id);
    if (held.isBusy)
      throw new WickError("STATE", "the session is busy: await the call, or end the generation, "
        + "before this one");
    return held;
  }

  async #begin<T>(id: number, work: (held: Held) => Promise<T>): Promise<T> {
    const held = this.#free(id);
    held.isBusy = true;
    const result = work(held).finally(() => (held.isBusy = false));
    held.running = result.catch(() => undefined);
    return result;
  }

  /** Polls until it is not pending any more, while the session is open. */
  #finish(id: number, poll: () => number, signal: AbortSignal): Promise<number> {
    return this.#module.finish(() => {
      this.#held.get(id);
      return poll();
    }, signal);
  }

  // --- Events ---

  /** The next event. Given up by its signal, the session can go on from where it was. */
  async next(id: number, signal: AbortSignal): Promise<SessionEvent> {
    const event = await this.#begin(id, async (held) => {
      held.isStepped = true;
      return this.#next(id, held.pointer, signal).finally(() => (held.isStepped = false));
    });
    if (this.#held.has(id)) this.#prepare(id);
    return event;
  }

  async #next(id: number, pointer: number, signal: AbortSignal): Promise<SessionEvent> {
    const m = this.#module;
    let event: SessionEvent | undefined;
    try {
      await this.#finish(id, () => {
        m.checked("session_step", pointer, this.#scratch);
        const words = m.memory.words(this.#scratch, EVENT_WORDS);
        if (words[0] === EVENT_PENDING) return PENDING;
        event = this.#event(words, this.#held.get(id).answer);
        return 0;
      }, signal);
    } catch (reason) {
      if (reason instanceof CancelledError && this.#held.has(id)) m.call("session_cancel", pointer);
      throw reason;
    }
    return event!;
  }

  /**
   * Computes the logits of the next token while the current one is delivered and read, until `next`
   * takes over, which also reports a failure.
   */
  #prepare(id: number): void {
    const held = this.#held.get(id);
    held.running = this.#module.finish(() => held.isStepped || !this.#held.has(id) ? 0
      : this.#module.call("session_prepare", held.pointer)).catch(() => undefined);
  }

  #event(words: Uint32Array, answer: number): SessionEvent {
    const [kind, reason, id, at, size, done, total, logprobs, n] =
      words as unknown as number[];
    if (kind === EVENT_PROMPT) return { kind: "prompt", done: done!, total: total! };
    const isEnd = kind !== EVENT_TOKEN;
    const said = {
      text: this.#module.memory.text(at!, size!),
      ...(answer && { spans: this.#spans(answer, at!, size!, isEnd) }),
    };
    if (isEnd) return { kind: "end", reason: END_REASONS[reason!]!, ...said };
    if (n === 0) return { kind: "token", id: id!, ...said };
    return { kind: "token", id: id!, ...said, logprobs: this.#logprobs(logprobs!, n!) };
  }

  #spans(answer: number, at: number, size: number, isEnd: boolean): AnswerSpan[] {
    const m = this.#module;
    const spans: AnswerSpan[] = [];
    const last = isEnd ? 1 : 0;
    for (let left = size; m.checked("answer_next", answer, at, left, last, this.#scratch);
         left = 0) {
      const [kind, from, n, tag, calls] = m.memory.words(this.#scratch, 5) as unknown as number[];
      if (n === 0) continue; // nothing but the edge of a span
      const text = m.memory.text(from!, n!);
      spans.push({
        kind: SPAN_KINDS[kind!]!, text, ...(tag && { tag: m.memory.text(tag) }),
        ...(calls && { calls: JSON.parse(m.memory.text(calls)) as ToolCall[] }),
      });
    }
    return spans;
  }

  #logprobs(at: number, n: number): Logprob[] {
    const ids = this.#module.memory.words(at, 2 * n);
    const values = this.#module.memory.floats(at, 2 * n);
    return Array.from({ length: n }, (_, i) => ({ id: ids[2 * i]!, logprob: values[2 * i + 1]! }));
  }

  // --- Saving ---

  /** The session as bytes, see `wick/saving.h`. */
  save(id: number, signal: AbortSignal): Promise<Uint8Array> {
    const m = this.#module;
    return this.#alone(id, async (pointer) => {
      const pieces: Uint8Array[] = [];
      const writer = m.addWriter((bytes) => pieces.push(bytes));
      try {
        await this.#transfer(id, "save", m.pointer("session_save", pointer, writer), signal);
      } finally {
        m.removeWriter(writer);
      }
      return joinBytes(...pieces);
    });
  }

  restore(id: number, bytes: Uint8Array | ArrayBuffer, signal: AbortSignal): Promise<void> {
    const m = this.#module;
    return this.#alone(id, async (pointer) => {
      if (!(bytes instanceof Uint8Array || bytes instanceof ArrayBuffer))
        throw new WickError("ARGUMENT", `a session is restored from what save gave, a Uint8Array, `
          + `not from ${kindOf(bytes)}`);
      const source = m.addSource(new MemorySource(bytes));
      await this.#transfer(id, "load", m.pointer("session_load", pointer, source), signal);
    });
  }

  async #transfer(id: number, what: "save" | "load", pointer: number,
                  signal: AbortSignal): Promise<void> {
    const m = this.#module;
    try {
      await this.#finish(id, () => m.call(`session_${what}_poll`, pointer), signal);
    } catch (reason) {
      m.call(`session_${what}_finish`, pointer);
      throw reason;
    }
    m.checked(`session_${what}_finish`, pointer);
  }
}
