/**
 * libwick/prompt-api: the shape of Chrome's Prompt API (`LanguageModel`) over a model of this
 * package, for browsers that have no model of their own. It needs nothing else of the package.
 *
 * ```js
 * const LanguageModel = promptApi((options) => wick.load("model.gguf", options));
 * const session = await LanguageModel.create({ initialPrompts: [{ role: "system", content: "Be brief." }] });
 * console.log(await session.prompt("Why is the sky blue?"));
 * ```
 *
 * Of what Chrome has, there are no images and sound, and no regular expressions as constraints.
 */
import { abortable, linkedController } from "./byte_source.js";
import type { AnswerSpan, ChatMessage, Model, Progress, Session, SessionOptions } from "./wick.js";

export type Availability = "unavailable" | "downloadable" | "downloading" | "available";

export interface PromptPart {
  type: "text";
  value: string;
}

export interface PromptMessage {
  role: "system" | "user" | "assistant";
  content: string | PromptPart[];
  /** Of the last message, the assistant's: the answer goes on from it. */
  prefix?: boolean;
}

export type PromptInput = string | PromptMessage[];

export interface PromptTool {
  name: string;
  description: string;
  /** A JSON schema of what execute takes. */
  inputSchema: object;
  execute(given: never): unknown;
}

/** What a session may be asked in; only text is here. */
export interface Expected {
  type: string;
  languages?: string[];
}

export interface CreateOptions {
  initialPrompts?: PromptMessage[];
  temperature?: number;
  topK?: number;
  /** Gives up creating, and destroys the session later. */
  signal?: AbortSignal;
  /** Called with what has an event `downloadprogress`, whose `loaded` goes from 0 to 1. */
  monitor?: (monitor: EventTarget) => void;
  expectedInputs?: Expected[];
  expectedOutputs?: Expected[];
  /** Run by themselves when the model calls them. */
  tools?: PromptTool[];
}

export interface PromptOptions {
  signal?: AbortSignal;
  /** The answer is JSON of this schema; no tools are called meanwhile. */
  responseConstraint?: object;
  /** The schema is not described to the model. */
  omitResponseConstraintInput?: boolean;
}

/** What opens the model when the first session is created. */
export type ModelLoader =
  (options: { signal?: AbortSignal; onProgress: (progress: Progress) => void }) => Promise<Model>;

const DEFAULTS = { temperature: 0.8, topK: 40 };
const MOST = { temperature: 2, topK: 1000 };
/** Rounds of calls that one prompt may take. */
const MOST_ROUNDS = 16;

const fail = (name: string, message: string): DOMException => new DOMException(message, name);

function refuseUnknown({ expectedInputs = [], expectedOutputs = [] }: CreateOptions): void {
  const other = [...expectedInputs, ...expectedOutputs].find(({ type }) => type !== "text");
  if (other)
    throw fail("NotSupportedError", `the model reads and writes text, not '${other.type}'`);
}

/** Messages of the package. */
function messagesOf(input: PromptInput): ChatMessage[] {
  const given = typeof input === "string" ? [{ role: "user" as const, content: input }] : input;
  return given.map(({ role, content }) => {
    if (typeof content === "string") return { role, content };
    const other = content.find(({ type }) => type !== "text");
    if (other) throw fail("NotSupportedError", `the model reads text, not '${String(other.type)}'`);
    return { role, content: content.map(({ value }) => value).join("") };
  });
}

const isPrefixed = (input: PromptInput): boolean => {
  const last = typeof input === "string" ? undefined : input.at(-1);
  if (last?.prefix && last.role !== "assistant")
    throw fail("SyntaxError", "a prefix is the beginning of an answer of the assistant");
  return last?.prefix ?? false;
};

interface Call {
  id: string;
  name: string;
  given: object;
}

let nCalls = 0;
/** Nine digits, as Mistral's templates want; no two are equal. */
const newCallId = (): string => String(nCalls++).padStart(9, "0");

/** Undefined: it is none, or none that is understood. */
const callsOf = (span: AnswerSpan): Call[] | undefined =>
  span.calls?.map((call) => ({ id: newCallId(), name: call.name, given: call.arguments }));

