/** The field for a message: it grows with its text, Enter sends, and files add theirs. */
import { announce, byId } from "./dom.js";

const MOST_FILE = 256 * 1024;

export class PromptField {
  #field = /** @type {HTMLTextAreaElement} */ (byId("prompt"));

  /** @param {() => void} onSubmit */
  constructor(onSubmit) {
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      onSubmit();
    });
    this.#field.addEventListener("input", () => this.#fit());
    this.#field.addEventListener("keydown", (event) => {
      // Safari ends the composition before the Enter that does so: 229 is that one.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      onSubmit();
    });
  }

  get text() {
    return this.#field.value;
  }

  set text(text) {
    this.#field.value = text;
    this.#fit();
  }

  /** @param {string} text */
  set placeholder(text) {
    this.#field.placeholder = text;
  }

  focus() {
    this.#field.focus();
  }

  #fit() {
    this.#field.style.height = "auto";
    this.#field.style.height = `${this.#field.scrollHeight}px`;
  }

  /** Before what is there. @param {string} text */
  putFirst(text) {
    this.text = [text, this.text.trim()].filter((part) => part !== "").join("\n\n");
    this.focus();
  }

  /** Texts of files become a part of the message. @param {Iterable<File>} files */
  async addFiles(files) {
    const texts = [], refused = [];
    for (const file of files) {
      const text = file.size <= MOST_FILE ? await file.text().catch(() => "\0") : "\0";
      if (text.includes("\0")) refused.push(file.name);
      else texts.push(`${file.name}:\n\`\`\`\n${text.trimEnd()}\n\`\`\``);
    }
    if (refused.length > 0) {
      const said = `${refused.join(", ")}: not a text, or too long.`;
      announce(said);
      byId("figures").textContent = said;
    }
    const parts = [this.text.trimEnd(), ...texts, ""];
    this.text = parts.filter((text, i) => text !== "" || i > 0).join("\n\n");
    this.focus();
  }
}
