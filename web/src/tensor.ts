/**
 * Tensors on a device. Operations are given to the engine in their order and return at once, with
 * a tensor that stands for the result; what fails comes with the next `read`, `describe` or `sync`,
 * under the name of the operation, and again with those of every tensor computed from it.
 */
import type { Commands, Operand } from "./commands.js";
import { WickError } from "./errors.js";
import type {
  AttentionOptions, RopeLayout, RopeOptions, ScalarDtype, StoredDtype, TensorInfo,
  TensorValues,
} from "./types.js";
import { bytesOf, textOf, valuesOf, whole, wholes } from "./values.js";

/** Over which dims: one, several, or all (the default). */
export type Dims = number | number[] | undefined;

/** A scale that weighs all keys alike, where 0 is the default. */
const FLT_MIN = 2 ** -126;

const layoutNumber = (layout: RopeLayout = "bhtd"): number => (layout === "bthd" ? 1 : 0);

/** keepdim and what else, then whether there are dims, and these. */
function overDims(dims: Dims, ...numbers: number[]): number[] {
  if (dims === undefined) return [...numbers, 0];
  return [...numbers, 1, ...wholes(typeof dims === "number" ? [dims] : dims)];
}

export class Tensor {
  readonly #commands: Commands;
  readonly #id: number;
  #isDisposed = false;

  /** @internal */
  constructor(commands: Commands, id: number) {
    this.#commands = commands;
    this.#id = id;
  }

  /** Its number, for a command of the engine that it belongs to. @internal */
  use(commands: Commands): number {
    if (commands !== this.#commands)
      throw new WickError("ARGUMENT", "the tensor belongs to another engine");
    if (this.#isDisposed) throw new WickError("STATE", "the tensor is disposed");
    return this.#id;
  }

  get #number(): number {
    return this.use(this.#commands);
  }

  /** Releases it; memory that views or queued operations need stays. */
  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#commands.release(this, this.#id);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Takes it out of its scope: the caller disposes of it. */
  keep(): this {
    this.#commands.leaveScope(this);
    return this;
  }

  // --- What it holds ---

  /** Its dtype and shape. */
  describe(): Promise<TensorInfo> {
    return this.#commands.call("describeTensor", [this.#number]);
  }

  /** Its elements as they are now, row-major; floats of 8 and 16 bits as Float32Array. */
  async read(options: { signal?: AbortSignal } = {}): Promise<TensorValues> {
    const { dtype, bytes } = await this.#commands.call("readTensor", [this.#number], options);
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
    const { dtype, shape, bytes } = await this.#commands.call("readTensor", [this.#number]);
    return textOf({ dtype, shape }, valuesOf(dtype, bytes));
  }

  /** Overwrites all of it, in order with operations; values of its dtype (Uint16Array: the bits of
   * f16 and bf16). It must be dense. */
  write(values: TensorValues | Uint16Array): this {
    const bytes = bytesOf(values);
    this.#commands.give({ kind: "write", tensor: this.#number, bytes },
                        [bytes.buffer as ArrayBuffer]);
    return this;
  }

  #op(name: string, operands: Operand[] = [], numbers: number[] = []): Tensor {
    return this.#commands.op(name, [this, ...operands], numbers);
  }

  /** Of operands that may be numbers; like: whose dtype they get where none is a tensor. */
  #mixed(name: string, like: Tensor | undefined, ...operands: (Tensor | number)[]): Tensor {
    const peer = operands.find((b) => b instanceof Tensor) ?? like;
    const made = operands.map((b) => (typeof b !== "number" ? b
      : peer ? this.#commands.op("scalar", [peer], [b])
        : this.#commands.op("full", [], [b], "f32")));
    try {
      return this.#op(name, made);
    } finally {
      made.forEach((b, i) => b !== operands[i] && b.dispose());
    }
  }

  #inPlace(name: string, operands: Tensor[], numbers: number[] = []): this {
    this.#commands.ops(name, [this, ...operands], numbers, 0);
    return this;
  }

