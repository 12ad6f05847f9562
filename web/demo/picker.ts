/** The start page: models to choose from, a file of the visitor's, a link. */
import { byId, make, makeIcon } from "./dom.js";
import { formatBytes, formatCount, nameOfUrl } from "./format.js";
import type { Choice } from "./host.js";
import { isKept } from "./kept.js";
import { describeProblem } from "./problems.js";

/** An entry of models.json, which whoever hosts the demo may change. */
type Listed = Choice & Required<Pick<Choice, "detail" | "url">>;

const baseName = (name: string): string => name.replace(/\.gguf$/i, "");

const hasFiles = ({ dataTransfer }: DragEvent): boolean =>
  dataTransfer?.types.includes("Files") ?? false;

/** Files of one model, in the order of their names. */
function choiceOfFiles(files: Iterable<File>): Choice | undefined {
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  const [first] = sorted;
  if (!first) return undefined;
  const bytes = sorted.reduce((sum, { size }) => sum + size, 0);
  return { name: baseName(first.name), source: sorted.length === 1 ? first : sorted, bytes };
}

export class Picker {
  readonly #onChoice: (choice: Choice) => void;
  readonly #takesFiles: (files: File[]) => boolean;
  readonly #veil = byId("drop-veil");
  #listed: Listed[] = [];

  /** takesFiles: takes files that were dropped and are not models; whether it did. */
  constructor(onChoice: (choice: Choice) => void, takesFiles: (files: File[]) => boolean) {
    this.#onChoice = onChoice;
    this.#takesFiles = takesFiles;
    this.#listenToFiles();
    this.#listenToLink();
    void this.#showCatalogue();
  }

  #listenToFiles(): void {
    const input = byId<HTMLInputElement>("file");
    byId("choose-file").addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.#chooseFiles(input.files ?? []);
      input.value = "";
    });
    addEventListener("dragenter", (event) => this.#onDrag(event));
    addEventListener("dragover", (event) => this.#onDrag(event));
    addEventListener("dragleave", ({ relatedTarget }) => {
      if (!relatedTarget) this.#veil.hidden = true;
    });
    addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      this.#veil.hidden = true;
      if (document.querySelector("dialog[open]")) return;
      const files = [...event.dataTransfer?.files ?? []];
      if (!this.#takesFiles(files)) this.#chooseFiles(files);
    });
  }

  #onDrag(event: DragEvent): void {
    if (!hasFiles(event)) return;
    event.preventDefault();
    this.#veil.hidden = false;
  }

  #chooseFiles(files: Iterable<File>): void {
    const choice = choiceOfFiles(files);
    if (choice) this.#onChoice(choice);
  }

  #listenToLink(): void {
    const input = byId<HTMLInputElement>("link");
    byId("link-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = input.value.trim();
      if (/^(https?:|hf:)/i.test(text)) this.#openLink(text);
      else void this.#search(text);
    });
  }

  #openLink(text: string): void {
    let url: string;
    try {
      url = directUrl(text);
    } catch {
      byId("found").replaceChildren(make("li", { class: "muted" }, `${text} is not an address.`));
      return;
    }
    this.#onChoice({ name: nameOfUrl(url), source: url, url });
  }

  /** Repositories of huggingface.co with GGUF files, those first that most people fetch. */
  async #search(words: string): Promise<void> {
    const list = byId("found");
    const say = (text: string) => list.replaceChildren(make("li", { class: "muted" }, text));
    say("Searching huggingface.co ...");
    try {
      const query = new URLSearchParams({ search: words, filter: "gguf", sort: "downloads",
        direction: "-1", limit: "10" });
      const response = await fetch(`https://huggingface.co/api/models?${query}`);
      if (!response.ok) throw new Error(`huggingface.co answers ${response.status}`);
      const found = (await response.json()) as { id: string; downloads?: number }[];
      if (found.length === 0) return say(`No model in GGUF is called "${words}" there.`);
      list.replaceChildren(...found.map((model) => this.#foundRow(model)));
    } catch (reason) {
      say(describeProblem(reason).text);
    }
  }

  #foundRow({ id, downloads = 0 }: { id: string; downloads?: number }): HTMLElement {
    return make("li", {}, make("div", { class: "kept-text" },
      make("span", { class: "kept-name" }, id),
      make("span", { class: "figures muted" }, `${formatCount(downloads)} downloads a month`)),
    make("button", { type: "button", class: "button", "aria-label": `Open ${id}`,
      onclick: () => this.#openLink(`hf:${id}`) }, "Open"));
  }

  async #showCatalogue(): Promise<void> {
    const list = byId("catalogue");
    try {
      const response = await fetch("models.json");
      this.#listed = (await response.json()) as Listed[];
      await this.show();
    } catch (reason) {
      list.replaceChildren(make("p", { class: "notice" },
        `The list of models does not load. ${describeProblem(reason).text}`));
    }
  }

  /** The models that are offered, and which of them are here already. */
  async show(): Promise<void> {
    const cards = this.#listed.map(async (model) => {
      const url = new URL(model.url, location.href).href;
      return this.#card({ ...model, source: url, url }, await isKept(url));
    });
    byId("catalogue").replaceChildren(...await Promise.all(cards));
  }

  #card(model: Listed, isHere: boolean): HTMLElement {
    const { name, detail, bytes } = model;
    const size = bytes === undefined ? "" : formatBytes(bytes);
    return make("button", { type: "button", class: "card", onclick: () => this.#onChoice(model) },
      make("span", { class: "card-name" }, name), make("span", { class: "card-detail" }, detail),
      make("span", { class: "card-size" }, makeIcon(isHere ? "check" : "download"),
        isHere ? `On this device, ${size}` : size));
  }
}

/** Of a page that shows a file of huggingface.co, the file. */
function directUrl(text: string): string {
  const url = new URL(text);
  if (url.hostname === "huggingface.co") url.pathname = url.pathname.replace("/blob/", "/resolve/");
  return url.href;
}
