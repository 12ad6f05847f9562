/** A conversation with the model that is open: asking, answering, stopping, trying again, and
 * keeping it. */
import type { ChatMessage, EndReason, Generation, Token } from "libwick";
import { answerCall, asPlain, asSent, describeCalls, describeTools, MOST_ROUNDS } from "./calls.js";
import { newChat, titleOf, type Chat, type Chats, type Message } from "./chats.js";
import { announce, byId } from "./dom.js";
import { formatCount, formatRate, formatTime } from "./format.js";
import type { Host } from "./host.js";
import { describeProblem, isCancelled } from "./problems.js";
import { generateOptions } from "./settings.js";
import type { Settings } from "./settings.js";
import { makeQuestion } from "./question.js";
import { asFunctions, toolsOf, type Tool } from "./tools.js";
import { AnswerView, type AnyToken } from "./turn.js";

const NOTES: Partial<Record<EndReason, string>> = {
  "context-full": "The context is full. Start a new chat, or set a longer context.",
  "max-tokens": "The longest answer that the settings allow ends here.",
};

interface Turn {
  prompt: string;
  /** More than one where the model called tools: each but the last with the calls that it made. */
  answers: AnswerView[];
  elements: HTMLElement[];
  /** The prompt had no answer, so it does not belong to the conversation. */
  isVoid: boolean;
}

