/** What every tensor has: its number, what it holds, and how its operations are given. */
import type { Commands, Operand } from "./commands.js";
import { WickError } from "./errors.js";
import type { Tensor } from "./tensor.js";
import { bytesOf, textOf, valuesOf } from "./values.js";
import type { TensorInfo, TensorValues } from "./tensor_types.js";

export class TensorBase {
  /** @internal */
  protected readonly commands: Commands;
  readonly #id: number;
  #isDisposed = false;

  /** @internal */
  constructor(commands: Commands, id: number) {
    this.commands = commands;
    this.#id = id;
  }

  /** Its number, for a command of the engine that it belongs to. @internal */
  use(commands: Commands): number {
    if (commands !== this.commands)
      throw new WickError("ARGUMENT", "the tensor belongs to another engine");
    if (this.#isDisposed) throw new WickError("STATE", "the tensor is disposed");
    return this.#id;
  }

  protected get number(): number {
    return this.use(this.commands);
  }

  /** Releases it; memory that views or queued operations need stays. */
  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.commands.release(this, this.#id);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Takes it out of its scope: the caller disposes of it. */
  keep(): this {
    this.commands.leaveScope(this);
    return this;
  }

  // --- What it holds ---

  /** Its dtype and shape. */
  describe(): Promise<TensorInfo> {
    return this.commands.call("describeTensor", [this.number]);
  }

  /** Its elements as they are now, row-major; floats of 8 and 16 bits as Float32Array. */
  async read(options: { signal?: AbortSignal } = {}): Promise<TensorValues> {
    const { dtype, bytes } = await this.commands.call("readTensor", [this.number], options);
    return valuesOf(dtype, bytes);
  }

  /** The number that it holds, of whatever shape. */
  async item(): Promise<number> {
    const values = await this.read();
    if (values.length === 1) return Number(values[0]);
    throw new WickError("SHAPE", `a tensor of ${values.length} elements is not one number`);
  }

  /** Its elements, dtype and shape for people: "[1, 2.5] f32[2]". */
  async text(): Promise<string> {
    const { dtype, shape, bytes } = await this.commands.call("readTensor", [this.number]);
    return textOf({ dtype, shape }, valuesOf(dtype, bytes));
  }

  /** Overwrites all of it, in order with operations; values of its dtype (Uint16Array: the bits of
   * f16 and bf16). It must be dense. */
  write(values: TensorValues | Uint16Array): this {
    const bytes = bytesOf(values), given = values[Symbol.toStringTag];
    this.commands.give({ kind: "write", tensor: this.number, bytes, given },
                        [bytes.buffer as ArrayBuffer]);
    return this;
  }

  // --- Operations ---

  /** One with this as its first operand and with one result. */
  protected op(name: string, operands: Operand[] = [], numbers: number[] = []): Tensor {
    return this.commands.op(name, [this, ...operands], numbers);
  }

  protected ops(name: string, operands: Operand[], numbers: number[], nResults: number): Tensor[] {
    return this.commands.ops(name, [this, ...operands], numbers, nResults);
  }

  /** Of operands that may be numbers; like: whose dtype they get where none is a tensor. */
  protected mixed(name: string, like: TensorBase | undefined,
                  ...operands: (Tensor | number)[]): Tensor {
    return this.#withTensors(like, operands, (made) => this.op(name, made));
  }

  /** One that overwrites this, with operands that may be numbers of its dtype. */
  protected inPlace(name: string, operands: (Tensor | number)[] = [], numbers: number[] = []): this {
    this.#withTensors(this, operands, (made) => this.ops(name, made, numbers, 0));
    return this;
  }

  protected pairOf(name: string, numbers: number[]): { values: Tensor; indices: Tensor } {
    const [values, indices] = this.ops(name, [], numbers, 2);
    return { values: values!, indices: indices! };
  }

  /** Makes tensors of the numbers for the time of a call. */
  #withTensors<T>(like: TensorBase | undefined, operands: (Tensor | number)[],
                  run: (made: Tensor[]) => T): T {
    const peer = operands.find((b) => b instanceof TensorBase) ?? like;
    const made = operands.map((b) => (typeof b !== "number" ? b
      : peer ? this.commands.op("scalar", [peer], [b])
        : this.commands.op("full", [], [b], "f32")));
    try {
      return run(made);
    } finally {
      made.forEach((b, i) => b !== operands[i] && b.dispose());
    }
  }
}