export class LanguageModelSession extends EventTarget {
  readonly temperature: number;
  readonly topK: number;
  /** Called when the oldest turns were forgotten, because the context is full. */
  onquotaoverflow: ((event: Event) => void) | null = null;
  readonly #model: Model;
  readonly #session: Session;
  readonly #tools: PromptTool[];
  readonly #ending = new AbortController();
  #messages: ChatMessage[];
  #usage: number;
  readonly #quota: number;
  /** One call after the other; it never fails. */
  #queue: Promise<unknown> = Promise.resolve();

  /** @internal */
  constructor(model: Model, session: Session, messages: ChatMessage[], usage: number, quota: number,
              { temperature = DEFAULTS.temperature, topK = DEFAULTS.topK, tools = [] }: CreateOptions) {
    super();
    this.#model = model;
    this.#session = session;
    this.#messages = messages;
    this.#usage = usage;
    this.#quota = quota;
    this.#tools = tools;
    this.temperature = temperature;
    this.topK = topK;
  }

  /** Tokens of the conversation so far. */
  get inputUsage(): number {
    return this.#usage;
  }

  /** Tokens that the context holds, the answers included. */
  get inputQuota(): number {
    return this.#quota;
  }

  async prompt(input: PromptInput, options: PromptOptions = {}): Promise<string> {
    let text = "";
    for await (const piece of this.#run(input, options)) text += piece;
    return text;
  }

  promptStreaming(input: PromptInput, options: PromptOptions = {}): ReadableStream<string> {
    const own = linkedController(options.signal);
    const pieces = this.#run(input, { ...options, signal: own.signal });
    return new ReadableStream<string>({
      // Whether somebody reads or not: the calls after this one wait for its end.
      start(controller) {
        const send = async () => {
          for await (const piece of pieces) controller.enqueue(piece);
          controller.close();
        };
        send().catch((reason) => controller.error(reason)).finally(() => own.abort());
      },
      cancel() {
        own.abort();
      },
    });
  }

  /** @internal What it begins with, which the model reads with the first prompt. */
  async start(prompts: PromptMessage[]): Promise<void> {
    this.#messages = messagesOf(prompts);
    this.#usage = await this.#count(this.#messages);
    this.#checkRoom(this.#usage);
  }

  /** Adds to the conversation, and has the model read it. */
  append(input: PromptInput, { signal }: { signal?: AbortSignal } = {}): Promise<void> {
    return this.#inTurn(signal, async (own) => {
      const messages = [...this.#messages, ...messagesOf(input)];
      const usage = await this.#count(messages);
      this.#checkRoom(usage);
      await this.#session.chat(messages, { ...this.#chatOptions(own, {}), maxTokens: 1 }).text();
      this.#messages = messages;
      this.#usage = usage;
    });
  }

  /** Tokens that this would take. */
  async measureInputUsage(input: PromptInput, options: PromptOptions = {}): Promise<number> {
    options.signal?.throwIfAborted();
    this.#ending.signal.throwIfAborted();
    return await this.#count([...this.#messages, ...this.#toRead(input, options)]) - this.#usage;
  }

