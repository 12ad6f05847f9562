/** Gradients in reverse mode. */
import { type Commands, NONE, type Operand } from "./commands.js";
import { WickError } from "./errors.js";
import type { Tensor } from "./tensor.js";

/**
 * Records what operations compute from watched tensors, from its making until its end, and goes
 * back through that. It keeps the memory that its operations read and wrote. What goes through a
 * tape while another one records is recorded there: gradients of gradients.
 */
export class Tape {
  readonly #commands: Commands;
  readonly #id: number;
  #isPaused = false;
  #hasEnded = false;

  /** @internal */
  constructor(commands: Commands) {
    this.#commands = commands;
    this.#id = commands.newId();
    this.#commands.give({ kind: "tape", tape: this.#id, does: "begin" });
    commands.leaks?.open(this, "tape");
  }

  get #open(): number {
    if (this.#hasEnded) throw new WickError("STATE", "the tape has ended");
    return this.#id;
  }

  /** Gradients with respect to these, and to other views of their memory, will be asked for. */
  watch(...tensors: Tensor[]): this {
    for (const x of tensors)
      this.#commands.give({ kind: "watch", tape: this.#open,
                            tensor: this.#commands.numberOf(x, "watch") });
    return this;
  }

  /**
   * The gradients of the sum of gradOfY * y with respect to each of x, in their shapes, f32 for
   * floats of 16 bits; gradOfY: in the shape of y, by default all ones. What y does not depend on
   * gets zeros. May be called several times.
   */
  grad(y: Tensor, x: Tensor[], gradOfY?: Tensor): Tensor[] {
    const outputs = this.#commands.newIds(x.length);
    const operands: Operand[] = [y, gradOfY ?? NONE, ...x];
    const inputs = operands.map((t) => this.#commands.numberOf(t, "grad"));
    this.#commands.give({ kind: "grad", tape: this.#open, inputs, outputs });
    return this.#commands.adopt(outputs, "grad");
  }

  /** What body does, until it returns or its promise ends, is not recorded. */
  noGrad<T>(body: () => T): T {
    const wasPaused = this.#isPaused;
    const pause = (does: boolean) => {
      this.#isPaused = does;
      if (!this.#hasEnded)
        this.#commands.give({ kind: "tape", tape: this.#id, does: does ? "pause" : "resume" });
    };
    pause(true);
    let isWaiting = false;
    try {
      const result = body();
      isWaiting = result instanceof Promise;
      return isWaiting ? (result as Promise<unknown>).finally(() => pause(wasPaused)) as T : result;
    } finally {
      if (!isWaiting) pause(wasPaused);
    }
  }

  /** Releases all that it keeps. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#commands.leaks?.close(this);
    this.#commands.give({ kind: "tape", tape: this.#id, does: "end" });
  }

  [Symbol.dispose](): void {
    this.end();
  }
}
