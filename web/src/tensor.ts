/**
 * Tensors on a device. Operations are given to the engine in their order and return at once, with
 * a tensor that stands for the result; what fails comes with the next `read`, `describe` or `sync`,
 * under the name of the operation, and again with those of every tensor computed from it.
 */
import type { Commands, Operand } from "./commands.js";
import { WickError } from "./errors.js";
import {
  type Dims, FLT_MIN, layoutNumber, overDims, PAD_MODES, pair, pairs, SCATTER_MODES, takeItem,
  windowNumbers,
} from "./tensor_numbers.js";
import type {
  AttentionOptions, PadMode, RopeLayout, RopeOptions, ScalarDtype, ScatterMode, StoredDtype,
  TensorInfo, TensorValues, WindowOptions,
} from "./types.js";
import { bytesOf, textOf, valuesOf, whole, wholes } from "./values.js";

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

  #ordered(name: string, numbers: number[]): { values: Tensor; indices: Tensor } {
    const [values, indices] = this.#commands.ops(name, [this], numbers, 2);
    return { values: values!, indices: indices! };
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
   * Operands are promoted to one dtype and broadcast by NumPy's rule, as for all operations of two.
   * A number becomes the other operand's dtype, in which it must have a value; beside none it
   * becomes f32.
   */
  add(b: Tensor | number): Tensor { return this.#mixed("add", this, b); }
  sub(b: Tensor | number): Tensor { return this.#mixed("sub", this, b); }
  mul(b: Tensor | number): Tensor { return this.#mixed("mul", this, b); }
  /** Integers truncate toward zero; there x / 0 is x. */
  div(b: Tensor | number): Tensor { return this.#mixed("div", this, b); }
  /** The same rounded down; integers: x / 0 is x. */
  floorDivide(b: Tensor | number): Tensor { return this.#mixed("floor_divide", this, b); }
  /** What a division leaves: `remainder` rounded down, with the sign of b, `fmod` toward zero, with
   * that of this. Integers: 0 of a division by 0. */
  remainder(b: Tensor | number): Tensor { return this.#mixed("remainder", this, b); }
  fmod(b: Tensor | number): Tensor { return this.#mixed("fmod", this, b); }
  maximum(b: Tensor | number): Tensor { return this.#mixed("maximum", this, b); }
  minimum(b: Tensor | number): Tensor { return this.#mixed("minimum", this, b); }
  /** Comparisons give u8, 0 or 1. */
  eq(b: Tensor | number): Tensor { return this.#mixed("eq", this, b); }
  ne(b: Tensor | number): Tensor { return this.#mixed("ne", this, b); }
  lt(b: Tensor | number): Tensor { return this.#mixed("lt", this, b); }
  le(b: Tensor | number): Tensor { return this.#mixed("le", this, b); }
  gt(b: Tensor | number): Tensor { return this.#mixed("gt", this, b); }
  ge(b: Tensor | number): Tensor { return this.#mixed("ge", this, b); }
  /** |this - b| <= atol + rtol |b|, and where both are the same infinity (or NaN): u8. */
  isClose(b: Tensor, rtol = 1e-5, atol = 1e-8, equalNan = false): Tensor {
    return this.#op("is_close", [b], [rtol, atol, Number(equalNan)]);
  }
  /** Whether that holds of all elements: a scalar. */
  allClose(b: Tensor, rtol = 1e-5, atol = 1e-8, equalNan = false): Tensor {
    return this.#op("all_close", [b], [rtol, atol, Number(equalNan)]);
  }
  /** u8: NaN; infinite; neither; negative or -0. */
  isNan(): Tensor { return this.#op("is_nan"); }
  isInf(): Tensor { return this.#op("is_inf"); }
  isFinite(): Tensor { return this.#op("is_finite"); }
  signbit(): Tensor { return this.#op("signbit"); }
  /** u8 of any dtypes: what is not zero is true. */
  logicalNot(): Tensor { return this.#op("logical_not"); }
  logicalAnd(b: Tensor): Tensor { return this.#op("logical_and", [b]); }
  logicalOr(b: Tensor): Tensor { return this.#op("logical_or", [b]); }
  logicalXor(b: Tensor): Tensor { return this.#op("logical_xor", [b]); }
  /** Of the bits of integers, and of bools. */
  bitwiseNot(): Tensor { return this.#op("bitwise_not"); }
  bitwiseAnd(b: Tensor | number): Tensor { return this.#mixed("bitwise_and", this, b); }
  bitwiseOr(b: Tensor | number): Tensor { return this.#mixed("bitwise_or", this, b); }
  bitwiseXor(b: Tensor | number): Tensor { return this.#mixed("bitwise_xor", this, b); }
  /** Bits moved b places; to the right the sign fills up. */
  bitwiseLeftShift(b: Tensor | number): Tensor {
    return this.#mixed("bitwise_left_shift", this, b);
  }
  bitwiseRightShift(b: Tensor | number): Tensor {
    return this.#mixed("bitwise_right_shift", this, b);
  }
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
  tan(): Tensor { return this.#op("tan"); }
  asin(): Tensor { return this.#op("asin"); }
  acos(): Tensor { return this.#op("acos"); }
  atan(): Tensor { return this.#op("atan"); }
  /** Angle of the point (b, this), -pi to pi. */
  atan2(b: Tensor | number): Tensor { return this.#mixed("atan2", this, b); }
  sinh(): Tensor { return this.#op("sinh"); }
  cosh(): Tensor { return this.#op("cosh"); }
  asinh(): Tensor { return this.#op("asinh"); }
  acosh(): Tensor { return this.#op("acosh"); }
  atanh(): Tensor { return this.#op("atanh"); }
  /** e^x - 1, 2^x; log(1 + x), and logarithms to base 2 and 10. */
  expm1(): Tensor { return this.#op("expm1"); }
  exp2(): Tensor { return this.#op("exp2"); }
  log1p(): Tensor { return this.#op("log1p"); }
  log2(): Tensor { return this.#op("log2"); }
  log10(): Tensor { return this.#op("log10"); }
  /** log(e^this + e^b), without its overflow. */
  logaddexp(b: Tensor | number): Tensor { return this.#mixed("logaddexp", this, b); }
  /** 1 / x. */
  recip(): Tensor { return this.#op("recip"); }
  sqrt(): Tensor { return this.#op("sqrt"); }
  /** 1 / sqrt(x). */
  rsqrt(): Tensor { return this.#op("rsqrt"); }
  /** sqrt(this^2 + b^2), without its overflow. */
  hypot(b: Tensor | number): Tensor { return this.#mixed("hypot", this, b); }
  /** |this| with the sign of b. */
  copysign(b: Tensor | number): Tensor { return this.#mixed("copysign", this, b); }
  /** The number of the dtype that follows on the way to b; computed on the CPU. */
  nextafter(b: Tensor | number): Tensor { return this.#mixed("nextafter", this, b); }
  erf(): Tensor { return this.#op("erf"); }
  tanh(): Tensor { return this.#op("tanh"); }
  sigmoid(): Tensor { return this.#op("sigmoid"); }
  floor(): Tensor { return this.#op("floor"); }
  ceil(): Tensor { return this.#op("ceil"); }
  /** Toward zero. */
  trunc(): Tensor { return this.#op("trunc"); }
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
  selu(): Tensor { return this.#op("selu"); }
  celu(alpha = 1): Tensor { return this.#op("celu", [], [alpha]); }
  /** x / (1 + |x|). */
  softsign(): Tensor { return this.#op("softsign"); }
  /** To [-1, 1]. */
  hardTanh(): Tensor { return this.#op("hard_tanh"); }
  logSigmoid(): Tensor { return this.#op("log_sigmoid"); }
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
  /** Removes those of dims, or of all, whose extent is 1. */
  squeeze(dims?: Dims): Tensor { return this.#op("squeeze_dims", [], overDims(dims)); }
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
  /** Parts of dim of these sizes. */
  split(sizes: number[], dim = 0): Tensor[] {
    const numbers = [sizes.length, dim, ...sizes].map(whole);
    return this.#commands.ops("split", [this], numbers, sizes.length);
  }
  /** Each element of dim, without dim. */
  async unstack(dim = 0): Promise<Tensor[]> {
    const n = (await this.describe()).shape.at(dim) ?? 1; // a dim that is not there is refused
    return n === 0 ? [] : this.#commands.ops("unstack", [this], [whole(dim)], n);
  }
  /** The last two dims change places. */
  matrixTranspose(): Tensor { return this.#op("matrix_transpose"); }
  /** Dims `from` go to the places `to`, the others keep their order. */
  movedim(from: number | number[], to: number | number[]): Tensor {
    return this.#op("movedim", [], pairs(from, to));
  }
  /** Windows of size elements along dim, step apart, in a new last dim. */
  unfold(dim: number, size: number, step: number): Tensor {
    return this.#op("unfold", [], [dim, size, step].map(whole));
  }
  /** Elements (i, i + offset) of two dims, in a new last dim. */
  diagonal(offset = 0, dim0 = 0, dim1 = 1): Tensor {
    return this.#op("diagonal", [], [offset, dim0, dim1].map(whole));
  }
  /** A view where it is dense, else a dense copy. */
  contiguous(): Tensor { return this.#op("contiguous"); }

  // --- Reductions and normalisation ---

  sum(dims?: Dims, keepdim = false): Tensor {
    return this.#op("sum", [], overDims(dims, Number(keepdim)));
  }
prod(dims?: Dims, keepdim = false): Tensor {
    return this.#op("prod", [], overDims(dims, Number(keepdim)));
  }
  mean(dims?: Dims, keepdim = false): Tensor {
    return this.#op("mean", [], overDims(dims, Number(keepdim)));
  }
  /** Divided by the number of elements less correction. */
  var(dims?: Dims, keepdim = false, correction = 1): Tensor {
    return this.#op("var", [], overDims(dims, Number(keepdim), correction));
  }
  /** The square root of `var`. */
  std(dims?: Dims, keepdim = false, correction = 1): Tensor {
    return this.#op("std", [], overDims(dims, Number(keepdim), correction));
  }
  /** log(sum(e^x)), without its overflow. */
  logSumExp(dims?: Dims, keepdim = false): Tensor {
    return this.#op("log_sum_exp", [], overDims(dims, Number(keepdim)));
  }
  /** sum(|x|^p)^(1 / p); p 0: how many are not zero; p infinite: the largest or least |x|. */
  norm(p = 2, dims?: Dims, keepdim = false): Tensor {
    return this.#op("norm", [], overDims(dims, p, Number(keepdim)));
  }
  /** Whether all or any elements are not zero, u8, and how many, u32. */
  all(dims?: Dims, keepdim = false): Tensor {
    return this.#op("all", [], overDims(dims, Number(keepdim)));
  }
  any(dims?: Dims, keepdim = false): Tensor {
    return this.#op("any", [], overDims(dims, Number(keepdim)));
  }
  countNonzero(dims?: Dims, keepdim = false): Tensor {
    return this.#op("count_nonzero", [], overDims(dims, Number(keepdim)));
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
    return this.#ordered("top_k", [k, dim].map(whole));
  }
  softmax(dim = -1): Tensor { return this.#op("softmax", [], [whole(dim)]); }
  logSoftmax(dim = -1): Tensor { return this.#op("log_softmax", [], [whole(dim)]); }
  /** x / sqrt(mean(x^2) + eps) * weight over the last dim. */
  rmsNorm(weight?: Tensor, eps = 1e-5): Tensor { return this.#op("rms_norm", [weight], [eps]); }
  layerNorm(weight?: Tensor, bias?: Tensor, eps = 1e-5): Tensor {
    return this.#op("layer_norm", [weight, bias], [eps]);
  }

  // --- Copies ---

  /** Of this shape and dtype. */
  fullLike(value: number): Tensor { return this.#op("full_like", [], [value]); }
  zerosLike(): Tensor { return this.#op("zeros_like"); }
  onesLike(): Tensor { return this.#op("ones_like"); }
  emptyLike(): Tensor { return this.#op("empty_like"); }
  /** 1 at these indices in a new last dim, else 0. */
  oneHot(classes: number, dtype: ScalarDtype = "f32"): Tensor {
    return this.#commands.op("one_hot", [this], [whole(classes)], dtype);
  }
  /** Beside itself: for each of the last dims how often; at least as many as there are dims. */
  repeat(repeats: number[]): Tensor { return this.#op("repeat", [], wholes(repeats)); }
  /** The same of any number of dims. */
  tile(repeats: number[]): Tensor { return this.#op("tile", [], wholes(repeats)); }
  /** Each element of dim count times, one after another. */
  repeatInterleave(count: number, dim: number): Tensor {
    return this.#op("repeat_interleave", [], [count, dim].map(whole));
  }
  /** Elements move up, those at the end come first; without dims, in row-major order. */
  roll(shifts: number | number[], dims?: number | number[]): Tensor {
    const list = [shifts].flat(), along = dims === undefined ? [] : pairs(shifts, dims);
    return this.#op("roll", [], [list.length, Number(dims !== undefined), ...wholes(list),
                                 ...along.slice(list.length + 1)]);
  }
  /** In reverse, over all dims where none are given. */
  flip(dims?: Dims): Tensor { return this.#op("flip", [], overDims(dims)); }
  /** before and after: of each dim; negative ones cut off. */
  pad(before: number[], after: number[], mode: PadMode = "constant", value = 0): Tensor {
    return this.#op("pad", [], [PAD_MODES.indexOf(mode), value, ...pairs(before, after).slice(1)]);
  }
  /** A copy with src at elements start to stop - 1 of each dim. */
  sliceAssign(start: number[], stop: number[], src: Tensor): Tensor {
    return this.#op("slice_assign", [src], pairs(start, stop).slice(1));
  }
  /** A copy with src at elements start, start + 1, ... of dim. */
  sliceScatter(src: Tensor, dim: number, start = 0): Tensor {
    return this.#op("slice_scatter", [src], [dim, start].map(whole));
  }
  /** A square matrix of zeros with this on a diagonal; of a matrix, that diagonal. */
  diag(offset = 0): Tensor { return this.#op("diag", [], [whole(offset)]); }
  /** x[i + 1] - x[i] along dim, n times over. */
  diff(n = 1, dim = -1): Tensor { return this.#op("diff", [], [n, dim].map(whole)); }
  /** value where mask is not zero. */
  maskedFill(mask: Tensor, value: number): Tensor {
    return this.#op("masked_fill", [mask], [value]);
  }

  // --- Images and windows ---

  /** Windows of [n, c, h, w] as columns: [n, c kh kw, positions]. */
  im2col(kernel: number | number[], options: WindowOptions = {}): Tensor {
    return this.#op("im2col", [], [...pair(kernel, 1), ...windowNumbers(options)]);
  }
  /** The adjoint: columns added up to images of size [h, w]. */
  col2im(size: number | number[], kernel: number | number[], options: WindowOptions = {}): Tensor {
    return this.#op("col2im", [], [size, kernel].flatMap((given) => pair(given, 1))
      .concat(windowNumbers(options)));
  }
  /** The adjoint of `unfold`: windows added up to a dim of that extent. */
  fold(dim: number, extent: number, step: number): Tensor {
    return this.#op("fold", [], [dim, extent, step].map(whole));
  }
  /** [.., c r r, h, w] to [.., c, h r, w r], r being the factor, and back. */
  pixelShuffle(factor: number): Tensor { return this.#op("pixel_shuffle", [], [whole(factor)]); }
  pixelUnshuffle(factor: number): Tensor {
    return this.#op("pixel_unshuffle", [], [whole(factor)]);
  }
  /** Channel i of group g becomes channel i groups + g. */
  channelShuffle(groups: number): Tensor {
    return this.#op("channel_shuffle", [], [whole(groups)]);
  }

  // --- By index: u32, i64 or u8; one out of range fails (INDEX) with the next answer ---

  /** Of the shape of index: along dim element i is element index[i], elsewhere the same one. */
  gather(dim: number, index: Tensor): Tensor { return this.#op("gather", [index], [whole(dim)]); }
  /** The same where the other dims broadcast. */
  takeAlongDim(dim: number, index: Tensor): Tensor {
    return this.#op("take_along_dim", [index], [whole(dim)]);
  }
  /** Slices along dim: index [m]. */
  indexSelect(dim: number, index: Tensor): Tensor {
    return this.#op("index_select", [index], [whole(dim)]);
  }
  /** A copy in which, along dim, source i meets element index[i], as mode says; of several `set`
   * ones the last one stays. */
  scatter(dim: number, index: Tensor, src: Tensor, mode: ScatterMode = "set"): Tensor {
    return this.#op("scatter", [index, src], [whole(dim), SCATTER_MODES.indexOf(mode)]);
  }
  scatterAdd(dim: number, index: Tensor, src: Tensor): Tensor {
    return this.#op("scatter_add", [index, src], [whole(dim)]);
  }
  /** A copy to whose slices index [m] along dim the slices of src are added. */
  indexAdd(dim: number, index: Tensor, src: Tensor): Tensor {
    return this.#op("index_add", [index, src], [whole(dim)]);
  }

  // --- Order and running sums ---

  /** Element i is the sum of elements 0 to i along dim. */
  cumsum(dim: number): Tensor { return this.#op("cumsum", [], [whole(dim)]); }
  /** Their product. */
  cumprod(dim: number): Tensor { return this.#op("cumprod", [], [whole(dim)]); }
  /** u32 indices that sort along dim; of equal elements the first comes first, NaN is largest. */
  argsort(dim = -1, descending = false): Tensor {
    return this.#op("argsort", [], [whole(dim), Number(descending)]);
  }
  /** The elements in that order, and the indices. */
  sort(dim = -1, descending = false): { values: Tensor; indices: Tensor } {
    return this.#ordered("sort", [whole(dim), Number(descending)]);
  }

  // --- Searching ---

  /** Elements in row-major order, in the shape of index. */
  take(index: Tensor): Tensor { return this.#op("take", [index]); }
  /** u8: which elements are among those of set. */
  isin(set: Tensor): Tensor { return this.#op("isin", [set]); }
  /** u32: how many elements of this [.., n], ascending, are less than values; right: or equal. */
  searchsorted(values: Tensor, right = false): Tensor {
    return this.#op("searchsorted", [values], [Number(right)]);
  }
  /** u32 [count, rank]: where elements are not zero. */
  async nonzero(): Promise<Tensor> {
    return this.#op("nonzero", [], [await takeItem(this.countNonzero())]);
  }
  /** Elements where mask is not zero, in row-major order; they broadcast. */
  async maskedSelect(mask: Tensor): Promise<Tensor> {
    const ones = this.onesLike(), all = mask.logicalAnd(ones), count = all.countNonzero();
    for (const tensor of [ones, all]) tensor.dispose();
    return this.#op("masked_select", [mask], [await takeItem(count)]);
  }
  /** The different values, ascending; the first element with each, for each element which value it
   * has, and how many have each. */
  async unique(): Promise<Record<"values" | "indices" | "inverse" | "counts", Tensor>> {
    const { shape } = await this.describe(), which = this.uniqueInverse();
    const count = shape.includes(0) ? 0 : await takeItem(which.max()) + 1;
    which.dispose();
    const [values, indices, inverse, counts] = this.#commands.ops("unique", [this], [count], 4);
    return { values: values!, indices: indices!, inverse: inverse!, counts: counts! };
  }
  /** For each element which of the different values it has. */
  uniqueInverse(): Tensor { return this.#op("unique_inverse"); }

  // --- Products ---

  /** [.., m, k] x [.., k, n]. */
  matmul(b: Tensor): Tensor { return this.#op("matmul", [b]); }
  /** Of two vectors; along dim; of a matrix and a vector. */
  dot(b: Tensor): Tensor { return this.#op("dot", [b]); }
  vecdot(b: Tensor, dim = -1): Tensor { return this.#op("vecdot", [b], [whole(dim)]); }
  mv(v: Tensor): Tensor { return this.#op("mv", [v]); }
  /** All products of two vectors. */
  outer(b: Tensor): Tensor { return this.#op("outer", [b]); }
  /** Of vectors of 3 along dim. */
  cross(b: Tensor, dim = -1): Tensor { return this.#op("cross", [b], [whole(dim)]); }
  /** Sums over pairs of dims of this and of b. */
  tensordot(b: Tensor, dims: number[], dimsOfB: number[]): Tensor {
    return this.#op("tensordot", [b], pairs(dims, dimsOfB));
  }
  /** The sum of a diagonal of the last two dims. */
  trace(offset = 0): Tensor { return this.#op("trace", [], [whole(offset)]); }
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
