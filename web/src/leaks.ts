/** What was opened and not closed, with the place in the page's source where it was made. */

interface Open {
  what: string;
  place: string;
}

export class Leaks {
  readonly #open = new Map<number, Open>();
  readonly #ids = new WeakMap<object, number>();
  readonly #lost: FinalizationRegistry<number>;
  readonly #report: (message: string) => void;
  #last = 0;

  constructor(report: (message: string) => void) {
    this.#report = report;
    this.#lost = new FinalizationRegistry((id) => this.#tell(id, "was lost without being closed"));
  }

  open(object: object, what: string): void {
    const id = ++this.#last;
    this.#open.set(id, { what, place: placeOfCaller() });
    this.#ids.set(object, id);
    this.#lost.register(object, id, object);
  }

  close(object: object): void {
    this.#open.delete(this.#ids.get(object) ?? 0);
    this.#lost.unregister(object);
  }

  /** Reports all objects that are still open. */
  end(): void {
    for (const id of [...this.#open.keys()]) this.#tell(id, "was not closed before its engine");
  }

  #tell(id: number, fate: string): void {
    const open = this.#open.get(id);
    this.#open.delete(id);
    if (open) this.#report(`${/^[aeio]/.test(open.what) ? "an" : "a"} ${open.what} ${fate}; it was made ${open.place}`);
  }
}

/** All lines of the stack; V8 keeps ten by default. */
function stackLines(): string[] {
  const errors = Error as { stackTraceLimit?: number | undefined };
  const { stackTraceLimit } = errors;
  errors.stackTraceLimit = 100;
  const { stack = "" } = new Error();
  errors.stackTraceLimit = stackTraceLimit;
  return stack.split("\n").map((line) => line.trim());
}

/** The first place on the stack that is not in the package's own files. */
function placeOfCaller(): string {
  const here = import.meta.url;
  const folder = here.slice(0, here.lastIndexOf("/") + 1);
  const isOutside = (line: string) => /:\d+\)?$/.test(line) && !line.includes(folder);
  return stackLines().find(isOutside) ?? "at an unknown place";
}
