/** Objects of the module by numbers that are never used again. */
import { WickError } from "./errors.js";

export class Table<T> {
  readonly #items = new Map<number, T>();
  /** Out of the table, but not ended yet. */
  readonly #closing = new Map<number, { item: T; ended: Promise<void> }>();
  readonly #what: string;
  #last = 0;

  constructor(what: string) {
    this.#what = what;
  }

  add(item: T): number {
    this.#items.set(++this.#last, item);
    return this.#last;
  }

  get(id: number): T {
    const item = this.#items.get(id);
    if (item !== undefined) return item;
    throw new WickError("STATE", `the ${this.#what} is closed`);
  }

  has(id: number): boolean {
    return this.#items.has(id);
  }

  take(id: number): T | undefined {
    const item = this.#items.get(id);
    this.#items.delete(id);
    return item;
  }

  entries(): [number, T][] {
    return [...this.#items];
  }

  /** Takes an item out and ends it. Who closes it again meanwhile waits for the same end. */
  async close(id: number, end: (item: T) => Promise<void>): Promise<void> {
    const item = this.take(id);
    if (item !== undefined)
      this.#closing.set(id, { item, ended: end(item).finally(() => this.#closing.delete(id)) });
    return this.#closing.get(id)?.ended;
  }

  /** Closes those of a kind, and waits for those of them that others are closing. */
  async closeAll(isOne: (item: T) => boolean, end: (item: T) => Promise<void>): Promise<void> {
    const closing = [...this.#closing].map(([id, { item }]): [number, T] => [id, item]);
    for (const [id, item] of [...closing, ...this.#items]) if (isOne(item)) await this.close(id, end);
  }
}
