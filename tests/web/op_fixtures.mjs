// The recorded cases of tensor operations (shared/data/ops) by the package's tensors: the operands
// as the case views them, the call, what is expected.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const shared = process.env.WICK_SHARED_DATA
  ?? fileURLToPath(new URL("../../../shared/data", import.meta.url));

const CLASSES = {
  F32: Float32Array, F16: Uint16Array, BF16: Uint16Array, F64: Float64Array, I64: BigInt64Array,
  I32: Int32Array, I16: Int16Array, I8: Int8Array, U32: Uint32Array, U8: Uint8Array,
  BOOL: Uint8Array,
};

/** Arrays by name: dtype, shape, data (the bits of f16 and bf16). */
function readArrays(bytes) {
  const size = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + size).toString());
  delete header.__metadata__;
  return new Map(Object.entries(header).map(([name, { dtype, shape, data_offsets }]) => {
    const [from, to] = data_offsets;
    const copy = new Uint8Array(bytes.subarray(8 + size + from, 8 + size + to));
    return [name, { dtype: dtype.toLowerCase(), shape, data: new CLASSES[dtype](copy.buffer) }];
  }));
}

/** undefined: the fixtures are not here. */
export function readFixtures() {
  try {
    const lines = readFileSync(`${shared}/ops/cases.jsonl`).toString().trim().split("\n");
    const arrays = readArrays(readFileSync(`${shared}/ops/data.safetensors`));
    return { cases: lines.map((line) => JSON.parse(line)), arrays };
  } catch {
    return undefined;
  }
}

