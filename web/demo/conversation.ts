/** A conversation with the model that is open: asking, answering, stopping, trying again, and
 * keeping it. */
import type { ChatMessage, EndReason, Generation, Token } from "libwick";
import { newChat, titleOf, type Chat, type Chats, type Message } from "./chats.js";
import { announce, byId } from "./dom.js";
import { formatCount, formatRate, formatTime } from "./format.js";
import type { Host } from "./host.js";
import { describeProblem, isCancelled } from "./problems.js";
import { generateOptions } from "./settings.js";
import type { Settings } from "./settings.js";
import { makeQuestion } from "./question.js";
import { AnswerView, type AnyToken } from "./turn.js";

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
  /** Another conversation, which begins as one did, is there for this question. */
  onEdit(question: string): void;
}

export class Conversation {
  readonly #host: Host;
  readonly #settings: () => Settings;
  readonly #events: ConversationEvents;
  readonly #chats: Chats;
  readonly #log = byId("log");
  readonly #scroll = byId("scroll");
  #chat = newChat();
  #turns: Turn[] = [];
  #controller: AbortController | undefined;
  #running: Promise<void> | undefined;

  constructor(host: Host, settings: () => Settings, chats: Chats, events: ConversationEvents) {
    this.#host = host;
    this.#chats = chats;
    this.#settings = settings;
    this.#events = events;
  }

  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  get isEmpty(): boolean {
    return this.#turns.length === 0;
  }

  /** As it is kept. */
  get chat(): Chat {
    return this.#chat;
  }

  /** Answers, or goes on with a text. */
  async send(prompt: string): Promise<void> {
    const opened = this.#host.opened;
    if (!opened || this.#running) return;
    const turn = this.#add(prompt, opened.canChat);
    this.#chat.title ||= titleOf(prompt);
    this.#scroll.scrollTop = this.#scroll.scrollHeight;
    this.#running = this.#generate(turn);
    await this.#running;
  }

  /** Ends the answer that is being written; what there is of it stays. */
  async stop(): Promise<void> {
    this.#controller?.abort();
    await this.#running;
  }

  /** Shows one that was kept, or a new one, in a session that is new. */
  async show(chat = newChat()): Promise<void> {
    await this.stop();
    this.#chat = chat;
    this.#chats.setCurrent(chat.id);
    this.#turns = [];
    this.#log.replaceChildren();
    let turn: Turn | undefined;
    for (const message of chat.messages) {
      if (message.role === "user") turn = this.#add(message.content, this.#host.opened!.canChat);
      else turn?.answer.restore(message);
    }
    this.#scroll.scrollTop = this.#scroll.scrollHeight;
  }

  /** The same in place of the one before, whose session goes. */
  async open(chat?: Chat): Promise<void> {
    await this.show(chat);
    await this.#host.renewSession(this.#settings());
  }

  /** A turn whose answer is still to come. */
  #add(prompt: string, canChat: boolean): Turn {
    const answer = new AnswerView(canChat ? undefined : prompt, () => void this.#retry(turn));
    const elements = canChat
      ? [makeQuestion(prompt, () => void this.#edit(turn)), answer.element] : [answer.element];
    const turn: Turn = { prompt, answer, elements, isVoid: false };
    this.#turns.push(turn);
    this.#log.append(...elements);
    return turn;
  }

  async #edit(turn: Turn): Promise<void> {
    if (this.#running) return;
    await this.open(newChat(this.#kept(this.#turns.indexOf(turn))));
    this.#events.onEdit(turn.prompt);
  }

  /** The first turns that have answers, as they are kept. */
  #kept(n = this.#turns.length): Message[] {
    return this.#turns.slice(0, n).filter(({ isVoid }) => !isVoid)
      .flatMap(({ prompt, answer }) => [{ role: "user", content: prompt }, answer.message]);
  }

  #keep(): void {
    this.#chat.messages = this.#kept();
    if (this.#chat.messages.length > 0 && !this.#chats.save(this.#chat))
      announce("The browser has no room to keep this chat.");
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
      this.#keep();
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
