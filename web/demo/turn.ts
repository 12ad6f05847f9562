/** One turn of a conversation on the page: what was asked, or an answer that grows. */
import type { AnswerSpan, Token } from "libwick";
import { copyText, make, makeIcon } from "./dom.js";
import { renderMarkdown } from "./markdown.js";

/** Of an answer, or of a text that goes on. */
export type AnyToken = Token & { spans?: AnswerSpan[] };

/** What the visitor wrote. */
export function makeQuestion(text: string): HTMLElement {
  return make("article", { class: "turn question", "aria-label": "You" }, make("p", {}, text));
}

/** An answer, or the continuation of a text; drawn at most once for each picture on the screen. */
export class AnswerView {
  readonly element: HTMLElement;
  readonly #body = make("div", { class: "body" });
  readonly #thinking = make("details", { class: "thinking", hidden: true, open: true },
    make("summary", {}, "Thinking"), make("p"));
  readonly #note = make("p", { class: "notice", hidden: true });
  readonly #tools = make("div", { class: "turn-tools" });
  readonly #given: string | undefined;
  #text = "";
  #reasoning = "";
  #content = "";
  #isDue = false;

  /** given: the beginning of a text that goes on; undefined: an answer. */
  constructor(given: string | undefined, onRetry: () => void) {
    this.#given = given;
    const copy = make("button", { type: "button", class: "tool small", "aria-label": "Copy",
      title: "Copy", onclick: () => void copyText(copy, this.#shareable()) }, makeIcon("copy"));
    const retry = make("button", { type: "button", class: "tool small retry", title: "Try again",
      "aria-label": "Try again", onclick: onRetry }, makeIcon("retry"));
    this.#tools.append(copy, retry);
    const label = given === undefined ? "Answer" : "Text";
    this.element = make("article", { class: "turn answer busy", "aria-label": label },
      this.#thinking, this.#body, this.#note, this.#tools);
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
    for (const { kind, text, tag = "" } of spans) {
      if (kind === "reasoning") this.#reasoning += text;
      else this.#content += tag + text;
    }
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => {
      this.#isDue = false;
      this.#draw();
    });
  }

  /** It is complete; figures and a note stay below it. */
  finish(figures: string, note: string): void {
    this.#draw();
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
