// Tensors, scopes, kernels of the page's own and what goes wrong with them, in this thread and
// through the messages of a worker.
import assert from "node:assert/strict";
import test from "node:test";
import { onBoth, open, rejects } from "./node_tests.mjs";
import { missing, openWebGpu } from "./node_webgpu.mjs";

onBoth("values come back as they were", async (wick) => {
  assert.deepEqual(await wick.tensor([[1, 2], [3, 4]]).read(), Float32Array.of(1, 2, 3, 4));
  assert.deepEqual(await wick.tensor([1, 2], [2], "i64").read(), BigInt64Array.of(1n, 2n));
  assert.deepEqual(await wick.tensor(Int16Array.of(-1, 7)).read(), Int16Array.of(-1, 7));
  assert.deepEqual(await wick.tensor([0.5, 1 / 3], [2], "bf16").describe(),
                   { dtype: "bf16", shape: [2] });
  assert.deepEqual(await wick.tensor(Uint16Array.of(0x3c00, 0xc000), [2], "f16").read(),
                   Float32Array.of(1, -2));
  assert.deepEqual(await wick.tensor(Uint8Array.of(0, 3), [2], "bool").read(), Uint8Array.of(0, 1));
  assert.equal(await wick.tensor(2.5).item(), 2.5);
  assert.deepEqual(await wick.tensor([1n, 2, true]).read(), Float32Array.of(1, 2, 1));
  assert.deepEqual(await wick.tensor([-(2n ** 63n), 2 ** 53], [2], "i64").read(),
                   BigInt64Array.of(-(2n ** 63n), 2n ** 53n));
  assert.deepEqual(await wick.tensor([0, 2, 0.5, false, NaN], [5], "bool").read(),
                   Uint8Array.of(0, 1, 1, 0, 1));
  assert.equal(await wick.tensor([[1, 2.5]]).text(), "[[1, 2.5]] f32[1, 2]");
  assert.equal(await wick.arange(0, 2000, 1, "i32").text(),
               "[0, 1, 2, ..., 1997, 1998, 1999] i32[2000]");
  assert.deepEqual(await wick.empty([0, 3]).read(), new Float32Array(0));
  await wick.close();
});

onBoth("what is read leaves nothing in memory", async (wick) => {
  const x = wick.ones([1 << 18]), sizes = [];
  for (let i = 0; i < 20; i++) {
    await x.read();
    sizes.push((await wick.stats()).heapBytes);
  }
  assert.deepEqual(sizes.slice(5), Array(15).fill(sizes[4]));
  await wick.close();
});

onBoth("a tensor is what it was when the operation was called", async (wick) => {
  const bytes = Float32Array.of(1, 2);
  const x = wick.tensor(bytes);
  bytes[0] = 9;
  const before = x.affine(1, 0).read();
  x.fill(5);
  const filled = x.read();
  x.write(Float32Array.of(7, 8));
  assert.deepEqual(await before, Float32Array.of(1, 2));
  assert.deepEqual(await filled, Float32Array.of(5, 5));
  assert.deepEqual(await x.read(), Float32Array.of(7, 8));
  await wick.close();
});

test("a tensor is written from an array of its dtype alone", async () => {
  const wick = await open(), made = (dtype) => wick.zeros([2]).cast(dtype);
  const arrays = {
    f32: Float32Array.of(1, 0), f64: Float64Array.of(1, 0), i64: BigInt64Array.of(1n, 0n),
    i32: Int32Array.of(1, 0), u32: Uint32Array.of(1, 0), i16: Int16Array.of(1, 0),
    i8: Int8Array.of(1, 0), u8: Uint8Array.of(1, 0), bool: Uint8Array.of(1, 0),
  };
  for (const [dtype, values] of Object.entries(arrays))
    assert.deepEqual(await made(dtype).write(values).read(), values, dtype);
  assert.deepEqual(await made("bf16").write(Uint16Array.of(0x3f80, 0)).read(), Float32Array.of(1, 0));
  assert.deepEqual(await made("f8_e4m3").write(Uint8Array.of(0x38, 0)).read(), Float32Array.of(1, 0));
  assert.deepEqual(await made("u8").write(Buffer.of(1, 2)).read(), Uint8Array.of(1, 2));
  for (const [dtype, values] of [["f32", Int32Array.of(1, 2)], ["u32", Float32Array.of(1, 2)],
                                 ["f16", Int16Array.of(1, 2)], ["i8", Uint8Array.of(1, 2)],
                                 ["f32", [1, 2]]]) {
    const x = made(dtype);
    x.write(values);
    await rejects(x.read(), "DTYPE", new RegExp(`write: ${dtype} wants .*Array, not `));
    assert.deepEqual(Array.from(await x.read()), [0, 0]);
  }
  await wick.close();
});

