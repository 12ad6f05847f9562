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
    const row = make("li", {},
      make("div", { class: "kept-text" }, make("span", { class: "kept-name" }, choice.name),
        make("span", { class: "figures muted" }, describe(entry))),
      make("button", { type: "button", class: "button", onclick: open,
        "aria-label": `${entry.isComplete ? "Open" : "Resume"} ${choice.name}` },
      entry.isComplete ? "Open" : "Resume"),
      make("button", { type: "button", class: "tool", title: "Delete",
        "aria-label": `Delete ${choice.name}`, onclick: (event) => {
          const isFirst = (event as MouseEvent).detail < 2; // a double click is for one row
          if (isFirst) void this.#remove(entry, choice, row);
        } }, makeIcon("trash")));
    return row;
  }

  async #remove({ name }: CacheEntry, choice: Choice, row: HTMLElement): Promise<void> {
    const list = byId("kept-list"), place = [...list.children].indexOf(row);
    const enable = (isEnabled: boolean) => {
      for (const button of row.querySelectorAll("button")) button.disabled = !isEnabled;
    };
    enable(false);
    try {
      await (await opened).delete(name);
      announce(`${choice.name} was deleted.`);
      await this.show();
    } catch (reason) {
      const { text } = describeProblem(reason);
      announce(text);
      row.querySelector(".figures")!.textContent = text;
      enable(true);
    }
    const next = list.children[place] ?? list.lastElementChild;
    (next?.querySelector<HTMLElement>(".tool") ?? byId("choose-file")).focus();
  }
}
