/** Where tensors and kernels come from: what an engine has for them beside its models. */
import { Commands, NONE } from "./commands.js";
import { WickError } from "./errors.js";
import { Kernel } from "./kernel.js";
import type { Leaks } from "./leaks.js";
import { Operation } from "./operation.js";
import type { OperationOptions } from "./operation.js";
import { Optimizer } from "./optimizer.js";
import { checked, KERNEL, SEED } from "./options.js";
import type { Port } from "./port.js";
import { Tape } from "./tape.js";
import type { Tensor } from "./tensor.js";
import type { Dtype, KernelOptions, OptimizerOptions, ScalarDtype, TensorData } from "./tensor_types.js";
import { newTensor, whole, wholes } from "./values.js";

export class TensorMaker {
  readonly #commands: Commands;

  /** @internal */
  constructor(port: Port, leaks?: Leaks) {
    this.#commands = new Commands(port, leaks);
  }

  /**
   * A tensor with these values, which are copied. Arrays of numbers become f32 where no dtype is
   * given, and a number that an integer dtype does not have is refused (VALUE); of bool, all but 0
   * is true. Typed arrays of another dtype are cast; a Uint16Array holds the bits of f16 or bf16, a
   * Uint8Array may hold blocks or 8-bit floats.
   */
  tensor(data: TensorData, shape?: number[], dtype?: Dtype): Tensor {
    const { given, ...made } = newTensor(data, shape, dtype);
    const tensor = this.#commands.data({ dtype: given, shape: made.shape, bytes: made.bytes });
    if (made.dtype === given) return tensor;
    const cast = tensor.cast(made.dtype as ScalarDtype);
    tensor.dispose();
    return cast;
  }

  /** Contents undefined. */
  empty(shape: number[], dtype: ScalarDtype = "f32"): Tensor {
    return this.#make("empty", dtype, shape);
  }
  zeros(shape: number[], dtype: ScalarDtype = "f32"): Tensor {
    return this.#make("zeros", dtype, shape);
  }
  ones(shape: number[], dtype: ScalarDtype = "f32"): Tensor {
    return this.#make("ones", dtype, shape);
  }
  full(shape: number[], value: number, dtype: ScalarDtype = "f32"): Tensor {
    return this.#make("full", dtype, shape, [value]);
  }
  /** start, start + step, ... while below end (above, for a negative step). */
  arange(start: number, end: number, step = 1, dtype: ScalarDtype = "f32"): Tensor {
    return this.#make("arange", dtype, [], [start, end, step]);
  }
  /** count numbers from start to end (inclusive) in even steps. */
  linspace(start: number, end: number, count: number, dtype: ScalarDtype = "f32"): Tensor {
    return this.#make("linspace", dtype, [], [start, end, whole(count)]);
  }
  /** base to the powers of these numbers. */
  logspace(start: number, end: number, count: number, base = 10,
           dtype: ScalarDtype = "f32"): Tensor {
    return this.#make("logspace", dtype, [], [start, end, whole(count), base]);
  }
  /** [n, n], 1 on the diagonal. */
  eye(n: number, dtype: ScalarDtype = "f32"): Tensor {
    return this.#make("eye", dtype, [], [whole(n)]);
  }
  /** Uniform from low up to high. */
  rand(shape: number[], low = 0, high = 1, dtype: ScalarDtype = "f32"): Tensor {
    return this.#make("rand", dtype, shape, [low, high]);
  }
  /** Normal. */
  randn(shape: number[], mean = 0, deviation = 1, dtype: ScalarDtype = "f32"): Tensor {
    return this.#make("randn", dtype, shape, [mean, deviation]);
  }
  /** u32: 32 random bits each, which the numbers above are made of. */
  randBits(shape: number[]): Tensor {
    return this.#commands.op("rand_bits", [], wholes(shape));
  }
  /**
   * The same seed gives the same random numbers, on every device. Default: 0. Each tensor of them
   * takes the next stream of the seed, the first one this. Both are below 2^64, digits are allowed.
   */
  setSeed(seed: number | bigint | string, stream: number | bigint | string = 0): void {
    for (const value of [seed, stream])
      if (!SEED[1](value)) throw new WickError("VALUE", `a seed is ${SEED[0]}, not ${String(value)}`);
    this.#commands.give({ kind: "seed", seed: BigInt(seed), stream: BigInt(stream) });
  }