onBoth("blocks are weights", async (wick) => {
  const block = new Uint8Array(18).fill(0x99); // q4_0: a scale, 32 times 9 - 8
  new Uint16Array(block.buffer, 0, 1)[0] = 0x4000; // 2
  const weight = wick.tensor(block, [1, 32], "q4_0");
  assert.deepEqual(await weight.cast("f32").read(), new Float32Array(32).fill(2));
  await rejects(weight.text(), "DTYPE", /q4_0 .* cast\("f32"\)/);
  assert.equal(await wick.ones([1, 32]).linear(weight).item(), 64);
  await wick.close();
});

/** Of [-2, 0, 3] and b, in plain JavaScript. */
const WITH_NUMBER = {
  add: (x, b) => x + b, sub: (x, b) => x - b, mul: (x, b) => x * b, div: (x, b) => x / b,
  maximum: Math.max, minimum: Math.min, eq: (x, b) => x === b, ne: (x, b) => x !== b,
  lt: (x, b) => x < b, le: (x, b) => x <= b, gt: (x, b) => x > b, ge: (x, b) => x >= b,
};

onBoth("numbers are operands of the tensor's dtype", async (wick) => {
  const values = [-2, 0, 3];
  const check = async (y, dtype, wanted) => {
    assert.deepEqual(await y.describe(), { dtype, shape: [3] });
    assert.deepEqual(Array.from(await y.read(), Number), wanted);
  };
  for (const [dtype, b] of [["f32", -0.5], ["f16", 0.25], ["bf16", 2], ["i32", 3], ["f64", 0.5]]) {
    const x = wick.tensor(values, [3], dtype);
    for (const [name, compute] of Object.entries(WITH_NUMBER)) {
      const isComparison = typeof compute(1, 2) === "boolean";
      const wanted = values.map((value) => Number(compute(value, b)));
      const isTruncated = name === "div" && dtype === "i32";
      await check(x[name](b), isComparison ? "u8" : dtype,
                  isTruncated ? wanted.map((value) => Math.trunc(value) + 0) : wanted);
    }
    await check(x.gt(0).where(x, 7), dtype, [7, 7, 3]);
    await check(x.gt(0).where(7, x), dtype, [-2, 0, 7]);
    await check(x.gt(0).where(1, -0.5), "f32", [-0.5, -0.5, 1]);
  }
  const x = wick.tensor(values);
  await check(x.lt(Infinity), "u8", [1, 1, 1]);
  await check(x.mul(-0), "f32", [0, -0, -0]);
  await check(x.add(1).pow(2).sub(0.5), "f32", [0.5, 0.5, 15.5]);
  await check(wick.tensor(values, [3], "i64").mul(2 ** 40), "i64", values.map((v) => v * 2 ** 40));
  for (const [dtype, b] of [["i32", 0.5], ["u8", 300], ["u8", -1], ["i8", 128], ["i32", NaN]])
    await rejects(wick.ones([3], dtype).add(b).read(), "VALUE",
                  new RegExp(`^${b} is no number of ${dtype}`));
  for (const [dtype, b] of [["u8", 255], ["i8", -128], ["u32", 2 ** 32 - 1]])
    assert.equal(Number((await wick.zeros([3], dtype).add(b).read())[2]), b);
  await wick.sync();
  const { bufferBytes } = await wick.stats();
  await wick.scope(() => void x.add(5));
  x.mul(2).dispose();
  await wick.sync();
  assert.equal((await wick.stats()).bufferBytes, bufferBytes);
  await wick.close();
});

