/** Objects of the module by numbers that are never used again. */
import { WickError } from "./errors.js";

export class Table<T> {
  readonly #items = new Map<number, T>();
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
}