  /** Tensors that agree in all dims but dim. */
  cat(tensors: Tensor[], dim = 0): Tensor {
    return this.#join("cat", tensors, [whole(dim)]);
  }
  /** Tensors of one shape along a new dim. */
  stack(tensors: Tensor[], dim = 0): Tensor {
    return this.#join("stack", tensors, [whole(dim)]);
  }

  /**
   * Products of 1 to 8 float tensors, summed over the labels that the result does not have:
   * "bik,kj->bij" is a matrix product of batches, "ii->i" a diagonal, see `wick_einsum`.
   */
  einsum(text: string, tensors: Tensor[]): Tensor {
    return this.#join("einsum", tensors, Array.from(text, (letter) => letter.codePointAt(0)!));
  }

  /** The coordinates, given as vectors, of the points of a grid; xy: of the first two swapped. */
  meshgrid(tensors: Tensor[], indexing: "ij" | "xy" = "ij"): Tensor[] {
    const numbers = [Number(indexing === "xy")];
    return this.#commands.ops("meshgrid", tensors, numbers, tensors.length);
  }

  /**
   * Disposes of the tensors that body makes when it ends, except those in what it returns: they go
   * to the scope around, or to the caller. A scope that is open counts for all that the page does
   * meanwhile: await it before another one begins beside it.
   */
  scope<T>(body: () => T | Promise<T>): Promise<T> {
    return this.#commands.scope(body);
  }

  /** Compiles a kernel in WGSL for this WebGPU device. */
  async kernel(options: KernelOptions, { signal }: { signal?: AbortSignal } = {}): Promise<Kernel> {
    return Kernel.make(this.#commands, checked(KERNEL, options), signal);
  }

  /**
   * An operation of the page's own: what computes it, the shapes of its results, its gradient. A
   * function in JavaScript runs in the page, and counts as a fallback where a GPU computes.
   */
  operation(options: OperationOptions): Operation {
    return new Operation(this.#commands, (...given) => this.tensor(...given), options);
  }

  /** Records operations from now on, for gradients. */
  tape(): Tape {
    return new Tape(this.#commands);
  }

  /** Changes these parameters, float tensors, in place, by their gradients. */
  optimizer(params: Tensor[], options: OptimizerOptions): Optimizer {
    return new Optimizer(this.#commands, params, options);
  }

  /** Multiplies gradients in place by maxNorm / norm where their norm, that of all elements
   * together, is larger; undefined ones are passed over. Returns the norm. */
  clipGradNorm(gradients: (Tensor | undefined)[], maxNorm: number): Tensor {
    if (gradients.every((x) => x === undefined))
      throw new WickError("ARGUMENT", "clipGradNorm: there is no gradient");
    return this.#commands.op("clip_grad_norm", gradients.map((x) => x ?? NONE), [maxNorm]);
  }

  /** Resolves when the device has computed all that was queued; rejects if that failed. */
  sync(options: { signal?: AbortSignal } = {}): Promise<void> {
    return this.#commands.call("syncTensors", [], options);
  }

  #join(name: string, tensors: Tensor[], numbers: number[]): Tensor {
    if (tensors.length === 0) throw new WickError("VALUE", `${name} needs at least one tensor`);
    return this.#commands.op(name, tensors, numbers);
  }

  #make(name: string, dtype: Dtype, shape: number[], numbers: number[] = []): Tensor {
    return this.#commands.op(name, [], [...numbers, ...wholes(shape)], dtype);
  }
}