onBoth("random numbers are the seed's", async (wick) => {
  const first = await wick.rand([5], -1, 1).read();
  wick.setSeed(0);
  assert.deepEqual(await wick.rand([5], -1, 1).read(), first);
  assert.ok(first.every((x) => x >= -1 && x < 1));
  const { values, indices } = wick.randn([100]).topK(3);
  assert.equal((await values.read()).length + (await indices.read()).length, 6);
  await wick.close();
});

onBoth("a failure comes with the next answer, and with all that was made of it", async (wick) => {
  const a = wick.ones([2]);
  const wrong = a.add(wick.ones([3]));
  const more = wrong.exp();
  await rejects(a.read(), "SHAPE", /^add: \[2\] and \[3\]/);
  await rejects(more.read(), "SHAPE", /^add/);
  assert.deepEqual(await a.read(), Float32Array.of(1, 1));
  a.softmax(2);
  await rejects(wick.sync(), "DIM", /softmax/);
  await wick.sync();
  a.copy(wick.ones([3]));
  await rejects(a.describe(), "SHAPE", /copy/);
  await rejects(a.item(), "SHAPE", /2 elements/);
  assert.throws(() => a.softmax(0.5), { code: "ARGUMENT" });
  assert.throws(() => wick.tensor([[1], [2, 3]]), { code: "SHAPE" });
  assert.throws(() => wick.tensor(Uint16Array.of(1)), { code: "DTYPE" });
  assert.throws(() => wick.tensor([1], [1], "f31"), { code: "DTYPE" });
  await rejects(a.cast("f31").read(), "DTYPE", /f31/);
  await rejects(wick.tensor(Float32Array.of(1, 2), [3]).read(), "ARGUMENT", /12|8/);
  await wick.close();
});

onBoth("an index out of range is told by the next answer", async (wick) => {
  const weight = wick.ones([2, 4]);
  await rejects(weight.embedding(wick.tensor(Uint32Array.of(7))).read(), "INDEX", /index/);
  assert.equal(await weight.embedding(wick.tensor(Uint32Array.of(1))).sum().item(), 4);
  await wick.close();
});

onBoth("scopes dispose of temporaries", async (wick) => {
  await wick.sync();
  const { bufferBytes } = await wick.stats();
  const weight = wick.ones([64]);
  const { y, list } = await wick.scope(async () => {
    const x = weight.affine(2, 0);
    const inner = await wick.scope(() => x.exp());
    await inner.read();
    return { y: x.affine(1, 1), list: [x.neg()] };
  });
  await wick.sync();
  const after = (await wick.stats()).bufferBytes;
  assert.deepEqual(await y.read(), new Float32Array(64).fill(3));
  assert.equal((await list[0].read())[0], -2);
  assert.equal(after - bufferBytes, 3 * 256);
  const kept = await wick.scope(() => void wick.zeros([1]).keep());
  assert.equal(kept, undefined);
  await assert.rejects(wick.scope(() => Promise.reject(new Error("mine"))), /mine/);
  for (const tensor of [weight, y, list[0]]) tensor.dispose();
  assert.throws(() => y.exp(), { code: "STATE" });
  await wick.sync();
  assert.equal((await wick.stats()).bufferBytes - bufferBytes, 4);
  await wick.close();
});

onBoth("elements by index and in order", async (wick) => {
  const read = async (...tensors) =>
    Promise.all(tensors.map(async (tensor) => [...await tensor.read()]));
  const x = wick.tensor([[3, 1, 2], [6, 5, 4]]);
  const index = wick.tensor([[2, 0, 0]], [1, 3], "u32");
  const { values, indices } = x.sort(1);
  assert.deepEqual(await read(values, indices, x.argsort(-1, true)),
                   [[1, 2, 3, 4, 5, 6], [1, 2, 0, 2, 1, 0], [0, 2, 1, 0, 1, 2]]);
  assert.deepEqual(await read(x.gather(1, index), x.takeAlongDim(1, index), x.cumsum(0)),
                   [[2, 3, 3], [2, 3, 3, 4, 6, 6], [3, 1, 2, 9, 6, 6]]);
  const two = wick.tensor([[10, 20, 30]]), mul = await x.scatter(1, index, two, "mul").read();
  assert.deepEqual([...mul], [3 * 20 * 30, 1, 2 * 10, 6, 5, 4]);
  await rejects(x.scatter(1, index, two, "mean").read(), "VALUE", /^scatter/);
  await rejects(x.gather(1, index.add(1)).read(), "INDEX", /gather/);
  await wick.close();
});

