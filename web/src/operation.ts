/** Operations of the page's own, used as the built-in ones are, and recorded by tapes. */
import type { Commands } from "./commands.js";
import { WickError } from "./errors.js";
import type { Kernel, KernelSize, Launch } from "./kernel.js";
import { checked, OPERATION } from "./options.js";
import type { Tensor } from "./tensor.js";
import type { TensorData, TensorInfo, TensorValues } from "./tensor_types.js";

/** A function in JavaScript, a kernel in WGSL, or both: then the kernel is run. */
export interface OperationOptions {
  /** In messages. */
  name: string;
  /** How many tensors it takes; at most 8 with its results. */
  inputs: number;
  /** How many results it has; default: 1. */
  outputs?: number;
  /** The dtypes and shapes of the results. What it throws, `run` throws. */
  shape(inputs: TensorInfo[]): TensorInfo[];
  /** Computes the results, as nested arrays or typed ones: in the page, which reads the inputs. */
  compute?(inputs: TensorValues[], infos: TensorInfo[]): TensorData[] | Promise<TensorData[]>;
  /** Its buffers are the results (read_write), then the inputs (read). */
  kernel?: Kernel;
  /** How often the kernel runs, and its uniform. */
  launch?(inputs: TensorInfo[], outputs: TensorInfo[]):
    { size: KernelSize; uniform?: ArrayBufferView };
  /**
   * The gradients of the inputs, undefined for zero, of an operation with one result. It is called
   * once, when the operation is made, with tensors that stand for those of a run: it may use
   * operations and kernels, and tensors that are there by then, but cannot wait for one.
   */
  gradient?(inputs: Tensor[], output: Tensor, gradOfOutput: Tensor): (Tensor | undefined)[];
}

type MakeTensor = (data: TensorData, shape: number[], dtype: TensorInfo["dtype"]) => Tensor;

export class Operation {
  readonly #commands: Commands;
  readonly #makeTensor: MakeTensor;
  readonly #options: OperationOptions;
  readonly #nOutputs: number;
  readonly #id: number;
  #isDisposed = false;

  /** @internal */
  constructor(commands: Commands, makeTensor: MakeTensor, given: OperationOptions) {
    const options = checked(OPERATION, given);
    const { name, inputs, outputs = 1, kernel, gradient } = options;
    if (typeof options.shape !== "function" || !(kernel ? options.launch : options.compute))
      throw new WickError("VALUE",
        `operation ${name}: it wants shape, and compute or a kernel with its launch`);
    this.#commands = commands;
    this.#makeTensor = makeTensor;
    this.#options = options;
    this.#nOutputs = outputs;
    this.#id = commands.newId();
    commands.give({
      kind: "operation", operation: this.#id, name, kernel: kernel?.use(commands) ?? 0,
      nInputs: inputs + (kernel ? 0 : outputs), nOutputs: outputs,
      gradient: gradient && commands.program(inputs + 2, (x) => this.#check(
        "gradient", gradient(x.slice(0, inputs), x[inputs]!, x[inputs + 1]!), inputs), name),
    });
  }

  /**
   * Runs it: the results. Operations that are given after the call may come before it, as it waits
   * for the inputs' shapes, and for their values where it computes in JavaScript.
   */
  async run(inputs: Tensor[]): Promise<Tensor[]> {
    const { name, inputs: wanted, kernel, launch } = this.#options;
    if (this.#isDisposed) throw new WickError("STATE", `operation ${name} is disposed`);
    if (inputs.length !== wanted)
      throw new WickError("ARGUMENT", `${name}: ${inputs.length} inputs, ${wanted} are wanted`);
    const values = Promise.all(kernel ? [] : inputs.map(async (x) => x.read()));
    values.catch(() => undefined); // where a shape fails, too, no one waits for them
    const infos = await Promise.all(inputs.map(async (x) => x.describe()));
    const made = this.#options.shape(infos.map((info) => ({ ...info })));
    this.#check("shape", made, this.#nOutputs);
    if (!kernel) return this.#compute(inputs, infos, await values, made);
    const { size, uniform } = launch!(infos, made);
    return this.#give(inputs, made, kernel.launch(size, uniform));
  }

  async #compute(inputs: Tensor[], infos: TensorInfo[], values: TensorValues[],
                 made: TensorInfo[]): Promise<Tensor[]> {
    const computed = await this.#options.compute!(values, infos);
    this.#check("compute", computed, this.#nOutputs);
    const results = computed.map((data, i) =>
      this.#makeTensor(data, made[i]!.shape, made[i]!.dtype).keep());
    try {
      return this.#give([...inputs, ...results], made,
                        { workgroups: 0, uniform: new Uint8Array(0) });
    } finally {
      for (const tensor of results) tensor.dispose();
    }
  }

  #check<T>(what: string, list: T[], n: number): T[] {
    if (Array.isArray(list) && list.length === n) return list;
    throw new WickError("VALUE",
      `operation ${this.#options.name}: ${what} must return an array of ${n}`);
  }

  #give(inputs: Tensor[], infos: TensorInfo[], launch: Launch): Tensor[] {
    const { name } = this.#options;
    const outputs = this.#commands.newIds(this.#nOutputs);
    this.#commands.give({
      kind: "operate", operation: this.#id, outputs, infos, ...launch,
      inputs: inputs.map((x) => this.#commands.numberOf(x, name)),
    });
    return this.#commands.adopt(outputs, name);
  }

  /** Runs that were given still run; gradients of them cannot be asked for any more. */
  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#commands.give({ kind: "releaseOperation", operation: this.#id });
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
