/** Objects of the module by numbers that are never used again. */
import { WickError } from "./errors.js";

export class Table<T> {
  readonly #items = new Map<number, T>();
  /** Out of the table, but not ended yet. */
  readonly #closing = new Map<number, Promise<void>>();
  readonly #what: string;
  readonly #end: (item: T) => Promise<void>;
  #last = 0;

  /** end: what closing an item does. */
  constructor(what: string, end: (item: T) => Promise<void> = async () => undefined) {
    this.#what = what;
    this.#end = end;
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
  close(id: number): Promise<void> {
    const item = this.take(id);
    if (item !== undefined)
      this.#closing.set(id, this.#end(item).finally(() => this.#closing.delete(id)));
    return this.#closing.get(id) ?? Promise.resolve();
  }

  /** Closes those of a kind, and waits for all that others are closing, too. */
  async closeAll(isOne: (item: T) => boolean): Promise<void> {
    for (const [id, item] of this.#items) if (isOne(item)) void this.close(id);
    await Promise.all(this.#closing.values());
  }
}
