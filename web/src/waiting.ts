/** Those who wait for something to change. */
export class Waiting {
  #wake: (() => void)[] = [];

  /** Resolves when something has changed. */
  activity(): Promise<void> {
    return new Promise((resolve) => this.#wake.push(resolve));
  }

  /** Whether anybody waits. */
  get isAwaited(): boolean {
    return this.#wake.length > 0;
  }

  /** Wakes those that wait for activity. */
  stir(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const resolve of wake) resolve();
  }
}