  // --- Elementwise, of numbers: what overflows an integer type wraps ---

  abs(): Tensor { return this.#op("abs"); }
  neg(): Tensor { return this.#op("neg"); }
  sqr(): Tensor { return this.#op("sqr"); }
  /** -1, 0 or 1. */
  sign(): Tensor { return this.#op("sign"); }
  relu(): Tensor { return this.#op("relu"); }
  reluSquared(): Tensor { return this.#op("relu_squared"); }
  relu6(): Tensor { return this.#op("relu6"); }
  /** this * mul + add. */
  affine(mul: number, add: number): Tensor { return this.#op("affine", [], [mul, add]); }
  /** To [min, max]; NaN stays. */
  clamp(min: number, max: number): Tensor { return this.#op("clamp", [], [min, max]); }

  /**
   * Operands of one dtype, broadcast by NumPy's rule, as for all operations of two. A number
   * becomes the other operand's dtype, in which it must have a value; beside none it becomes f32.
   */
  add(b: Tensor | number): Tensor { return this.#mixed("add", this, b); }
  sub(b: Tensor | number): Tensor { return this.#mixed("sub", this, b); }
  mul(b: Tensor | number): Tensor { return this.#mixed("mul", this, b); }
  /** Integers truncate toward zero; there x / 0 is x. */
  div(b: Tensor | number): Tensor { return this.#mixed("div", this, b); }
  maximum(b: Tensor | number): Tensor { return this.#mixed("maximum", this, b); }
  minimum(b: Tensor | number): Tensor { return this.#mixed("minimum", this, b); }
  /** Comparisons give u8, 0 or 1. */
  eq(b: Tensor | number): Tensor { return this.#mixed("eq", this, b); }
  ne(b: Tensor | number): Tensor { return this.#mixed("ne", this, b); }
  lt(b: Tensor | number): Tensor { return this.#mixed("lt", this, b); }
  le(b: Tensor | number): Tensor { return this.#mixed("le", this, b); }
  gt(b: Tensor | number): Tensor { return this.#mixed("gt", this, b); }
  ge(b: Tensor | number): Tensor { return this.#mixed("ge", this, b); }
  /** a where this (u8, bool or i64) is not zero, else b. */
  where(a: Tensor | number, b: Tensor | number): Tensor {
    return this.#mixed("where", undefined, a, b);
  }
  /** Keeps what lies on and below a diagonal of the last two dims. */
  tril(diagonal = 0): Tensor { return this.#op("tril", [], [whole(diagonal)]); }
  /** Keeps what lies on and above it. */
  triu(diagonal = 0): Tensor { return this.#op("triu", [], [whole(diagonal)]); }

  // --- Elementwise, of floats ---

  exp(): Tensor { return this.#op("exp"); }
  log(): Tensor { return this.#op("log"); }
  sin(): Tensor { return this.#op("sin"); }
  cos(): Tensor { return this.#op("cos"); }
  /** 1 / x. */
  recip(): Tensor { return this.#op("recip"); }
  sqrt(): Tensor { return this.#op("sqrt"); }
  erf(): Tensor { return this.#op("erf"); }
  tanh(): Tensor { return this.#op("tanh"); }
  sigmoid(): Tensor { return this.#op("sigmoid"); }
  floor(): Tensor { return this.#op("floor"); }
  ceil(): Tensor { return this.#op("ceil"); }
  /** Half to even. */
  round(): Tensor { return this.#op("round"); }
  pow(exponent: Tensor | number): Tensor {
    return typeof exponent === "number" ? this.#op("powf", [], [exponent])
      : this.#op("pow", [exponent]);
  }
  silu(): Tensor { return this.#op("silu"); }
  /** By tanh; `geluErf` is the exact one. */
  gelu(): Tensor { return this.#op("gelu"); }
  geluErf(): Tensor { return this.#op("gelu_erf"); }
  quickGelu(): Tensor { return this.#op("quick_gelu"); }
  softplus(): Tensor { return this.#op("softplus"); }
  mish(): Tensor { return this.#op("mish"); }
  hardSigmoid(): Tensor { return this.#op("hard_sigmoid"); }
  hardSwish(): Tensor { return this.#op("hard_swish"); }
  elu(alpha = 1): Tensor { return this.#op("elu", [], [alpha]); }
  leakyRelu(slope = 0.01): Tensor { return this.#op("leaky_relu", [], [slope]); }
  /** Gated units: silu, gelu, geluErf or relu of this, times up. */
  swiglu(up: Tensor): Tensor { return this.#op("swiglu", [up]); }
  geglu(up: Tensor): Tensor { return this.#op("geglu", [up]); }
  gegluErf(up: Tensor): Tensor { return this.#op("geglu_erf", [up]); }
  reglu(up: Tensor): Tensor { return this.#op("reglu", [up]); }
  /** g * sigmoid(alpha g) * (u + 1), g = min(this, limit), u = clamp(up, -limit, limit). */
  swigluClamped(up: Tensor, alpha: number, limit: number): Tensor {
    return this.#op("swiglu_clamped", [up], [alpha, limit]);
  }

  /** Between all dtypes; also from the types of blocks. */
  cast(dtype: ScalarDtype | StoredDtype): Tensor {
    return this.#commands.op("cast", [this], [], dtype);
  }

  // --- In place ---

  /** Every element becomes value. */
  fill(value: number): this { return this.#inPlace("fill", [], [value]); }
  /** Becomes src, broadcast and cast. */
  copy(src: Tensor): this { return this.#inPlace("copy", [src]); }
  /** This cache [b, h, s, d] receives fresh [b, h, t, d] at position along dim 2. */
  kvAppend(fresh: Tensor, position: number): this {
    return this.#inPlace("kv_append", [fresh], [whole(position)]);
  }

  // --- Views: no data moves (reshape and flatten copy where strides force it) ---

  transpose(dim0 = -2, dim1 = -1): Tensor {
    return this.#op("transpose", [], [dim0, dim1].map(whole));
  }
  permute(dims: number[]): Tensor { return this.#op("permute", [], wholes(dims)); }
  /** One extent may be -1: what is left. */
  reshape(shape: number[]): Tensor { return this.#op("reshape", [], wholes(shape)); }
  /** Dims start to end (inclusive) become one. */
  flatten(start = 0, end = -1): Tensor { return this.#op("flatten", [], [start, end].map(whole)); }
  squeeze(dim: number): Tensor { return this.#op("squeeze", [], [whole(dim)]); }
  unsqueeze(dim: number): Tensor { return this.#op("unsqueeze", [], [whole(dim)]); }
  narrow(dim: number, start: number, length: number): Tensor {
    return this.#op("narrow", [], [dim, start, length].map(whole));
  }
  /** Elements start, start + step, ... below stop; step > 0. */
  slice(dim: number, start: number, stop: number, step = 1): Tensor {
    return this.#op("slice", [], [dim, start, stop, step].map(whole));
  }
  /** Parts of dim of ceil(extent / count) elements, the last one perhaps smaller. */
  async chunk(count: number, dim = 0): Promise<Tensor[]> {
    const extent = (await this.describe()).shape.at(dim) ?? 0;
    const n = Math.ceil(extent / Math.ceil(extent / count)) || 1;
    return this.#commands.ops("chunk", [this], [count, dim].map(whole), n);
  }
  /** Dims of extent 1, and new leading ones, are repeated without a copy. */
  expand(shape: number[]): Tensor { return this.#op("expand", [], wholes(shape)); }
  /** A view where it is dense, else a dense copy. */
  contiguous(): Tensor { return this.#op("contiguous"); }

  // --- Reductions and normalisation ---

  sum(dims?: Dims, keepdim = false): Tensor {
    return this.#op("sum", [], overDims(dims, Number(keepdim)));
  }
  mean(dims?: Dims, keepdim = false): Tensor {
    return this.#op("mean", [], overDims(dims, Number(keepdim)));
  }
  /** Divided by the number of elements less correction. */
  var(dims?: Dims, keepdim = false, correction = 1): Tensor {
    return this.#op("var", [], overDims(dims, Number(keepdim), correction));
  }
  max(dims?: Dims, keepdim = false): Tensor {
    return this.#op("max", [], overDims(dims, Number(keepdim)));
  }
  min(dims?: Dims, keepdim = false): Tensor {
    return this.#op("min", [], overDims(dims, Number(keepdim)));
  }
  /** u32 index of the first largest element along dim. */
  argmax(dim = -1, keepdim = false): Tensor {
    return this.#op("argmax", [], [whole(dim), Number(keepdim)]);
  }
  argmin(dim = -1, keepdim = false): Tensor {
    return this.#op("argmin", [], [whole(dim), Number(keepdim)]);
  }
  /** The k largest along dim, the largest first, and their u32 indices. */
  topK(k: number, dim = -1): { values: Tensor; indices: Tensor } {
    const [values, indices] = this.#commands.ops("top_k", [this], [k, dim].map(whole), 2);
    return { values: values!, indices: indices! };
  }
  softmax(dim = -1): Tensor { return this.#op("softmax", [], [whole(dim)]); }
  logSoftmax(dim = -1): Tensor { return this.#op("log_softmax", [], [whole(dim)]); }
  /** x / sqrt(mean(x^2) + eps) * weight over the last dim. */
  rmsNorm(weight?: Tensor, eps = 1e-5): Tensor { return this.#op("rms_norm", [weight], [eps]); }
  layerNorm(weight?: Tensor, bias?: Tensor, eps = 1e-5): Tensor {
    return this.#op("layer_norm", [weight, bias], [eps]);
  }

  // --- Products ---

  /** [.., m, k] x [.., k, n]. */
  matmul(b: Tensor): Tensor { return this.#op("matmul", [b]); }
  /** this [.., k] weight^T + bias: weight [n, k] of any dtype, blocks included. */
  linear(weight: Tensor, bias?: Tensor): Tensor { return this.#op("linear", [weight, bias]); }
  /** The same with a weight of its own for each row, see `wick_linear_experts`. */
  linearExperts(weight: Tensor, ids: Tensor, bias?: Tensor): Tensor {
    return this.#op("linear_experts", [weight, bias, ids]);
  }
  /** Rows of this weight [n, k]: [ids.., k]. */
  embedding(ids: Tensor): Tensor { return this.#op("embedding", [ids]); }

  // --- Transformers ---

  rope(options: RopeOptions = {}): Tensor {
    const { rotaryDim = 0, theta = 0, scaleFactor = 0, offset = 0, interleaved = false } = options;
    return this.#op("rope", [options.positions],
                    [whole(rotaryDim), theta, scaleFactor, whole(offset), Number(interleaved),
                     layoutNumber(options.layout)]);
  }
  /** The same with given tables, [time, r / 2] or [batch, time, r / 2]. */
  ropeTable(cos: Tensor, sin: Tensor, interleaved = false, layout?: RopeLayout): Tensor {
    return this.#op("rope_table", [cos, sin], [Number(interleaved), layoutNumber(layout)]);
  }
  /** This q [b, h, t, d], k [b, g, s, d], v [b, g, s, e]: [b, h, t, e]. */
  attention(k: Tensor, v: Tensor, options: AttentionOptions = {}): Tensor {
    const { softcap = 0, window = 0, causal = false } = options;
    const scale = options.scale === 0 ? FLT_MIN : options.scale ?? 0;
    return this.#op("attention", [k, v, options.mask, options.bias, options.sinks, options.slopes],
                    [scale, softcap, whole(window), Number(causal)]);
  }
}
