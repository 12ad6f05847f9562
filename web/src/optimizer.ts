/** Optimizers, which change parameters in place by their gradients. */
import { type Commands, NONE } from "./commands.js";
import { WickError } from "./errors.js";
import { checked, OPTIMIZER } from "./options.js";
import type { Tensor } from "./tensor.js";
import type { OptimizerOptions } from "./tensor_types.js";

/** Where 0 is meant and would be the default. */
const meant = (value: number | undefined): number | undefined =>
  value === 0 ? Number.MIN_VALUE : value;

export class Optimizer {
  readonly #commands: Commands;
  readonly #id: number;
  #isDisposed = false;

  /** @internal */
  constructor(commands: Commands, params: Tensor[], options: OptimizerOptions) {
    const { beta1, beta2, eps, ...rest } = checked(OPTIMIZER, options);
    const given = { ...rest, beta1: meant(beta1), beta2: meant(beta2), eps: meant(eps) };
    this.#commands = commands;
    this.#id = commands.newId();
    commands.give({ kind: "optimizer", optimizer: this.#id, options: given,
                    params: params.map((x) => commands.numberOf(x, "optimizer")) });
    commands.leaks?.open(this, "optimizer");
  }

  get #open(): number {
    if (this.#isDisposed) throw new WickError("STATE", "the optimizer is disposed");
    return this.#id;
  }

  /** One step at this rate, by a gradient for each parameter; undefined leaves it as it is. */
  step(gradients: (Tensor | undefined)[], rate: number): void {
    this.#commands.give({
      kind: "step", optimizer: this.#open, rate,
      gradients: gradients.map((x) => this.#commands.numberOf(x ?? NONE, "step")),
    });
  }

  /**
   * Its state, to be stored, and set again by writing to it: `NAME.momentum` (sgd) or `NAME.mean`
   * and (adamw) `NAME.square` for each parameter. The caller disposes of the tensors.
   */
  async states(): Promise<Record<string, Tensor>> {
    const names = await this.#commands.call("optimizerStates", [this.#open]);
    const outputs = this.#commands.newIds(names.length);
    await this.#commands.call("takeOptimizerStates", [this.#open, outputs]);
    const tensors = this.#commands.adopt(outputs, "optimizer's state");
    return Object.fromEntries(names.map((name, i) => [name, tensors[i]!]));
  }

  /** How many steps each parameter has made. */
  steps(): Promise<number[]> {
    return this.#commands.call("optimizerSteps", [this.#open]);
  }

  setSteps(steps: number[]): void {
    this.#commands.give({ kind: "setSteps", optimizer: this.#open, steps: [...steps] });
  }

  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#commands.leaks?.close(this);
    this.#commands.give({ kind: "releaseOptimizer", optimizer: this.#id });
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
