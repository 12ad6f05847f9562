/** The panel that searches pasted texts by embeddings, and puts what it finds into the chat. */
import { announce, byId, make } from "./dom.js";
import { asSentence, formatCount } from "./format.js";
import { nearest, passagesOf } from "./passages.js";
import { makeField, makeSheet } from "./sheet.js";

/** @typedef {import("./passages.js").Vector} Vector */

/**
 * @typedef {{ readonly element: HTMLElement, readonly model: unknown,
 *   embed(texts: string[]): Promise<Vector[]> }} Embedder
 * element: where the visitor chooses its model; model: another value for each, undefined where there
 * is none yet.
 */

/** A cosine of two texts that have something to do with each other. */
const GOOD = 0.3;
/** Texts of one call: enough for a batch, few enough that it tells how far it is. */
const AT_ONCE = 16, MOST_FILE = 1024 * 1024;

export class SearchPanel {
  #embedder;
  #onUse;
  #texts = makeField("Texts", make("textarea", { id: "search-texts", rows: "7",
    placeholder: "Paste texts here, or drop text files" }));
  #count = make("p", { class: "hint", "aria-live": "polite" });
  #file = make("input", { id: "search-file", type: "file", multiple: true, "aria-label": "Text files" });
  #question = makeField("Question", make("input", { id: "search-question", autocomplete: "off",
    enterkeyhint: "search" }));
  #go = make("button", { type: "submit", class: "button" }, "Search");
  #said = make("p", { class: "notice", role: "status", hidden: true });
  #results = make("ol", { class: "passages", "aria-label": "Passages found" });
  #use = make("button", { type: "button", class: "button primary", disabled: true, onclick: () => this.#put() },
    "Put into the chat");
  #sheet;
  /** Of passages, by this model. @type {Map<string, Vector>} */
  #vectors = new Map();
  /** @type {unknown} */
  #model;
  #isBusy = false;

  /** onUse: puts a text before the visitor's message. @param {Embedder} embedder @param {(text: string) => void} onUse */
  constructor(embedder, onUse) {
    this.#embedder = embedder;
    this.#onUse = onUse;
    const form = make("form", { class: "search-form", novalidate: true }, this.#question.element, this.#go);
    this.#sheet = makeSheet("search", "Search texts", [this.#texts.element,
      make("div", { class: "row" }, make("button", { type: "button", class: "link",
        onclick: () => this.#file.click() }, "Add text files"), this.#file, this.#count),
      embedder.element, form, this.#said, this.#results], [make("button", { type: "button", class: "button",
      onclick: () => this.#sheet.close() }, "Close"), this.#use]);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#search();
    });
    this.#texts.input.addEventListener("input", () => this.#showCount());
    this.#file.addEventListener("change", () => {
      void this.#addFiles([...this.#file.files ?? []]);
      this.#file.value = "";
    });
    this.#listenToDrops();
    byId("search-button").addEventListener("click", () => {
      this.#showCount();
      this.#sheet.showModal();
      this.#texts.input.focus();
    });
  }

  /** Those on the panel are for its texts. */
  #listenToDrops() {
    /** @param {DragEvent} event */
    const onDrag = (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.type === "drop") void this.#addFiles([...event.dataTransfer.files]);
    };
    for (const type of /** @type {const} */ (["dragenter", "dragover", "drop"]))
      this.#sheet.addEventListener(type, onDrag);
  }

  /** @param {File[]} files */
  async #addFiles(files) {
    const texts = [this.#texts.input.value.trimEnd()];
    this.#texts.say("");
    for (const file of files) {
      const text = file.size <= MOST_FILE ? await file.text() : "\0";
      if (text.includes("\0")) this.#texts.say(`${file.name} is not a text, or is too long.`);
      else texts.push(text.trim());
    }
    this.#texts.input.value = texts.filter((text) => text !== "").join("\n\n");
    this.#showCount();
  }

  #showCount() {
    const n = passagesOf(this.#texts.input.value).length;
    this.#count.textContent = n === 0 ? "" : `${formatCount(n)} ${n === 1 ? "passage" : "passages"}`;
  }

  /** @param {string} text */
  #say(text) {
    this.#said.textContent = text;
    this.#said.hidden = text === "";
  }

  /**
   * Vectors of texts; those that are known are not computed again.
   * @param {string[]} texts @returns {Promise<Vector[]>}
   */
  async #embed(texts) {
    if (this.#model !== this.#embedder.model) this.#vectors.clear();
    this.#model = this.#embedder.model;
    const missing = texts.filter((text) => !this.#vectors.has(text));
    for (let i = 0; i < missing.length; i += AT_ONCE) {
      if (missing.length > AT_ONCE) this.#say(`Reading passage ${formatCount(i + 1)} of ${formatCount(missing.length)} …`);
      const batch = missing.slice(i, i + AT_ONCE);
      const vectors = await this.#embedder.embed(batch);
      if (this.#model !== this.#embedder.model) return this.#embed(texts); // another was chosen meanwhile
      batch.forEach((text, k) => this.#vectors.set(text, /** @type {Vector} */ (vectors[k])));
    }
    return texts.map((text) => /** @type {Vector} */ (this.#vectors.get(text)));
  }

  async #search() {
    const passages = passagesOf(this.#texts.input.value), question = this.#question.input.value.trim();
    this.#texts.say(passages.length === 0 ? "There is no text to search yet." : "");
    this.#question.say(question === "" ? "What do you want to find?" : "");
    if (passages.length === 0) return this.#texts.input.focus();
    if (question === "") return this.#question.input.focus();
    if (this.#embedder.model === undefined) return this.#say("There is no model for embeddings yet: load one above.");
    if (this.#isBusy) return;
    this.#isBusy = this.#go.disabled = true;
    this.#results.replaceChildren();
    this.#use.disabled = true;
    this.#say("Searching …");
    try {
      const [asked, ...vectors] = await this.#embed([question, ...passages]);
      this.#show(nearest(/** @type {Vector} */ (asked), passages, vectors));
      this.#say("");
    } catch (reason) {
      this.#say(`${asSentence(/** @type {Error} */ (reason).message)} Not every model gives embeddings: `
        + "choose an encoder, as all-MiniLM-L6-v2 is.");
    } finally {
      this.#isBusy = this.#go.disabled = false;
    }
  }

  /** @param {{ text: string, score: number }[]} found */
  #show(found) {
    this.#results.replaceChildren(...found.map(({ text, score }, i) => make("li", {},
      make("label", {}, make("input", { type: "checkbox", checked: i === 0 || (i < 3 && score >= GOOD) }), make("span", { class: "figures muted" },
        score.toFixed(3)), make("span", { class: "passage" }, text)))));
    this.#use.disabled = false;
    announce(`${found.length} passages, the nearest with ${found[0]?.score.toFixed(3)}.`);
  }

  #put() {
    const chosen = [...this.#results.children].filter((row) => row.querySelector("input")?.checked)
      .map((row) => row.querySelector(".passage")?.textContent ?? "");
    if (chosen.length === 0) return this.#say("Choose at least one passage.");
    this.#sheet.close();
    this.#onUse(`Answer from these passages:\n\n${chosen.map((text, i) => `[${i + 1}] ${text}`).join("\n\n")}\n\n`
      + this.#question.input.value.trim());
  }
}
