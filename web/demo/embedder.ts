/** The model that the search makes its vectors by, in this tab: an encoder of its own, or the chat's. */
import { Wick, type Model } from "libwick";
import { announce, make } from "./dom.js";
import { nameOfUrl } from "./format.js";
import type { Host } from "./host.js";
import { describeProblem } from "./problems.js";
import { makeField } from "./sheet.js";
import type { Settings } from "./settings.js";

/** all-MiniLM-L6-v2 in 25 MB. */
const FIRST = "hf:second-state/All-MiniLM-L6-v2-Embedding-GGUF:all-MiniLM-L6-v2-Q8_0.gguf";

export class TabEmbedder {
  readonly element: HTMLElement;
  readonly #host: Host;
  readonly #settings: () => Settings;
  readonly #link = makeField("Model for embeddings", make("input", { id: "search-model", value: FIRST,
    autocomplete: "off", spellcheck: "false" }));
  readonly #file = make("input", { id: "search-model-file", type: "file", accept: ".gguf",
    "aria-label": "GGUF file" });
  readonly #load = make("button", { type: "submit", class: "button" }, "Load");
  readonly #state = make("p", { class: "hint", role: "status" });
  #opened: { wick: Wick; model: Model } | undefined;
  /** Vectors by the chat's model, which the visitor asked for. */
  #isChats = false;

  constructor(host: Host, settings: () => Settings) {
    this.#host = host;
    this.#settings = settings;
    const form = make("form", { class: "search-form", novalidate: true }, this.#link.element, this.#load);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const url = this.#link.input.value.trim();
      void this.#open(url, /^https?:/i.test(url) ? nameOfUrl(url) : url.split(/[/:]/).at(-1)!);
    });
    this.#file.addEventListener("change", () => {
      const file = this.#file.files?.[0];
      if (file) void this.#open(file, file.name);
      this.#file.value = "";
    });
    this.element = make("div", {}, form, make("div", { class: "row" },
      make("button", { type: "button", class: "link", onclick: () => this.#file.click() }, "Choose a GGUF file"),
      this.#file, make("button", { type: "button", class: "link", onclick: () => this.#useChats() },
        "Use the chat's model")), this.#state);
  }

  get model(): Model | undefined {
    return this.#isChats ? this.#host.opened?.model : this.#opened?.model;
  }

  async embed(texts: string[]): Promise<Float32Array[]> {
    if (!this.model) throw new Error("the model was closed");
    return this.model.embed(texts);
  }

  #useChats(): void {
    this.#isChats = true;
    this.#state.textContent = `Vectors by ${this.#host.opened?.choice.name}. `
      + "A model that is made for embeddings finds more.";
  }

  async #open(source: string | File, name: string): Promise<void> {
    if (this.#load.disabled) return; // one is being loaded
    this.#load.disabled = true;
    this.#link.say("");
    this.#state.textContent = `Loading ${name} …`;
    const { backend, math, threads } = this.#settings();
    let wick: Wick | undefined;
    try {
      await this.#opened?.wick.close();
      this.#opened = undefined;
      wick = await Wick.open({ backend, math, ...(threads > 0 && { threads }) });
      const model = await wick.load(source, { onProgress: ({ phase, done, total }) => {
        if (phase === "download" && total)
          this.#state.textContent = `Downloading ${name}: ${Math.floor(done / total * 100)} %`;
      } });
      this.#opened = { wick, model };
      this.#isChats = false;
      this.#state.textContent = `Vectors by ${name}.`;
      announce(`${name} is ready.`);
    } catch (reason) {
      await wick?.close().catch(() => undefined);
      this.#state.textContent = "";
      this.#link.say(Object.values(describeProblem(reason)).join(" ").trim());
    } finally {
      this.#load.disabled = false;
    }
  }
}