onBoth("elements are arranged, copied and found", async (wick) => {
  const x = wick.tensor([[1, 2, 3], [4, 5, 6]]);
  const check = async (y, shape, values) => {
    assert.deepEqual((await y.describe()).shape, shape);
    assert.deepEqual(Array.from(await y.read(), Number), values);
  };
  const [a, b] = x.split([1, 2], 1);
  await check(a, [2, 1], [1, 4]);
  await check(b, [2, 2], [2, 3, 5, 6]);
  await rejects(x.split([1, 1], 1)[0].read(), "SHAPE", /^split/);
  const columns = await x.unstack(-1);
  assert.equal(columns.length, 3);
  await check(columns[1], [2], [2, 5]);
  await rejects(x.unstack(5).then(([y]) => y.read()), "DIM", /^unstack/);
  assert.deepEqual(await wick.zeros([0, 2]).unstack(), []);
  const parts = await wick.zeros([0, 2]).chunk(3);
  assert.deepEqual(await Promise.all(parts.map((part) => part.read())), Array(3).fill(new Float32Array(0)));
  await rejects(x.chunk(0).then(([y]) => y.read()), "VALUE", /^chunk/);
  const [i, j] = wick.meshgrid([wick.tensor([1, 2]), wick.tensor([3, 4, 5])], "xy");
  await check(i, [3, 2], [1, 2, 1, 2, 1, 2]);
  await check(j, [3, 2], [3, 3, 4, 4, 5, 5]);
  await check(x.movedim(0, -1), [3, 2], [1, 4, 2, 5, 3, 6]);
  await check(x.unsqueeze(0).squeeze(), [2, 3], [1, 2, 3, 4, 5, 6]);
  await check(x.roll(1), [2, 3], [6, 1, 2, 3, 4, 5]);
  await check(x.roll([1, -1], [0, 1]), [2, 3], [5, 6, 4, 2, 3, 1]);
  await check(x.flip(1), [2, 3], [3, 2, 1, 6, 5, 4]);
  await check(x.pad([0, 1], [1, -1], "constant", 7), [3, 3], [7, 1, 2, 7, 4, 5, 7, 7, 7]);
  await rejects(x.pad([1], [1]).read(), "SHAPE", /^pad: two lists of 2 numbers/);
  await rejects(x.pad([0, 1], [0, 1], "mirror").read(), "VALUE", /^pad/);
  assert.throws(() => x.pad([1, 1], [1]), { code: "ARGUMENT" });
  await check(x.sliceAssign([0, 1], [1, 3], wick.zeros([1, 2])), [2, 3], [1, 0, 0, 4, 5, 6]);
  await check(wick.linspace(0, 1, 3), [3], [0, 0.5, 1]);
  await check(wick.tensor([2, 0], [2], "u32").oneHot(3, "i32"), [2, 3], [0, 0, 1, 1, 0, 0]);
  await check(x.tensordot(x, [0, 1], [0, 1]), [], [91]);
  await check(x.unsqueeze(0).im2col([1, 2]), [2, 4], [1, 2, 4, 5, 2, 3, 5, 6]);
  const y = wick.tensor([3, 0, 3, 1]);
  await check(await y.nonzero(), [3, 1], [0, 2, 3]);
  await check(await x.maskedSelect(x.gt(4)), [2], [5, 6]);
  await check(await x.maskedSelect(wick.tensor([1, 0, 0], [3], "bool")), [2], [1, 4]);
  const { values, indices, inverse, counts } = await y.unique();
  await check(values, [3], [0, 1, 3]);
  await check(indices, [3], [1, 3, 0]);
  await check(inverse, [4], [2, 0, 2, 1]);
  await check(counts, [3], [1, 1, 2]);
  await check((await wick.zeros([0]).unique()).values, [0], []);
  await check(x.norm(Infinity, 1), [2], [3, 6]);
  await check(x.std(0, false, 0), [3], [1.5, 1.5, 1.5]);
  await wick.close();
});