  /** Another session that goes on from here. */
  clone({ signal }: { signal?: AbortSignal } = {}): Promise<LanguageModelSession> {
    const { temperature, topK } = this;
    return this.#inTurn(signal, async () => new LanguageModelSession(
      this.#model, await this.#session.fork(), [...this.#messages], this.#usage, this.#quota,
      { temperature, topK, tools: this.#tools }));
  }

  /** Ends what is under way, and gives the memory back. */
  destroy(): void {
    if (this.#ending.signal.aborted) return;
    this.#ending.abort(fail("AbortError", "the session was destroyed"));
    this.#session.close().catch(() => undefined); // the engine may have been closed before
  }

  /** Alone, after the calls before. */
  async #inTurn<T>(signal: AbortSignal | undefined,
                   work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { own, end, release } = await this.#begin(signal);
    try {
      return await work(own);
    } catch (reason) {
      throw own.aborted ? own.reason : reason;
    } finally {
      end();
      release();
    }
  }

  /** own: aborted with the caller's signal, and with the session. */
  async #begin(signal: AbortSignal | undefined) {
    const controller = new AbortController(), before = this.#queue;
    let release!: () => void;
    this.#queue = new Promise<void>((resolve) => (release = resolve));
    const outers = [this.#ending.signal, ...(signal ? [signal] : [])];
    const abort = () => controller.abort(outers.find(({ aborted }) => aborted)!.reason);
    for (const outer of outers) outer.addEventListener("abort", abort);
    const end = () => outers.forEach((outer) => outer.removeEventListener("abort", abort));
    if (outers.some(({ aborted }) => aborted)) abort();
    await abortable(before, controller.signal).catch(() => undefined);
    if (controller.signal.aborted) {
      end();
      void before.then(release);
      throw controller.signal.reason;
    }
    return { own: controller.signal, end, release };
  }

  async #count(messages: ChatMessage[]): Promise<number> {
    if (messages.length === 0) return 0;
    return (await this.#model.chatTokens(messages, this.#toolOptions({}))).length;
  }

  #checkRoom(requested: number): void {
    if (requested < this.#quota) return;
    throw Object.assign(fail("QuotaExceededError", `the input takes ${requested} tokens, the `
      + `context holds ${this.#quota}`), { requested, quota: this.#quota });
  }

  /** The messages of an input; the last one of the user also describes the constraint. */
  #toRead(input: PromptInput, { responseConstraint, omitResponseConstraintInput }: PromptOptions):
  ChatMessage[] {
    const given = messagesOf(input);
    if (!responseConstraint || omitResponseConstraintInput) return given;
    const at = given.map(({ role }) => role).lastIndexOf("user");
    if (at >= 0) given[at] = { ...given[at]!, content: `${String(given[at]!.content)}\n\nAnswer in `
      + `JSON of this schema: ${JSON.stringify(responseConstraint)}` };
    return given;
  }

  #toolOptions({ responseConstraint }: PromptOptions): { tools?: object[] } {
    if (this.#tools.length === 0 || responseConstraint) return {};
    return { tools: this.#tools.map(({ name, description, inputSchema }) =>
      ({ type: "function", function: { name, description, parameters: inputSchema } })) };
  }

  #chatOptions(signal: AbortSignal, options: PromptOptions) {
    const { responseConstraint } = options;
    if (responseConstraint instanceof RegExp)
      throw fail("NotSupportedError", "a constraint is a JSON schema, not a regular expression");
    return { signal, temperature: this.temperature, topK: this.topK, ...this.#toolOptions(options),
             ...(responseConstraint && { jsonSchema: responseConstraint }) };
  }

  async *#run(input: PromptInput, options: PromptOptions): AsyncGenerator<string, void> {
    const { own, end, release } = await this.#begin(options.signal);
    try {
      const given = this.#toRead(input, options), chat = this.#chatOptions(own, options);
      const system = this.#messages.filter(({ role }) => role === "system");
      this.#checkRoom(await this.#count([...system, ...given]));
      const continueLast = isPrefixed(input);
      let messages = [...this.#messages, ...given];
      for (let round = 0; ; round++) {
        const generation = this.#session.chat(messages, { ...chat, continueLast: continueLast && round === 0 });
        let content = "";
        const calls: Call[] = [];
        for await (const { spans } of generation)
          for (const span of spans) {
            const made = chat.tools ? callsOf(span) : undefined;
            calls.push(...made ?? []);
            if (made || span.kind === "reasoning") continue;
            content += span.text;
            yield span.text;
          }
        messages = this.#forget(messages, generation.leftOut);
        const last = messages.at(-1)!;
        if (continueLast && round === 0) messages[messages.length - 1] =
          { ...last, content: `${String(last.content)}${content}` };
        else messages.push(calledMessage(content, calls));
        if (calls.length === 0) break;
        if (round === MOST_ROUNDS)
          throw fail("OperationError", `the model went on calling tools after ${MOST_ROUNDS} rounds`);
        const results = Promise.all(calls.map((call) => this.#execute(call)));
        messages.push(...await abortable(results, own)); // it may never end
      }
      this.#usage = await this.#count(messages);
      this.#messages = messages;
    } catch (reason) {
      throw own.aborted ? own.reason : reason;
    } finally {
      end();
      release();
    }
  }

  async #execute({ id, name, given }: Call): Promise<ChatMessage> {
    const tool = this.#tools.find((known) => known.name === name);
    const result = tool ? await tool.execute(given as never) : `there is no tool '${name}'`;
    const content = typeof result === "string" ? result : JSON.stringify(result) ?? "";
    return { role: "tool", name, tool_call_id: id, content };
  }

  /** Without the oldest ones, which had no room. */
  #forget(messages: ChatMessage[], n: number): ChatMessage[] {
    if (n === 0) return [...messages];
    const event = new Event("quotaoverflow");
    this.dispatchEvent(event);
    this.onquotaoverflow?.(event);
    const first = messages.findIndex(({ role }) => role !== "system");
    return [...messages.slice(0, first), ...messages.slice(first + n)];
  }
}

function calledMessage(content: string, calls: Call[]): ChatMessage {
  if (calls.length === 0) return { role: "assistant", content };
  return { role: "assistant", content, tool_calls: calls.map(({ id, name, given }) =>
    ({ id, type: "function", function: { name, arguments: given } })) };
}

/** What Chrome has as `LanguageModel`. */
export interface LanguageModel {
  availability(options?: CreateOptions): Promise<Availability>;
  params(): Promise<{ defaultTopK: number; maxTopK: number; defaultTemperature: number;
                      maxTemperature: number }>;
  create(options?: CreateOptions): Promise<LanguageModelSession>;
}

/** For a model, or for one that is loaded with the first session; options: of its sessions. */
export function promptApi(source: Model | ModelLoader, options: SessionOptions = {}): LanguageModel {
  let state: Availability = typeof source === "function" ? "downloadable" : "available";
  let loading = typeof source === "function" ? undefined : Promise.resolve(source);
  const monitors = new Set<EventTarget>();
  const report = (loaded: number): void => monitors.forEach((monitor) => monitor.dispatchEvent(
    Object.assign(new Event("downloadprogress"), { loaded, total: 1 })));

  /** Those who wait for the load under way, and its end where the last one gives up. */
  let nWaiting = 0, ending = new AbortController();

  const load = (): Promise<Model> => loading ??= (async () => {
    const { signal } = ending = new AbortController();
    state = "downloading";
    report(0);
    try {
      const model = await (source as ModelLoader)({ signal,
        onProgress: ({ phase, done, total }) => {
          if (total && phase === "download" && !signal.aborted) report(Math.min(done / total, 1));
        } });
      if (signal.aborted) await model.close();
      signal.throwIfAborted();
      report(1);
      state = "available";
      return model;
    } catch (reason) {
      if (!signal.aborted) giveUp();
      throw reason;
    }
  })();

  const giveUp = (): void => {
    loading = undefined;
    state = "downloadable";
    ending.abort();
  };

  /** By one of several who may wait for the same load. */
  const waitFor = async (signal: AbortSignal | undefined): Promise<Model> => {
    nWaiting++;
    try {
      return await (signal ? abortable(load(), signal) : load());
    } catch (reason) {
      throw signal?.aborted ? signal.reason : reason;
    } finally {
      if (--nWaiting === 0 && state === "downloading") giveUp();
    }
  };

  return {
    async availability(given = {}) {
      try {
        refuseUnknown(given);
        return state;
      } catch {
        return "unavailable";
      }
    },
    async params() {
      return { defaultTopK: DEFAULTS.topK, maxTopK: MOST.topK,
               defaultTemperature: DEFAULTS.temperature, maxTemperature: MOST.temperature };
    },
    async create(given = {}) {
      const { signal, monitor, initialPrompts = [] } = given;
      signal?.throwIfAborted();
      refuseUnknown(given);
      const later = initialPrompts.findIndex(({ role }, i) => role === "system" && i > 0);
      if (later > 0) throw new TypeError("a system prompt is the first of the initial prompts");
      const target = new EventTarget();
      monitor?.(target);
      monitors.add(target);
      const model = await waitFor(signal).finally(() => monitors.delete(target));
      signal?.throwIfAborted();
      const session = await model.session(options);
      const { contextLength } = await session.stats();
      const made = new LanguageModelSession(model, session, [], 0, contextLength, given);
      try {
        await made.start(initialPrompts);
        signal?.throwIfAborted();
      } catch (reason) {
        made.destroy();
        throw reason;
      }
      signal?.addEventListener("abort", () => made.destroy(), { once: true });
      return made;
    },
  };
}
