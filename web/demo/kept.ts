/** The models that this browser keeps: what there is, how large, and a way to remove them. */
import { ModelCache } from "libwick";
import type { CacheEntry } from "libwick";
import { announce, byId, make, makeIcon } from "./dom.js";
import { formatBytes, nameOfUrl } from "./format.js";
import type { Choice } from "./host.js";
import { describeProblem } from "./problems.js";

const opened = ModelCache.open();

/** Whether all of a file is here already. */
export const isKept = async (url: string): Promise<boolean> => (await opened).has(url);

/** Whether at least a part of it is. */
export const isBegun = async (url: string): Promise<boolean> =>
  ((await (await opened).get(url))?.storedSize ?? 0) > 0;

/** One that is complete is opened without the network. */
const choiceOf = ({ name, size, isComplete }: CacheEntry): Choice => ({
  name: nameOfUrl(name), source: isComplete ? { cached: name } : name, url: name,
  ...(size !== undefined && { bytes: size }),
});

function describe({ name, size, storedSize, isComplete }: CacheEntry): string {
  const { host } = new URL(name);
  if (isComplete || size === undefined) return `${formatBytes(storedSize)} · ${host}`;
  return `${formatBytes(storedSize)} of ${formatBytes(size)} downloaded · ${host}`;
}

export class KeptModels {
  readonly #onChoice: (choice: Choice) => void;

  constructor(onChoice: (choice: Choice) => void) {
    this.#onChoice = onChoice;
  }

  /** Shows what is there now. */
  async show(): Promise<void> {
    const entries = await (await opened).list();
    const size = entries.reduce((sum, { storedSize }) => sum + storedSize, 0);
    byId("kept").hidden = entries.length === 0;
    byId("kept-size").textContent = formatBytes(size);
    byId("kept-list").replaceChildren(...entries.map((entry) => this.#row(entry)));
  }

  #row(entry: CacheEntry): HTMLElement {
    const choice = choiceOf(entry);
    const open = () => this.#onChoice(choice);
    return make("li", {},
      make("div", { class: "kept-text" }, make("span", { class: "kept-name" }, choice.name),
        make("span", { class: "figures muted" }, describe(entry))),
      make("button", { type: "button", class: "button", onclick: open,
        "aria-label": `${entry.isComplete ? "Open" : "Resume"} ${choice.name}` },
      entry.isComplete ? "Open" : "Resume"),
      make("button", { type: "button", class: "tool", title: "Delete",
        "aria-label": `Delete ${choice.name}`, onclick: () => void this.#remove(entry, choice) },
      makeIcon("trash")));
  }

  async #remove({ name }: CacheEntry, choice: Choice): Promise<void> {
    try {
      await (await opened).delete(name);
      announce(`${choice.name} was deleted.`);
    } catch (reason) {
      announce(describeProblem(reason).text);
    }
    await this.show();
    const next = document.querySelector<HTMLElement>("#kept-list button");
    (next ?? byId("choose-file")).focus();
  }
}
