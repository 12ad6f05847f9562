// The recorded cases of tensor operations (shared/data/ops) by the package's tensors, in Node and in
// pages: the operands as a case views them, the call, what is expected of it and of its gradients.
const CLASSES = {
  F32: Float32Array, F16: Uint16Array, BF16: Uint16Array, F64: Float64Array, I64: BigInt64Array,
  I32: Int32Array, I16: Int16Array, I8: Int8Array, U32: Uint32Array, U8: Uint8Array,
  BOOL: Uint8Array,
};

/** Arrays by name: dtype, shape, data (the bits of f16 and bf16). */
export function readArrays(bytes) {
  const size = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + size)));
  delete header.__metadata__;
  return new Map(Object.entries(header).map(([name, { dtype, shape, data_offsets }]) => {
    const [from, to] = data_offsets;
    const copy = new Uint8Array(bytes.subarray(8 + size + from, 8 + size + to));
    return [name, { dtype: dtype.toLowerCase(), shape, data: new CLASSES[dtype](copy.buffer) }];
  }));
}

function fromHalf(bits, dtype) {
  if (dtype === "bf16") return new Float32Array(Uint32Array.of(bits << 16).buffer)[0];
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

/** The elements as numbers, those of 64 bits as they are. */
function numbersOf({ dtype, data }) {
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
function difference(values, expected, tolerance, tags, isGpu) {
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

/** One that shows elements more than once is copied where its gradient is wanted, as it is seen. */
function makeInput(wick, arrays, { tensor, view: steps = [] }, hasGradient) {
  const { data, shape, dtype } = arrays.get(tensor);
  const x = steps.reduce(view, wick.tensor(data, shape, dtype));
  return hasGradient && steps.some(({ expand }) => expand) ? x.contiguous() : x;
}

/** The operands by role where the case has roles, and all by position. */
function makeInputs(wick, arrays, { inputs, grads = {} }) {
  const list = inputs.map((input, i) => makeInput(wick, arrays, input, i in grads));
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

function batchNorm({ by }, { train, momentum, eps }) {
  const x = by("x", 0), mean = by("running_mean", 1), variance = by("running_var", 2);
  const weight = by("weight", 3), bias = by("bias", 4);
  return train ? [x.batchNormTrain(mean, variance, weight, bias, momentum, eps), mean, variance]
    : x.batchNorm(mean, variance, weight, bias, eps);
}

const recurrentWeights = (by) =>
  ({ wIh: by("w_ih", 1), wHh: by("w_hh", 2), bIh: by("b_ih", 3), bHh: by("b_hh", 4) });

/** In the words of the package. */
const MODES = { bilinear: "linear", bicubic: "cubic" };
const PADDINGS = { zeros: "constant", border: "replicate", reflection: "reflect" };

/** The parameter after each step. */
async function optimize(wick, by, rate, options) {
  const param = by("param", 0), gradients = await by("grads", 1).unstack(0);
  const optimizer = wick.optimizer([param], options);
  const after = gradients.map((gradient) => {
    optimizer.step([gradient], rate);
    return param.zerosLike().copy(param);
  });
  optimizer.dispose();
  return wick.stack(after, 0);
}

/** The upper and the lower 32 bits of x times m, by products of 16 bits: the package has none of 64. */
function wideProduct(x, m) {
  const low = x.bitwiseAnd(0xffff), high = x.bitwiseRightShift(16);
  const mLow = m % 65536, mHigh = Math.floor(m / 65536);
  const first = high.mul(mLow).add(low.mul(mLow).bitwiseRightShift(16));
  const second = low.mul(mHigh).add(first.bitwiseAnd(0xffff));
  return [high.mul(mHigh).add(first.bitwiseRightShift(16)).add(second.bitwiseRightShift(16)),
          x.mul(m)];
}

/** Raw blocks of Philox, which the package's random numbers are made of, by its u32 operations: a
 * counter of theirs is an element's number, which is a small part of the counters of the cases. */
function philox({ by }, _, wick) {
  let c = [0, 1, 2, 3].map((i) => by("counter", 0).narrow(1, i, 1));
  let k = [0, 1].map((i) => by("key", 1).narrow(1, i, 1));
  for (let round = 0; round < 10; round++) {
    const [high0, low0] = wideProduct(c[0], 0xd2511f53), [high1, low1] = wideProduct(c[2], 0xcd9e8d57);
    c = [high1.bitwiseXor(c[1]).bitwiseXor(k[0]), low1, high0.bitwiseXor(c[3]).bitwiseXor(k[1]), low0];
    k = [k[0].add(0x9e3779b9), k[1].add(0xbb67ae85)];
  }
  return wick.cat(c, 1);
}

/** Each is given the inputs, the attributes and the engine; the operations that Wick has. */
const operations = {
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
  ...each(["conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d"], (name) =>
    ({ by }, { output_padding: outputPadding = 0, ...options }) =>
      by("x", 0)[name](by("weight", 1), by("bias", 2), { outputPadding, ...options })),
  ...each(["max_pool2d", "avg_pool2d"], (name) => ({ list: [x] }, { kernel, stride }) =>
    x[name](kernel, { stride })),
  ...each(["upsample_nearest1d", "upsample_nearest2d"], () => ({ list: [x] }, { size }) =>
    x.resize([size].flat(), "nearest")),
  upsample_bilinear2d: ({ list: [x] }, { size, align_corners: alignCorners }) =>
    x.resize(size, "linear", alignCorners),
  group_norm: ({ by }, { groups, eps }) =>
    by("x", 0).groupNorm(groups, by("weight", 1), by("bias", 2), eps),
  batch_norm: batchNorm,
  moe_route: ({ by }, { top_k: topK, score, order, renormalize, scale }) =>
    Object.values(by("logits", 0).moeRoute(topK, {
      bias: by("bias", 1), score, topkFirst: order === "topk_first", renormalize, scale,
    })),
  indexed_matmul: ({ by }) => by("x", 0).linearExperts(by("weights", 1), by("ids", 2)),
  moe_ffn: ({ by, roles }) => by("x", 0).moeFfn(by("route_weights", 1), by("ids", 2), {
    gate: by("gate", 3), up: by("up", 4), down: by("down", 5), sharedGate: roles.shared_gate,
    sharedUp: roles.shared_up, sharedDown: roles.shared_down,
  }),
  resize_antialiased: ({ list: [x] }, { size, mode, a, repeats_ends: repeatsEnds }) =>
    x.resizeAntialiased(size, mode, a, repeatsEnds),
  grid_sample: ({ by }, { mode, padding, align_corners: alignCorners }) =>
    by("x", 0).gridSample(by("grid", 1), MODES[mode] ?? mode, PADDINGS[padding], alignCorners),
  roi_align: ({ by }, { size, sampling_ratio: samplingRatio, scale, mode, aligned }) =>
    by("x", 0).roiAlign(by("boxes", 1), by("batch", 2), size, samplingRatio, scale, aligned,
                        mode === "max"),
  dft: ({ list: [x] }, { dim, length, inverse, onesided }) =>
    x.dft(dim, length, inverse, onesided),
  lstm: ({ by, roles }) => Object.values(
    by("x", 0).lstm({ ...recurrentWeights(by), peepholes: roles.peepholes }, by("h0", 5),
                    by("c0", 6))),
  gru: ({ by }, { resets_before: resetsBefore }) => Object.values(
    by("x", 0).gru({ ...recurrentWeights(by), resetsBefore }, by("h0", 5))),
  cross_entropy: ({ by }, { reduction }) =>
    by("logits", 0).crossEntropy(by("target", 1), { reduction }),
  nll: ({ by }, { reduction }) => by("log_probs", 0).nll(by("target", 1), { reduction }),
  mse: ({ by }, { reduction }) => by("x", 0).mse(by("target", 1), reduction),
  bce_with_logits: ({ by }, { reduction }) =>
    by("logits", 0).bceWithLogits(by("target", 1), reduction),
  huber: ({ by }, { delta, reduction }) => by("x", 0).huber(by("target", 1), delta, reduction),
  dropout: ({ list: [x] }, { p, train, seed = 0, stream = 0 }, wick) => {
    wick.setSeed(seed, stream);
    return x.dropout(p, train);
  },
  rand_bits: (_, { seed, stream, shape }, wick) => {
    wick.setSeed(seed, stream);
    return wick.randBits(shape);
  },
  rand_uniform: (_, { seed, stream, shape, low, high, dtype }, wick) => {
    wick.setSeed(seed, stream);
    return wick.rand(shape, low, high, dtype);
  },
  rand_normal: (_, { seed, stream, shape, mean, std, dtype }, wick) => {
    wick.setSeed(seed, stream);
    return wick.randn(shape, mean, std, dtype);
  },
  philox4x32_10: philox,
  sgd: ({ by }, { lr, momentum, nesterov, weight_decay: weightDecay }, wick) =>
    optimize(wick, by, lr, { kind: "sgd", momentum, nesterov, weightDecay }),
  adamw: ({ by }, { lr, weight_decay: weightDecay, ...options }, wick) =>
    optimize(wick, by, lr, { kind: "adamw", weightDecay, ...options }),
};

/** bool and u8 stand for each other. */
const stored = (dtype) => (dtype === "bool" ? "u8" : dtype);

async function checkTensor(arrays, y, name, tolerance, tags, isGpu) {
  const expected = arrays.get(name);
  const { dtype, shape } = await y.describe();
  if (stored(dtype) !== stored(expected.dtype) || shape.join() !== expected.shape.join())
    throw new Error(`${name} is ${dtype} [${shape}], expected ${expected.dtype} [${expected.shape}]`);
  const wrong = difference(await y.read(), expected, tolerance, tags, isGpu);
  if (wrong !== undefined) throw new Error(`${name}: ${wrong}`);
}

async function checkRefusal(run, { error }) {
  const code = await (async () => {
    for (const result of await run()) await result.read();
  })().then(() => "nothing", (reason) => reason.code?.toLowerCase() ?? reason.message);
  if (code !== error) throw new Error(`it was refused by ${code}, expected ${error}`);
}

async function checkOutputs(wick, arrays, recorded, isGpu, inputs, run) {
  const { outputs, tolerance, grads, tags = [] } = recorded;
  const tape = grads && wick.tape().watch(...Object.keys(grads).map((i) => inputs.list[i]));
  const results = await run();
  if (results.length !== outputs.length)
    throw new Error(`${results.length} results, expected ${outputs.length}`);
  for (const [i, name] of outputs.entries())
    await checkTensor(arrays, results[i], name, tolerance, tags, isGpu);
  if (!grads) return;
  const given = recorded.grad_output && arrays.get(recorded.grad_output);
  const gradients = tape.grad(results[0], Object.keys(grads).map((i) => inputs.list[i]),
                              given && wick.tensor(given.data, given.shape, given.dtype));
  tape.end();
  for (const [i, name] of Object.values(grads).entries())
    await checkTensor(arrays, gradients[i], name, recorded.grad_tolerance, tags, isGpu);
}

/** Throws where the package does not do what was recorded. */
export function checkCase(wick, arrays, recorded, isGpu) {
  return wick.scope(async () => {
    const operation = operations[recorded.op];
    if (!operation) throw new Error(`the package has no ${recorded.op}`);
    const inputs = makeInputs(wick, arrays, recorded);
    const run = async () => [].concat(await operation(inputs, recorded.attrs, wick));
    if (recorded.error) await checkRefusal(run, recorded);
    else await checkOutputs(wick, arrays, recorded, isGpu, inputs, run);
  });
}

/** The first of the cases of each operation, and of those with gradients, so many. */
export function share(cases, perOp) {
  const counts = new Map();
  return cases.filter(({ op, grads }) => {
    const key = `${op} ${grads !== undefined}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    return counts.get(key) <= perOp;
  });
}