test("functions of f64 are those of the module's C library", async () => {
  const wick = await open();
  const functions = ["abs", "acosh", "asinh", "atan", "ceil", "cos", "cosh", "exp", "expm1", "floor",
                     "log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"];
  const x = [1, 1.5, 2.25, 3, 7.75];
  const near = async (name, tensor, expected) => {
    const y = await tensor.read();
    x.forEach((value, i) => assert.ok(
      Math.abs(y[i] - expected(value)) <= 1e-14 * Math.max(1, Math.abs(expected(value))),
      `${name}(${value}) is ${y[i]}`));
  };
  for (const name of functions) await near(name, wick.tensor(x, [5], "f64")[name](), Math[name]);
  await near("exp2", wick.tensor(x, [5], "f64").exp2(), (value) => 2 ** value);
  await near("pow", wick.tensor(x, [5], "f64").pow(3.5), (value) => value ** 3.5);
  await wick.close();
});

onBoth("products by labels, and statistics", async (wick) => {
  const x = wick.tensor([[1, 2], [3, 4]]), y = wick.tensor([[0, 1], [2, 0]]);
  const values = async (tensor) => [...await tensor.read()];
  assert.deepEqual(await values(wick.einsum("ij,jk->ik", [x, y])), [4, 1, 8, 3]);
  assert.deepEqual(await values(wick.einsum("...i, ...i", [x, y])), [2, 6]);
  assert.deepEqual(await values(wick.einsum("ii", [x])), [5]);
  await rejects(wick.einsum("ij,jk->i\u0142", [x, y]).read(), "VALUE", /^einsum: 'ij,jk->i\?'/);
  await rejects(wick.einsum("ij->ij\0", [x]).read(), "VALUE", /^einsum/);
  await rejects(wick.einsum("ij,jk", [x, wick.ones([3, 1])]).read(), "SHAPE", /^einsum/);
  assert.throws(() => wick.einsum("", []), { code: "VALUE" });
  assert.deepEqual(await (x.kron(y)).describe(), { dtype: "f32", shape: [4, 4] });
  assert.deepEqual(await values(x.kron(y).narrow(0, 3, 1)), [6, 0, 8, 0]);
  const rows = wick.tensor([[1, 2, 3], [6, 4, 2]]);
  assert.deepEqual(await values(rows.cov()), [1, -2, -2, 4]);
  assert.deepEqual(await values(rows.cov(-1)), [0.5, -1, -1, 2]);
  assert.deepEqual(await values(rows.corrcoef()), [1, -1, -1, 1]);
  await wick.close();
});

onBoth("elements by places, of any integer type, also in place", async (wick) => {
  const values = async (tensor) => [...await tensor.read()];
  const make = () => wick.tensor([[1, 2], [3, 4], [5, 6]]);
  for (const dtype of ["u8", "i16", "i32", "u32", "i64"]) {
    const places = wick.tensor([[2, 1], [0, 0]], [2, 2], dtype);
    const slices = wick.tensor([2, 0], [2], dtype);
    assert.deepEqual(await values(make().gatherNd(places)), [6, 1]);
    assert.deepEqual(await values(make().gatherNd(slices.unsqueeze(1))), [5, 6, 1, 2]);
    const src = wick.tensor([10, 20]);
    assert.deepEqual(await values(make().scatterNd(places, src)), [20, 2, 3, 4, 5, 10]);
    assert.deepEqual(await values(make().scatterNd(places, src, "add")), [21, 2, 3, 4, 5, 16]);
    const rows = wick.tensor([[10, 20], [30, 40]]), x = make();
    assert.equal(x.indexAddInPlace(0, slices, rows), x);
    assert.deepEqual(await values(x), [31, 42, 3, 4, 15, 26]);
    assert.deepEqual(await values(x.indexCopyInPlace(0, slices, rows)), [30, 40, 3, 4, 10, 20]);
    const column = wick.tensor([[2], [1]], [2, 1], dtype);
    assert.deepEqual(await values(x.scatterInPlace(0, column, wick.tensor([[7], [8]]), "mul")),
                     [30, 40, 24, 4, 70, 20]);
  }
  const x = make(), index = wick.tensor([0], [1], "u32");
  await rejects(x.gatherNd(wick.tensor([3], [1], "u32")).read(), "INDEX", /index/);
  x.expand([2, 3, 2]).indexAddInPlace(0, index, wick.ones([1, 3, 2]));
  await rejects(wick.sync(), "ARGUMENT", /^index_add_in_place/);
  assert.throws(() => x.scatterNd(index), { code: "ARGUMENT" });
  await rejects(x.scatterNd(index, wick.ones([2]), "mean").read(), "VALUE", /^scatter_nd: there is no function/);
  await wick.close();
});

