/** Optimizers, which change parameters in place by their gradients. */
import { joinBytes } from "./byte_source.js";
import { checkNumber, type Commands, NONE } from "./commands.js";
import { WickError } from "./errors.js";
import { checked, OPTIMIZER } from "./options.js";
import type { Tensor } from "./tensor.js";
import type { Contents } from "./tensors.js";
import type { Dtype, OptimizerOptions, TensorInfo } from "./tensor_types.js";
import { bytesOf } from "./values.js";

/** Where 0 is meant and would be the default. */
const meant = (value: number | undefined): number | undefined =>
  value === 0 ? Number.MIN_VALUE : value;

/** Whether these can be the steps that n parameters have made. */
const areSteps = (steps: number[], n: number): boolean =>
  steps.length === n && steps.every((step) => Number.isSafeInteger(step) && step >= 0);

/** The dtype in a file, which has no narrower floats. */
const storedDtype = (dtype: Dtype) => (dtype === "f64" ? "f64" : "f32");

interface Entry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

/** Of a file: 8 bytes with its size, it, the data. */
type Header = Record<string, Entry> & { __metadata__: { steps: string } };

export class Optimizer {
  readonly #commands: Commands;
  readonly #id: number;
  readonly #params: [string, Tensor][];
  #isDisposed = false;

  /** @internal */
  constructor(commands: Commands, params: Tensor[], options: OptimizerOptions) {
    const { beta1, beta2, eps, ...rest } = checked(OPTIMIZER, options);
    const given = { ...rest, beta1: meant(beta1), beta2: meant(beta2), eps: meant(eps) };
    this.#commands = commands;
    this.#id = commands.newId();
    commands.give({ kind: "optimizer", optimizer: this.#id, options: given,
                    params: params.map((x) => commands.numberOf(x, "optimizer")) });
    this.#params = params.map((x, i) => [options.names?.[i] ?? `${i}`, x]);
    commands.leaks?.open(this, "optimizer");
  }

  get #open(): number {
    if (this.#isDisposed) throw new WickError("STATE", "the optimizer is disposed");
    return this.#id;
  }

  /** One step at this rate, by a gradient for each parameter; undefined leaves it as it is. */
  step(gradients: (Tensor | undefined)[], rate: number): void {
    checkNumber(rate, "step");
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
    const given = [...steps], n = this.#params.length;
    if (!areSteps(given, n))
      throw new WickError("ARGUMENT", `setSteps: ${n} whole numbers are wanted`);
    this.#commands.give({ kind: "setSteps", optimizer: this.#open, steps: given });
  }

  /**
   * A checkpoint: the parameters by their names, the state and the steps, as bytes to be kept. They
   * are a file of the format safetensors, with 16-bit floats as f32.
   */
  async save(): Promise<Uint8Array<ArrayBuffer>> {
    return this.#withAll(async (all) => {
      const reads = all.map(async ([name, x]) =>
        this.#commands.call("readTensor", [this.#commands.numberOf(x, name)]));
      // All are asked for at once: before any step that comes later.
      const [steps, ...contents] = await Promise.all([this.steps(), ...reads]);
      const header = { __metadata__: { steps: steps.join() } } as Header;
      let end = 0;
      contents.forEach(({ dtype, shape, bytes }, i) => {
        header[all[i]![0]] = { dtype: storedDtype(dtype).toUpperCase(), shape,
                               data_offsets: [end, end += bytes.length] };
      });
      const text = new TextEncoder().encode(JSON.stringify(header));
      return joinBytes(bytesOf(BigInt64Array.of(BigInt(text.length))), text,
                       ...contents.map(({ bytes }) => bytes));
    });
  }

  /**
   * Goes on from what `save` has given of an optimizer of this kind and of parameters of the same
   * names and shapes: these and the state are overwritten. Where it fails nothing is.
   */
  async load(file: Uint8Array): Promise<void> {
    await this.#withAll(async (all) => {
      const { steps, tensors } = readFile(file, this.#params.length);
      const infos = await Promise.all(all.map(async ([, x]) => x.describe()));
      all.forEach(([name, x], i) => {
        this.#commands.numberOf(x, name); // it may have been disposed of meanwhile
        checkStored(name, infos[i]!, tensors.get(name));
      });
      this.setSteps(steps);
      for (const [name, x] of all) {
        const stored = this.#commands.data(tensors.get(name)!);
        x.copy(stored);
        stored.dispose();
      }
    });
  }

  /** With the parameters and the state, by name. */
  async #withAll<T>(work: (all: [string, Tensor][]) => Promise<T>): Promise<T> {
    const states = await this.states();
    try {
      return await work([...this.#params, ...Object.entries(states)]);
    } finally {
      for (const state of Object.values(states)) state.dispose();
    }
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

/** Throws where a file does not have this tensor, and all of it. */
function checkStored(name: string, { dtype, shape }: TensorInfo, found?: Contents): void {
  const wanted = storedDtype(dtype), size = shape.reduce((a, b) => a * b, wanted === "f64" ? 8 : 4);
  if (found?.dtype !== wanted || found.shape.join() !== shape.join() || found.bytes.length !== size)
    throw new WickError("MISMATCH", `there is no ${name} of [${shape}] in ${wanted}`);
}

/** Of a file: the steps of n parameters, and the tensors. */
function readFile(file: Uint8Array, n: number) {
  try {
    const { buffer } = file.slice(), start = 8 + Number(new DataView(buffer).getBigInt64(0, true));
    const { __metadata__: { steps }, ...entries } =
      JSON.parse(new TextDecoder().decode(buffer.slice(8, start))) as Header;
    const tensors = new Map<string, Contents>();
    for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(entries))
      tensors.set(name, { dtype: dtype.toLowerCase() as Dtype, shape: [...shape],
                          bytes: new Uint8Array(buffer, start + from, to - from).slice() });
    const counts = steps.split(",").map(Number);
    if (!areSteps(counts, n)) throw new Error("steps");
    return { steps: counts, tensors };
  } catch (cause) {
    throw new WickError("FORMAT", "not a checkpoint of an optimizer", { cause });
  }
}
