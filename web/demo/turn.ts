/** An answer on the page, which grows. */
import type { AnswerSpan, Token } from "libwick";
import { callOf, callsIn, makeCallCard, type Call } from "./calls.js";
import type { Message } from "./chats.js";
import { copyText, make, makeTool } from "./dom.js";
import { renderMarkdown } from "./markdown.js";

/** Of an answer, or of a text that goes on. */
export type AnyToken = Token & { spans?: AnswerSpan[] };

/** An answer, or the continuation of a text; drawn at most once for each picture on the screen. */
export class AnswerView {
  readonly element: HTMLElement;
  readonly #body = make("div", { class: "body" });
  readonly #thinking = make("details", { class: "thinking", hidden: true, open: true },
    make("summary", {}, "Thinking"), make("p"));
  readonly #note = make("p", { class: "notice", hidden: true });
  readonly #tools = make("div", { class: "turn-tools" });
  readonly #given: string | undefined;
  readonly #callList = make("div");
  /** Of tools, which it makes where takesCalls is set. */
  readonly calls: Call[] = [];
  takesCalls = false;
  /** It has a call that makes no sense, and stays text. */
  hasUnreadCall = false;
  #text = "";
  #reasoning = "";
  #content = "";
  #ending: Pick<Message, "figures" | "note"> = {};
  #isDue = false;

  /** given: the beginning of a text that goes on; undefined: an answer. */
  constructor(given: string | undefined, onRetry: () => void) {
    this.#given = given;
    const copy = makeTool("Copy", "copy", () => void copyText(copy, this.#shareable()));
    this.#tools.append(copy, makeTool("Try again", "retry", onRetry, "retry"));
    const label = given === undefined ? "Answer" : "Text";
    this.element = make("article", { class: "turn answer busy", "aria-label": label },
      this.#thinking, this.#body, this.#callList, this.#note, this.#tools);
    this.#draw();
  }

  /** All that the model wrote. */
  get text(): string {
    return this.#text;
  }

  /** The same without its thinking. */
  get content(): string {
    return this.#content.trim();
  }

  add({ text, spans = [] }: Pick<AnyToken, "text" | "spans">): void {
    this.#text += text;
    for (const { kind, text, tag = "", calls: made } of spans) {
      const calls = this.takesCalls ? made?.map((call) => callOf(call.name, call.arguments)) : undefined;
      this.hasUnreadCall ||= kind === "call" && this.takesCalls && !calls && tag !== "";
      if (calls) this.calls.push(...calls);
      else if (kind === "reasoning") this.#reasoning += text;
      else this.#content += tag + text;
    }
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => {
      this.#isDue = false;
      this.#draw();
    });
  }

  /** All of its text is a call of one of these tools: of a model whose template knows none. */
  takeTextAsCalls(names: string[]): void {
    const calls = this.calls.length === 0 ? callsIn(this.content) ?? [] : [];
    if (!this.takesCalls || !calls.every(({ name }) => names.includes(name))) return;
    this.calls.push(...calls);
    if (calls.length === 0) return;
    this.#content = "";
    this.#draw();
  }

  /** The cards of its calls. */
  showCalls(): ReturnType<typeof makeCallCard>[] {
    const cards = this.calls.map(makeCallCard);
    this.#callList.replaceChildren(...cards.map(({ element }) => element));
    return cards;
  }

  /** As it is kept. */
  get message(): Message {
    const isText = this.#given !== undefined, reasoning = this.#reasoning.trim();
    return { role: "assistant", content: isText ? this.#text : this.content,
      ...(reasoning !== "" && { reasoning }),
      ...(this.calls.length > 0 && { calls: this.calls }), ...this.#ending };
  }

  /** One that was kept. */
  restore({ content, reasoning = "", figures = "", note = "", calls = [] }: Message): void {
    this.calls.push(...calls);
    this.#text = this.#content = content;
    this.#reasoning = reasoning;
    this.finish(figures, note);
  }

  /** It is complete; figures and a note stay below it. */
  finish(figures: string, note: string): void {
    this.#ending = { ...(figures !== "" && { figures }), ...(note !== "" && { note }) };
    this.#draw();
    this.showCalls();
    this.element.classList.remove("busy");
    this.#thinking.open = false;
    this.#note.hidden = note === "";
    this.#note.textContent = note;
    this.#tools.querySelector(".figures")?.remove();
    this.#tools.append(make("span", { class: "figures muted" }, figures));
  }

  #shareable(): string {
    return this.#given === undefined ? this.content : this.#given + this.#text;
  }

  #draw(): void {
    if (this.#given !== undefined) {
      const [given, text] = [make("span", { class: "given" }, this.#given), this.#text];
      this.#body.replaceChildren(make("p", { class: "story" }, given, text));
      return;
    }
    const reasoning = this.#reasoning.trim();
    this.#thinking.hidden = reasoning === "";
    this.#thinking.lastElementChild!.textContent = reasoning;
    renderMarkdown(this.#body, this.#content);
  }
}