function fromHalf(bits, dtype) {
  if (dtype === "bf16") return new Float32Array(Uint32Array.of(bits << 16).buffer)[0];
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

/** The elements as numbers, those of 64 bits as they are. */
export function numbersOf({ dtype, data }) {
  return data instanceof Uint16Array ? Array.from(data, (bits) => fromHalf(bits, dtype)) : data;
}

const same = (got, wanted, tolerance, isSignedZero, mayFlush) => {
  if (typeof wanted === "bigint" || Object.is(got, wanted)) return Object.is(got, wanted);
  if (Number.isNaN(wanted) || Number.isNaN(got)) return false;
  if (!Number.isFinite(wanted) || !Number.isFinite(got)) return got === wanted;
  if (isSignedZero && got === 0 && wanted === 0) return false;
  if (mayFlush && got === 0 && Math.abs(wanted) < 2 ** -126) return true;
  return Math.abs(got - wanted) <= tolerance.abs + tolerance.rel * Math.abs(wanted);
};

/** What is wrong with the values read; undefined: nothing. */
export function difference(values, expected, { tolerance, tags = [] }, isGpu) {
  const wanted = numbersOf(expected);
  const isInteger = !/^b?f/.test(expected.dtype);
  const bound = isInteger ? { abs: 0, rel: 0 } : tolerance;
  const isSigned = tags.includes("signed-zero"), mayFlush = isGpu && expected.dtype !== "f64";
  const at = Array.from(wanted).findIndex((w, i) => !same(values[i], w, bound, isSigned, mayFlush));
  if (values.length !== wanted.length) return `${values.length} values of ${wanted.length}`;
  return at < 0 ? undefined : `element ${at} is ${values[at]}, expected ${wanted[at]}`;
}

function view(x, step) {
  if (step.permute) return x.permute(step.permute);
  if (step.slice) return x.slice(step.dim, ...step.slice);
  return step.expand ? x.expand(step.expand) : x.unsqueeze(step.unsqueeze);
}

/** The operands by role where the case has roles, and all by position. */
export function makeInputs(wick, arrays, { inputs }) {
  const list = inputs.map(({ tensor, view: steps = [] }) => {
    const { data, shape, dtype } = arrays.get(tensor);
    return steps.reduce(view, wick.tensor(data, shape, dtype));
  });
  const roles = Object.fromEntries(inputs.map(({ role }, i) => [role ?? i, list[i]]));
  return { list, roles, by: (role, i) => roles[role] ?? (inputs[0].role ? undefined : list[i]) };
}

const unary = ["silu", "abs", "neg", "sqr", "sign", "relu", "relu_squared", "relu6", "exp", "log",
  "sin", "cos", "recip", "sqrt", "erf", "tanh", "sigmoid", "floor", "ceil", "round", "gelu",
  "gelu_erf", "quick_gelu", "softplus", "mish", "hard_sigmoid", "hard_swish", "contiguous",
  "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "expm1", "exp2",
  "log1p", "log2", "log10", "rsqrt", "trunc", "selu", "softsign", "hard_tanh", "log_sigmoid",
  "is_nan", "is_inf", "is_finite", "signbit", "logical_not", "bitwise_not"];
const binary = ["add", "sub", "mul", "div", "maximum", "minimum", "pow", "eq", "ne", "lt", "le",
  "gt", "ge", "matmul", "floor_divide", "remainder", "fmod", "atan2", "hypot", "copysign",
  "nextafter", "logaddexp", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
  "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"];
const gated = ["swiglu", "geglu", "geglu_erf", "reglu"];
const reductions = ["sum", "prod", "mean", "max", "min", "log_sum_exp", "all", "any",
  "count_nonzero"];
const method = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const each = (names, make) =>
  Object.fromEntries(names.map((name) => [name, make(method(name), name)]));

const indexed = ["gather", "take_along_dim", "index_select"];
const scattered = ["scatter", "scatter_add", "index_add"];
/** PyTorch's names of them. */
const SCATTER_MODES = { sum: "add", prod: "mul", amax: "max", amin: "min" };

function kvAppend({ list }, { mode, capacity, position }, wick) {
  if (mode === "rotating") {
    const all = wick.cat(list, 2);
    return all.describe().then(({ shape }) =>
      all.narrow(2, Math.max(shape[2] - capacity, 0), Math.min(shape[2], capacity)));
  }
  const [cache, ...fresh] = list;
  return fresh.reduce(async (before, block) => {
    const at = await before;
    cache.kvAppend(block, at);
    return at + (await block.describe()).shape[2];
  }, Promise.resolve(position)).then(() => cache);
}

/** Each is given the inputs, the attributes and the engine; the operations that Wick has. */
export const operations = {
  ...each(unary, (name) => ({ list: [x] }) => x[name]()),
  ...each(binary, (name) => ({ list: [a, b] }) => a[name](b)),
  ...each(gated, (name) => ({ by }) => by("gate", 0)[name](by("up", 1))),
  ...each(indexed, (name) => ({ by }, { dim }) => by("x", 0)[name](dim, by("index", 1))),
  ...each(scattered, (name) => ({ by }, { dim }) =>
    by("x", 0)[name](dim, by("index", 1), by("src", 2))),
  scatter_reduce: ({ by }, { dim, reduce }) =>
    by("x", 0).scatter(dim, by("index", 1), by("src", 2), SCATTER_MODES[reduce]),
  ...each(["cumsum", "cumprod"], (name) => ({ list: [x] }, { dim }) => x[name](dim)),
  argsort: ({ list: [x] }, { dim, descending }) => x.argsort(dim, descending),
  sort: ({ list: [x] }, { dim, descending }) => Object.values(x.sort(dim, descending)),
  ...each(reductions, (name) => ({ list: [x] }, { dims, keepdim }) =>
    x[name](dims ?? undefined, keepdim)),
  ...each(["var", "std"], (name) => ({ list: [x] }, { dims, keepdim, correction }) =>
    x[name](dims ?? undefined, keepdim, correction)),
  norm: ({ list: [x] }, { p, dims, keepdim }) => x.norm(p, dims ?? undefined, keepdim),
  swiglu_clamped: ({ by }, { alpha, limit }) =>
    by("gate", 0).swigluClamped(by("up", 1), alpha, limit),
  elu: ({ list: [x] }, { alpha }) => x.elu(alpha),
  leaky_relu: ({ list: [x] }, { negative_slope: slope }) => x.leakyRelu(slope),
  powf: ({ list: [x] }, { exponent }) => x.pow(exponent),
  affine: ({ list: [x] }, { mul, add }) => x.affine(mul, add),
  clamp: ({ list: [x] }, { min, max }) => x.clamp(min, max),
  where_cond: ({ list: [cond, a, b] }) => cond.where(a, b),
  argmax: ({ list: [x] }, { dim, keepdim }) => x.argmax(dim, keepdim),
  argmin: ({ list: [x] }, { dim, keepdim }) => x.argmin(dim, keepdim),
  softmax: ({ list: [x] }, { dim }) => x.softmax(dim),
  log_softmax: ({ list: [x] }, { dim }) => x.logSoftmax(dim),
  rms_norm: ({ by }, { eps }) => by("x", 0).rmsNorm(by("weight", 1), eps),
  layer_norm: ({ by }, { eps }) => by("x", 0).layerNorm(by("weight", 1), by("bias", 2), eps),
  linear: ({ by }) => by("x", 0).linear(by("weight", 1), by("bias", 2)),
  embedding: ({ by }) => by("weight", 0).embedding(by("index", 1)),
  transpose: ({ list: [x] }, { dim0, dim1 }) => x.transpose(dim0, dim1),
  permute: ({ list: [x] }, { dims }) => x.permute(dims),
  reshape: ({ list: [x] }, { shape }) => x.reshape(shape),
  flatten: ({ list: [x] }, { start, end }) => x.flatten(start, end),
  squeeze: ({ list: [x] }, { dim }) => x.squeeze(dim),
  unsqueeze: ({ list: [x] }, { dim }) => x.unsqueeze(dim),
  narrow: ({ list: [x] }, { dim, start, len }) => x.narrow(dim, start, len),
  chunk: ({ list: [x] }, { chunks, dim }) => x.chunk(chunks, dim),
  expand: ({ list: [x] }, { shape }) => x.expand(shape),
  cat: ({ list }, { dim }, wick) => wick.cat(list, dim),
  stack: ({ list }, { dim }, wick) => wick.stack(list, dim),
  cast: ({ list: [x] }, { to }) => x.cast(to),
  fill: ({ list: [x] }, { value }) => x.fill(value),
  copy: ({ by }) => by("dst", 0).copy(by("src", 1)),
  tril: ({ list: [x] }, { diagonal }) => x.tril(diagonal),
  triu: ({ list: [x] }, { diagonal }) => x.triu(diagonal),
  zeros: (_, { shape, dtype }, wick) => wick.zeros(shape, dtype),
  ones: (_, { shape, dtype }, wick) => wick.ones(shape, dtype),
  full: (_, { shape, dtype, value }, wick) => wick.full(shape, value, dtype),
  eye: (_, { n, dtype }, wick) => wick.eye(n, dtype),
  arange: (_, { start, end, step, dtype }, wick) => wick.arange(start, end, step, dtype),
  rope: ({ by }, { rotary_dim: rotaryDim, scale_factor: scaleFactor, ...rest }) =>
    by("x", 0).rope({ rotaryDim, scaleFactor, positions: by("positions", 1), ...rest }),
  rope_table: ({ by }, { interleaved, layout }) =>
    by("x", 0).ropeTable(by("cos", 1), by("sin", 2), interleaved, layout),
  attention: ({ by, roles: { mask, bias, sinks, alibi_slopes: slopes } }, attrs) => {
    const set = Object.entries({ ...attrs, mask, bias, sinks, slopes })
      .filter(([, value]) => value !== undefined && value !== null);
    return by("q", 0).attention(by("k", 1), by("v", 2), Object.fromEntries(set));
  },
  kv_append: kvAppend,
  ...each(["dot", "outer", "mv", "isin"], (name) => ({ by }) => by("m", 0)[name](by("v", 1))),
  ...each(["repeat", "tile"], (name) => ({ list: [x] }, { repeats }) => x[name](repeats)),
  roll: ({ list: [x] }, { shift, dim }) => x.roll(shift, dim ?? undefined),
  flip: ({ list: [x] }, { dims }) => x.flip(dims ?? undefined),
  ...each(["pad_with_zeros", "pad_with_same"], (_, name) => async ({ list: [x] }, attrs) => {
    const { length } = (await x.describe()).shape;
    const at = (value) => Array.from({ length }, (__, i) =>
      i === (attrs.dim + length) % length ? value : 0);
    return x.pad(at(attrs.left), at(attrs.right),
                 name === "pad_with_same" ? "replicate" : "constant");
  }),
  unfold: ({ list: [x] }, { dim, size, step }) => x.unfold(dim, size, step),
  im2col: ({ list: [x] }, { kernel, ...options }) => x.im2col(kernel, options),
  meshgrid: ({ list }, { indexing }, wick) => wick.meshgrid(list, indexing),
  slice_assign: ({ by }, { ranges }) =>
    by("x", 0).sliceAssign(ranges.map(([at]) => at), ranges.map(([, end]) => end), by("src", 1)),
  slice_scatter: ({ by }, { dim, start }) => by("x", 0).sliceScatter(by("src", 1), dim, start),
  pixel_shuffle: ({ list: [x] }, { factor }) => x.pixelShuffle(factor),
  pixel_unshuffle: ({ list: [x] }, { factor }) => x.pixelUnshuffle(factor),
};