onBoth("numbers between others, and layers over several dims", async (wick) => {
  const values = async (tensor) => [...await tensor.read()];
  const x = wick.tensor([NaN, Infinity, -Infinity, 2]);
  assert.deepEqual(await values(x.nanToNum(0, 9, -9)), [0, 9, -9, 2]);
  const a = wick.tensor([0, 4]);
  assert.deepEqual(await values(a.lerp(wick.tensor([8, 8]), 0.25)), [2, 5]);
  assert.deepEqual(await values(a.lerp(8, wick.tensor([0.5, 1]))), [4, 8]);
  assert.deepEqual(await values(a.clamp(3, 1)), [1, 1]);
  const powers = wick.logspace(0, 3, 4, 2, "f64");
  assert.deepEqual(await values(powers.round()), [1, 2, 4, 8]);
  assert.deepEqual(await values(wick.logspace(0, 2, 3).round()), [1, 10, 100]);
  const near = async (y, wanted) =>
    assert.ok(await y.allClose(wick.tensor(wanted)).item(), await y.text());
  const square = wick.tensor([[[1, 3], [3, 1]], [[0, 0], [0, 4]]]);
  const weight = wick.tensor([[1, 2], [1, 2]]);
  await near(square.layerNormOver(2, weight, wick.ones([2, 2]), 0).narrow(0, 0, 1),
             [[[0, 3], [2, -1]]]);
  await near(square.rmsNormOver(2, weight, 0).narrow(0, 1, 1), [[[0, 0], [0, 4]]]);
  await near(wick.tensor([[1e-9, 3e-9]], [1, 2], "f64").layerNorm(undefined, undefined, 3e-18)
    .cast("f32"), [[-0.5, 0.5]]);
  const image = wick.tensor([1, 2], [1, 1, 1, 1, 2]), kernel = wick.ones([1, 1, 1, 2, 2]);
  const wide = image.convTranspose3d(kernel, wick.tensor([10]), { stride: [1, 1, 2] });
  assert.deepEqual((await wide.describe()).shape, [1, 1, 1, 2, 4]);
  assert.deepEqual(await values(wide), [11, 11, 12, 12, 11, 11, 12, 12]);
  await wick.close();
});

test("scopes side by side are refused", async () => {
  const wick = await open();
  const wait = () => new Promise((resolve) => setTimeout(resolve, 5));
  const first = wick.scope(wait);
  const second = wick.scope(async () => { await wait(); await wait(); });
  await rejects(first, "STATE", /scope/);
  await second;
  await wick.close();
});

onBoth("memory returns to where it was", async (wick) => {
  const weight = wick.randn([32, 32]);
  const round = () => wick.scope(async () => {
    let x = wick.randn([4, 32]);
    for (let i = 0; i < 100; i++) x = x.matmul(weight).rmsNorm();
    return (await x.read())[0];
  });
  await round();
  await round();
  await wick.sync();
  const before = await wick.stats();
  for (let i = 0; i < 20; i++) assert.ok(Number.isFinite(await round()));
  await wick.sync();
  const after = await wick.stats();
  assert.equal(after.bufferBytes, before.bufferBytes);
  assert.equal(after.heapBytes, before.heapBytes);
  await wick.close();
});

onBoth("a read is given up by its signal", async (wick) => {
  const controller = new AbortController();
  const reading = wick.ones([256, 256]).matmul(wick.ones([256, 256])).read(controller);
  controller.abort();
  await rejects(reading, "CANCELLED", /cancelled/);
  assert.equal(await wick.ones([3]).sum().item(), 3);
  await wick.close();
});

test("closing ends what waits", async () => {
  const wick = await open();
  const reading = wick.ones([1024, 1024]).matmul(wick.ones([1024, 1024])).read();
  const refused = rejects(reading, "CANCELLED", /closed/);
  await wick.close();
  await refused;
});

