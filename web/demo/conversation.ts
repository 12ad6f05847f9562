/** A conversation with the model that is open: asking, answering, stopping, trying again. */
import type { ChatMessage, EndReason, Generation, Token } from "libwick";
import { announce, byId } from "./dom.js";
import { formatCount, formatRate, formatTime } from "./format.js";
import type { Host } from "./host.js";
import { describeProblem, isCancelled } from "./problems.js";
import { generateOptions } from "./settings.js";
import type { Settings } from "./settings.js";
import { AnswerView, type AnyToken, makeQuestion } from "./turn.js";

const NOTES: Partial<Record<EndReason, string>> = {
  "context-full": "The context is full. Start a new chat, or set a longer context.",
  "max-tokens": "The longest answer that the settings allow ends here.",
};

interface Turn {
  prompt: string;
  answer: AnswerView;
  elements: HTMLElement[];
  /** The prompt had no answer, so it does not belong to the conversation. */
  isVoid: boolean;
}

/** Times of one answer's tokens, in milliseconds since it was asked for. */
class Pace {
  #n = 0;
  #first = 0;
  #last = 0;

  count({ time }: Token): void {
    if (this.#n++ === 0) this.#first = time;
    this.#last = time;
  }

  describe(): string {
    if (this.#n === 0) return "";
    const rate = this.#n > 1 ? (this.#n - 1) / (this.#last - this.#first) * 1000 : 0;
    const parts = [`first after ${formatTime(this.#first)}`,
      `${formatCount(this.#n)} ${this.#n === 1 ? "token" : "tokens"}`];
    return [...(rate > 0 ? [`${formatRate(rate)} tokens/s`] : []), ...parts].join(" · ");
  }
}

export interface ConversationEvents {
  /** Generating has begun or ended. */
  onBusy(isBusy: boolean): void;
  /** While it generates: how fast. */
  onFigures(text: string): void;
}

export class Conversation {
  readonly #host: Host;
  readonly #settings: () => Settings;
  readonly #events: ConversationEvents;
  readonly #log = byId("log");
  readonly #scroll = byId("scroll");
  #turns: Turn[] = [];
  #controller: AbortController | undefined;
  #running: Promise<void> | undefined;

  constructor(host: Host, settings: () => Settings, events: ConversationEvents) {
    this.#host = host;
    this.#settings = settings;
    this.#events = events;
  }

  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  get isEmpty(): boolean {
    return this.#turns.length === 0;
  }

  /** Answers, or goes on with a text. */
  async send(prompt: string): Promise<void> {
    const opened = this.#host.opened;
    if (!opened || this.#running) return;
    const answer = new AnswerView(opened.canChat ? undefined : prompt,
                                  () => void this.#retry(turn));
    const elements = opened.canChat ? [makeQuestion(prompt), answer.element] : [answer.element];
    const turn: Turn = { prompt, answer, elements, isVoid: false };
    this.#turns.push(turn);
    this.#log.append(...elements);
    this.#scroll.scrollTop = this.#scroll.scrollHeight;
    this.#running = this.#generate(turn);
    await this.#running;
  }

  /** Ends the answer that is being written; what there is of it stays. */
  async stop(): Promise<void> {
    this.#controller?.abort();
    await this.#running;
  }

  /** Nothing has been said yet, in a session that is new. */
  async forget(): Promise<void> {
    await this.stop();
    this.#turns = [];
    this.#log.replaceChildren();
  }

  /** Forgets everything. */
  async clear(): Promise<void> {
    await this.forget();
    await this.#host.renewSession(this.#settings());
  }

  /** The last turn again; only it has the button. */
  async #retry(turn: Turn): Promise<void> {
    if (this.#running || this.#turns.at(-1) !== turn) return;
    this.#turns.pop();
    for (const element of turn.elements) element.remove();
    await this.send(turn.prompt);
  }

  async #begin(signal: AbortSignal): Promise<Generation<AnyToken>> {
    const settings = this.#settings();
    const { session: coming, canChat } = this.#host.opened!;
    const options = { ...generateOptions(settings), signal };
    const session = await coming;
    if (canChat) return session.chat(this.#messages(settings), options);
    await session.reset();
    return session.generate(this.#textToRead(), options);
  }

  #messages({ systemPrompt }: Settings): ChatMessage[] {
    const system = systemPrompt.trim();
    const messages: ChatMessage[] = system === "" ? [] : [{ role: "system", content: system }];
    const turns = this.#taken();
    turns.forEach(({ prompt, answer }, i) => {
      messages.push({ role: "user", content: prompt });
      if (i < turns.length - 1)
        messages.push({ role: "assistant", content: answer.content });
    });
    return messages;
  }

  async #generate(turn: Turn): Promise<void> {
    const { answer } = turn;
    const pace = new Pace();
    this.#controller = new AbortController();
    this.#events.onBusy(true);
    announce("The model is answering.");
    let note = "";
    try {
      const generation = await this.#begin(this.#controller.signal);
      for await (const token of generation) {
        pace.count(token);
        this.#show(answer, token);
        this.#events.onFigures(pace.describe());
      }
      note = NOTES[generation.reason ?? "none"] ?? (generation.leftOut === 0 ? ""
        : "The oldest turns have no room in the context: the model does not see them.");
    } catch (reason) {
      turn.isVoid = answer.text === "";
      if (!isCancelled(reason)) note = Object.values(describeProblem(reason)).join(" ").trim();
      else if (turn.isVoid) note = "Stopped before the first word.";
    } finally {
      this.#running = undefined;
      this.#controller = undefined;
      answer.finish(pace.describe(), note);
      announce([answer.text, note].join(" "));
      this.#events.onBusy(false);
    }
  }

  /** Everything so far: prompts, what was made of them, and the last prompt. */
  #textToRead(): string {
    return this.#taken().map(({ prompt, answer }) => prompt + answer.text).join("");
  }

  #taken(): Turn[] {
    return this.#turns.filter(({ isVoid }) => !isVoid);
  }

  /** The page follows the text unless the visitor has scrolled up. */
  #show(answer: AnswerView, token: AnyToken): void {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroll;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < 80;
    answer.add(token);
    if (isAtEnd) requestAnimationFrame(() => {
      this.#scroll.scrollTop = this.#scroll.scrollHeight;
    });
  }
}