/** Not an answer that is still to come. */
const isSaid = ({ role, content, reasoning, calls }: Message): boolean =>
  role === "user" || content !== "" || reasoning !== undefined || calls !== undefined;

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

  /** Answers, or goes on with a text; isAgain: in place of an answer that was kept. */
  async send(prompt: string, isAgain = false): Promise<void> {
    const opened = this.#host.opened;
    if (!opened || this.#running) return;
    const turn = this.#add(prompt, opened.canChat);
    this.#chat.title ||= titleOf(prompt);
    if (!isAgain) this.#keep(); // the page may be left before there is an answer
    this.#scroll.scrollTop = this.#scroll.scrollHeight;
    this.#running = this.#generate(turn).finally(() => {
      this.#running = undefined;
      this.#controller = undefined;
      this.#events.onBusy(false);
    });
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
    byId("not-kept").hidden = true;
    this.#turns = [];
    this.#log.replaceChildren();
    let turn: Turn | undefined;
    for (const message of chat.messages) {
      if (message.role === "user") {
        turn = this.#add(message.content, this.#host.opened!.canChat);
        turn.isVoid = true; // until its answer comes
      } else if (turn) {
        turn.isVoid = false;
        const isFirst = turn.answers[0]!.text === "" && turn.answers[0]!.calls.length === 0;
        (isFirst ? turn.answers[0]! : this.#addAnswer(turn)).restore(message);
      }
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
    const turn: Turn = { prompt, answers: [], elements: [], isVoid: false };
    if (canChat) turn.elements.push(makeQuestion(prompt, () => void this.#edit(turn)));
    this.#log.append(...turn.elements);
    this.#turns.push(turn);
    this.#addAnswer(turn, canChat ? undefined : prompt);
    return turn;
  }

  #addAnswer(turn: Turn, given?: string): AnswerView {
    const answer = new AnswerView(given, () => void this.#retry(turn));
    turn.answers.push(answer);
    turn.elements.push(answer.element);
    this.#log.append(answer.element);
    return answer;
  }

  async #edit(turn: Turn): Promise<void> {
    if (this.#running) return;
    await this.open(newChat(this.#kept(this.#turns.indexOf(turn)), this.#chat.toolsOff));
    this.#events.onEdit(turn.prompt);
  }

  /** The first turns that have answers, as they are kept. */
  #kept(n = this.#turns.length): Message[] {
    return this.#turns.slice(0, n).filter(({ isVoid }) => !isVoid)
      .flatMap(({ prompt, answers }) =>
        [{ role: "user", content: prompt }, ...answers.map(({ message }) => message)]);
  }

  /** What is kept stays where the last question has no answer, also one that was tried again. */
  #keep(): void {
    if (this.#turns.at(-1)?.isVoid) return;
    this.#chat.messages = this.#kept().filter(isSaid);
    if (this.#chat.messages.length > 0) byId("not-kept").hidden = this.#chats.save(this.#chat);
  }

  /** The last turn again; only it has the button. */
  async #retry(turn: Turn): Promise<void> {
    if (this.#running || this.#turns.at(-1) !== turn) return;
    this.#turns.pop();
    for (const element of turn.elements) element.remove();
    await this.send(turn.prompt, true);
  }

  async #begin(tools: Tool[], signal: AbortSignal): Promise<Generation<AnyToken>> {
    const settings = this.#settings();
    const { session: coming, canChat, knowsTools } = this.#host.opened!;
    const options = { ...generateOptions(settings), signal };
    const session = await coming;
    if (!canChat) {
      await session.reset();
      return session.generate(this.#textToRead(), options);
    }
    const isNative = tools.length > 0 && knowsTools;
    return session.chat(this.#messages(settings, tools),
      { ...options, ...(isNative && { tools: asFunctions(tools) }) });
  }

  #messages({ systemPrompt }: Settings, tools: Tool[]): ChatMessage[] {
    const { knowsTools, knowsSystem } = this.#host.opened!;
    const told = knowsTools || tools.length === 0 ? "" : describeTools(tools);
    const system = [systemPrompt.trim(), told].filter((text) => text !== "").join("\n\n");
    // The last answer is still to come.
    const kept = this.#kept()
      .filter(({ role, content, calls }) => role === "user" || content !== "" || calls);
    if (!knowsSystem && system !== "")
      kept[0] = { role: "user", content: `${system}\n\n${kept[0]!.content}` };
    const messages = knowsTools ? asSent(kept, true) : asPlain(kept);
    return knowsSystem && system !== "" ? [{ role: "system", content: system }, ...messages] : messages;
  }

  /** An answer, with the calls of tools that come before it. */
  async #generate(turn: Turn): Promise<void> {
    this.#controller = new AbortController();
    this.#events.onBusy(true);
    announce("The model is answering.");
    const { signal } = this.#controller;
    // At last the answer comes without tools.
    for (let round = 0; await this.#answer(turn, round < MOST_ROUNDS ? this.#tools : [], signal);
      round++) this.#addAnswer(turn);
  }

  get #tools(): Tool[] {
    return this.#host.opened?.canChat ? toolsOf(this.#chat) : [];
  }

  /** The last answer of a turn. True: it has called tools, and goes on with their results. */
  async #answer(turn: Turn, tools: Tool[], signal: AbortSignal): Promise<boolean> {
    const answer = turn.answers.at(-1)!;
    const pace = new Pace();
    let note = "";
    answer.takesCalls = tools.length > 0;
    try {
      const generation = await this.#begin(tools, signal);
      for await (const token of generation) {
        pace.count(token);
        this.#show(answer, token);
        this.#events.onFigures(pace.describe());
      }
      note = NOTES[generation.reason ?? "none"] ?? (generation.leftOut === 0 ? ""
        : "The oldest turns have no room in the context: the model does not see them.");
      if (answer.hasUnreadCall)
        note ||= "The model's call of a tool makes no sense, and stays text.";
      answer.takeTextAsCalls(tools.map(({ name }) => name));
      await this.#answerCalls(answer, tools, signal);
    } catch (reason) {
      turn.isVoid = answer.text === "" && turn.answers.length === 1;
      if (!isCancelled(reason) && !signal.aborted)
        note = Object.values(describeProblem(reason)).join(" ").trim();
      else if (answer.text === "") note = "Stopped before the first word.";
    }
    answer.finish(pace.describe(), note);
    this.#keep();
    announce([answer.calls.length > 0 ? describeCalls(answer.calls) : answer.text, note].join(" "));
    return answer.calls.length > 0 && !signal.aborted
      && answer.calls.every(({ result }) => result !== undefined);
  }

  async #answerCalls(answer: AnswerView, tools: Tool[], signal: AbortSignal): Promise<void> {
    if (answer.calls.length === 0) return;
    const cards = answer.showCalls();
    this.#scroll.scrollTop = this.#scroll.scrollHeight;
    for (const [i, call] of answer.calls.entries()) {
      await answerCall(call, tools, cards[i]!.element, signal);
      cards[i]!.draw();
    }
  }

  /** Everything so far: prompts, what was made of them, and the last prompt. */
  #textToRead(): string {
    return this.#taken().map(({ prompt, answers }) => prompt + answers[0]!.text).join("");
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