test("leaks are told in debug mode", async () => {
  const told = [];
  const onLog = (level, text) => level === "warning" && told.push(text);
  const wick = await open({ debug: true, onLog });
  const kept = wick.ones([2]), closed = wick.zeros([2]);
  closed.dispose();
  await kept.read();
  kept.add(5);
  await wick.close();
  assert.equal(told.length, 2);
  assert.match(told[0], /^a tensor \(ones\) was not closed .*test_tensors\.mjs:\d+/);
  assert.match(told[1], /^a tensor \(add\) was not closed .*test_tensors\.mjs:\d+/);
});

const SCALE = `
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
struct Settings { scale: f32, n: u32 }
@group(0) @binding(2) var<uniform> settings: Settings;
@compute @workgroup_size(WORKGROUP_X) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < settings.n) { y[id.x] = settings.scale * x[id.x]; }
}`;

test("kernels of the page's own on WebGPU", { skip: missing }, async () => {
  const wick = await open({ backend: "webgpu", gpu: await openWebGpu() });
  const buffers = ["read", "read_write"];
  const kernel = await wick.kernel({ source: SCALE, buffers, uniformBytes: 8, label: "scale" });
  const x = wick.arange(0, 100), y = wick.zeros([100]);
  const settings = new DataView(new ArrayBuffer(8));
  settings.setFloat32(0, 0.5, true);
  settings.setUint32(4, 100, true);
  kernel.run([x.affine(1, 1), y], { threads: 100 }, settings);
  assert.deepEqual((await y.affine(2, 0).read()).slice(0, 3), Float32Array.of(1, 2, 3));
  kernel.run([x, y], [2], settings);
  assert.equal(await y.sum().item(), 0.5 * 4950);
  kernel.run([x], [1], settings);
  await rejects(y.read(), "ARGUMENT", /scale/);
  kernel.run([x, x], [1], settings);
  for (const size of [undefined, 4, {}])
    assert.throws(() => kernel.run([x, y], size), { code: "ARGUMENT" });
  await rejects(wick.sync(), "ARGUMENT", /share memory/);
  await rejects(wick.kernel({ source: "fn main() { nonsense }", buffers }), "VALUE", /line 1/);
  await rejects(wick.kernel({ source: SCALE, buffers: ["write"] }), "VALUE", /buffers/);
  await rejects(wick.kernel({ source: SCALE, buffers, workgroup: [0] }), "VALUE", /workgroup/);
  kernel.dispose();
  assert.throws(() => kernel.run([x, y], [1], settings), { code: "STATE" });
  await wick.close();
});

onBoth("the profile counts what was computed", async (plain) => {
  const { backend } = plain.capabilities().device;
  await plain.close();
  const gpu = backend === "webgpu" ? await openWebGpu() : undefined;
  const wick = await open({ backend, gpu, profile: true });
  const x = wick.ones([4, 32]);
  for (let i = 0; i < 3; i++) await x.matmul(wick.ones([32, 8])).read();
  x.exp();
  await wick.sync();
  const calls = (name) => kernels.filter((kernel) => kernel.name.startsWith(name))
    .reduce((sum, kernel) => sum + kernel.calls, 0);
  const kernels = await wick.profile();
  assert.equal(calls("matmul"), 3);
  assert.ok(kernels.every(({ seconds }) => seconds >= 0));
  await wick.close();
});

test("the CPU has no kernels of the page's own", async () => {
  const wick = await open();
  await rejects(wick.kernel({ source: SCALE, buffers: ["read_write"] }), "UNSUPPORTED", /WebGPU/);
  await wick.close();
});

test("after a loss tensors are gone, and new ones are computed", { skip: missing }, async () => {
  const wick = await open({ backend: "webgpu", gpu: await openWebGpu() });
  const x = wick.ones([4]);
  assert.equal(await x.sum().item(), 4);
  await wick.loseDevice();
  await assert.rejects(x.exp().read(), { code: "DEVICE_LOST" });
  await wick.sync().catch(() => undefined);
  assert.equal(await wick.ones([4]).sum().item(), 4);
  await wick.loseDevice();
  await assert.rejects(wick.sync(), { code: "DEVICE_LOST" });
  assert.equal(await wick.ones([4]).sum().item(), 4);
  await wick.close();
});

// Dawn keeps the process alive, and has work in flight that is not to be cut.
test.after(() => setImmediate(() => process.exit()));
