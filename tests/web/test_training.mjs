// Gradients, optimizers, layers and operations of the page's own, on the CPU and on WebGPU: small
// cases that can be checked by hand; test_ops.mjs has what other software computed.
import assert from "node:assert/strict";
import test from "node:test";
import { snippets } from "./fixtures.mjs";
import { onBoth, open, rejects } from "./node_tests.mjs";
import { missing, openWebGpu } from "./node_webgpu.mjs";

const read = async (...tensors) =>
  Promise.all(tensors.map(async (tensor) => Array.from(await tensor.read(), Number)));

onBoth("a tape goes back through operations, views and what is in place", async (wick) => {
  const w = wick.tensor([[1, 2], [3, 4]]), x = wick.tensor([5, 6]);
  const tape = wick.tape().watch(w, x);
  const y = w.mv(x).sum();
  assert.deepEqual(await read(...tape.grad(y, [w, x])), [[5, 6, 5, 6], [4, 6]]);
  const z = w.narrow(0, 1, 1).mul(2);
  z.addInPlace(1).mulInPlace(3);
  assert.deepEqual(await read(z, ...tape.grad(z, [w, x], wick.tensor([[1, 10]]))),
                   [[21, 27], [0, 0, 6, 60], [0, 0]]);
  const off = tape.noGrad(() => x.mul(x));
  await rejects(tape.grad(off, [off])[0].read(), "ARGUMENT", /tensor 0 was not watched/);
  const later = await tape.noGrad(async () => {
    await x.read();
    return x.mul(3);
  });
  assert.deepEqual(await read(later, ...tape.grad(later, [x])), [[15, 18], [0, 0]]);
  assert.deepEqual(await read(...tape.grad(x.pow(2), [x])), [[10, 12]]);
  tape.end();
  tape.end();
  assert.throws(() => tape.watch(x), { code: "STATE" });
  await wick.close();
});

onBoth("gradients of gradients", async (wick) => {
  const x = wick.tensor([2, 3]), outer = wick.tape().watch(x), inner = wick.tape().watch(x);
  const [first] = inner.grad(x.pow(3), [x]);
  inner.end();
  assert.deepEqual(await read(first, ...outer.grad(first, [x])), [[12, 27], [12, 18]]);
  outer.end();
  await wick.close();
});

onBoth("what a tape refuses comes with the next answer", async (wick) => {
  const tape = wick.tape(), ids = wick.tensor([1], [1], "i32"), x = wick.ones([2]);
  tape.watch(ids);
  await rejects(wick.sync(), "DTYPE", /watch/);
  tape.watch(x);
  const y = x.exp();
  x.fill(7);
  const z = x.mul(y);
  x.fill(8);
  await rejects(tape.grad(z, [x])[0].read(), "STATE", /overwritten/);
  await rejects(tape.grad(y, [x], wick.ones([3]))[0].read(), "SHAPE", /grad/);
  await wick.sync();
  await wick.close();
});

onBoth("optimizers step, and go on from their stored state", async (wick) => {
  const start = [1, -2], slopes = [0.5, -1];
  for (const kind of ["sgd", "adamw", "lion"]) {
    const options = { kind, weightDecay: 0.1, names: ["w"], ...(kind === "sgd" && { momentum: 0.9 }) };
    const g = wick.tensor(slopes), whole = wick.tensor(start), half = wick.tensor(start);
    const one = wick.optimizer([whole], options), two = wick.optimizer([half], options);
    for (let i = 0; i < 4; i++) one.step([g], 0.1);
    for (let i = 0; i < 2; i++) two.step([g], 0.1);
    two.step([undefined], 0.1);
    const stored = Object.entries(await two.states());
    const names = { sgd: ["w.momentum"], adamw: ["w.mean", "w.square"], lion: ["w.mean"] }[kind];
    assert.deepEqual(stored.map(([name]) => name).sort(), names);
    assert.deepEqual(await two.steps(), [2]);
    const values = await Promise.all(stored.map(async ([name, x]) => [name, await x.read()]));
    const three = wick.optimizer([half], options), states = await three.states();
    for (const [name, value] of values) states[name].write(value);
    three.setSteps([2]);
    for (let i = 0; i < 2; i++) three.step([g], 0.1);
    const [wanted, got] = await read(whole, half);
    assert.deepEqual(got, wanted, kind);
    assert.ok(wanted[0] < start[0] && wanted[1] > start[1]);
    three.dispose();
    assert.throws(() => three.step([g], 1), { code: "STATE" });
  }
  const p = wick.ones([2]);
  assert.throws(() => wick.optimizer([p], { kind: "adam" }), { code: "VALUE" });
  wick.optimizer([p], { kind: "sgd", nesterov: true });
  await rejects(wick.sync(), "VALUE", /nesterov|momentum/);
  wick.optimizer([p], { kind: "sgd", names: ["a", "b"] });
  await rejects(wick.sync(), "VALUE", /2 names for 1 parameter/);
  const optimizer = wick.optimizer([p], { kind: "sgd" });
  optimizer.step([p, p], 1);
  await rejects(wick.sync(), "ARGUMENT", /2 gradients for 1/);
  for (const rate of ["0.1", undefined, [1], 1n])
    assert.throws(() => optimizer.step([p], rate), { code: "ARGUMENT", message: /^step: a number/ });
  optimizer.step([p], NaN);
  await rejects(wick.sync(), "VALUE", /the rate is nan/);
  for (const steps of [[NaN], [-1], [1.5], ["2"], [1, 2], []])
    assert.throws(() => optimizer.setSteps(steps), { code: "ARGUMENT", message: /^setSteps: 1 whole/ });
  assert.deepEqual([await optimizer.steps(), ...await read(p)], [[0], [1, 1]]);
  optimizer.step([wick.ones([3])], 1);
  await rejects(wick.sync(), "SHAPE", /optimizer: \[2\] and \[3\]/);
  await wick.close();
});

/** A line through points, which is learned. */
function learnLine(wick, kind, dtype = "f32") {
  const x = wick.tensor([-1, 0, 1, 2]), y = wick.tensor([-5, -2, 1, 4]);
  const params = [wick.zeros([], dtype), wick.zeros([1], dtype)];
  const optimizer = wick.optimizer(params, { kind, names: ["slope", "shift"],
                                             ...(kind === "sgd" && { momentum: 0.9 }) });
  return {
    params, optimizer,
    step: () => wick.scope(() => {
      const tape = wick.tape().watch(...params);
      const loss = x.mul(params[0].cast("f32")).add(params[1].cast("f32")).mse(y);
      optimizer.step(tape.grad(loss, params), 0.05);
      tape.end();
      return loss.item();
    }),
  };
}

const steps = async (line, n) => {
  const losses = [];
  for (let i = 0; i < n; i++) losses.push(await line.step());
  return losses;
};

/** Files whose header says something else of the data: nothing of them is loaded. */
async function checkDamaged({ optimizer, params }, file) {
  const size = Number(new DataView(file.buffer).getBigUint64(0, true)), data = file.subarray(8 + size);
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + size)));
  const damages = [
    [(h) => (h.shift.dtype = "I32"), "MISMATCH", /no shift of \[1\] in f32/],
    [(h) => (h.shift.dtype = "F64"), "MISMATCH", /no shift of \[1\] in f32/],
    [(h) => (h.shift.shape = 1), "FORMAT", /checkpoint/],
    [(h) => h.shift.data_offsets.fill(0), "MISMATCH", /no shift of/],
    [(h) => (h["shift.square"].data_offsets = [0, 8]), "MISMATCH", /no shift.square of/],
    ...["4", "4,x", "4,-1", "4,1.5", "4,4,4"].map((steps) =>
      [(h) => (h.__metadata__.steps = steps), "FORMAT", /checkpoint/]),
  ];
  const before = await read(...params);
  for (const [damage, code, words] of damages) {
    const damaged = structuredClone(header);
    damage(damaged);
    const text = new TextEncoder().encode(JSON.stringify(damaged));
    const begin = new Uint8Array(BigInt64Array.of(BigInt(text.length)).buffer);
    await rejects(optimizer.load(Uint8Array.of(...begin, ...text, ...data)), code, words);
    assert.deepEqual([await optimizer.steps(), ...await read(...params)], [[0, 0], ...before]);
  }
}

test("names that a checkpoint could not tell apart are refused", async () => {
  const wick = await open(), params = [wick.ones([2]), wick.zeros([2])];
  for (const [kind, names, options] of [
    ["sgd", ["w", "w"]], ["sgd", ["w", "w.momentum"], { momentum: 0.5 }],
    ["adamw", ["w", "w.mean"]], ["adamw", ["w.square", "w"]], ["lion", ["w", "w.mean"]],
    ["lion", ["w", "__metadata__"]]]) {
    wick.optimizer(params, { kind, names, ...options });
    await rejects(wick.sync(), "VALUE", /two parameters or states have one name/);
  }
  for (const [kind, names] of [["sgd", ["w", "w.momentum"]], ["lion", ["w", "w.square"]]])
    wick.optimizer(params, { kind, names }).dispose();
  wick.optimizer(params, {}).dispose();
  await wick.sync();
  await wick.close();
});

onBoth("optimizers go on from a file with all that they train", async (wick) => {
  for (const kind of ["sgd", "adamw", "lion"]) {
    const line = learnLine(wick, kind), other = learnLine(wick, kind);
    await steps(line, 4);
    const file = await line.optimizer.save(), wanted = await steps(line, 3);
    await steps(other, 2);
    await other.optimizer.load(file);
    assert.deepEqual(await other.optimizer.steps(), [4, 4]);
    assert.deepEqual(await steps(other, 3), wanted, kind);
    const size = Number(new DataView(file.buffer).getBigUint64(0, true));
    const header = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + size)));
    assert.deepEqual(header.slope, { dtype: "F32", shape: [], data_offsets: [0, 4] });
    assert.equal(header.__metadata__.steps, "4,4");
  }
  const line = learnLine(wick, "adamw"), file = await line.optimizer.save();
  for (const cut of [9, file.length - 1])
    await rejects(line.optimizer.load(file.subarray(0, cut)), "FORMAT", /checkpoint/);
  await rejects(learnLine(wick, "sgd").optimizer.load(file), "MISMATCH", /slope.momentum/);
  const wide = wick.optimizer([wick.zeros([]), wick.ones([2])], { kind: "adamw", names: ["slope", "shift"] });
  await rejects(wide.load(file), "MISMATCH", /shift of \[2\]/);
  await checkDamaged(line, file);
  line.optimizer.dispose();
  await rejects(line.optimizer.save(), "STATE", /disposed/);
  await wick.close();
});

onBoth("parameters of 16 bits go through a file as well", async (wick) => {
  const line = learnLine(wick, "adamw", "bf16"), other = learnLine(wick, "adamw", "bf16");
  await steps(line, 3);
  await other.optimizer.load(await line.optimizer.save());
  assert.deepEqual(await read(...other.params), await read(...line.params));
  assert.deepEqual(await steps(other, 3), await steps(line, 3));
  await wick.close();
});

test("what is trained on a lost GPU goes on from its checkpoint", { skip: missing }, async () => {
  const wick = await open({ backend: "webgpu", gpu: await openWebGpu() });
  const wanted = await steps(learnLine(wick, "adamw"), 8);
  let line = learnLine(wick, "adamw"), file, nLosses = 0;
  const losses = [];
  while (losses.length < 8) {
    try {
      if (losses.length % 3 === 0) file = { bytes: await line.optimizer.save(), n: losses.length };
      if (losses.length === 5 && nLosses === 0) await wick.loseDevice();
      losses.push(await line.step());
    } catch (reason) {
      assert.equal(reason.code, "DEVICE_LOST");
      nLosses++;
      line = learnLine(wick, "adamw"); // on the new device
      await line.optimizer.load(file.bytes);
      losses.length = file.n;
    }
  }
  assert.equal(nLosses, 1);
  assert.deepEqual(losses, wanted);
  await wick.close();
});

onBoth("chains are made where that is asked for, and counted", async (wick) => {
  const { device: { backend } } = wick.capabilities();
  const options = { backend, ...(backend === "webgpu" && { gpu: await openWebGpu() }) };
  await wick.close();
  const found = {};
  for (const fusion of ["off", "always"]) {
    const one = await open({ ...options, fusion }), x = one.arange(0, 6);
    await x.read();
    const before = await one.stats();
    found[fusion] = await read(await one.scope(() => x.mul(0.2).add(1).sqr().exp().log()));
    x.neg().abs().dispose(); // no one can read it
    await one.sync();
    const { fused, unread } = await one.stats();
    assert.deepEqual([fused - before.fused, unread - before.unread > 0],
                     fusion === "off" ? [0, false] : [5, true]);
    await one.close();
  }
  found.always[0].forEach((value, i) => assert.ok(Math.abs(value - found.off[0][i]) < 1e-5 * value));
});

onBoth("gradients are clipped together", async (wick) => {
  const a = wick.tensor([3]), b = wick.tensor([4]);
  const norm = wick.clipGradNorm([a, undefined, b], 1);
  const [got, x, y] = await read(norm, a, b);
  assert.equal(got[0], 5);
  assert.ok(Math.abs(x[0] - 0.6) < 1e-6 && Math.abs(y[0] - 0.8) < 1e-6);
  assert.deepEqual(await read(wick.clipGradNorm([undefined, a], 100)), [[x[0]]]);
  assert.throws(() => wick.clipGradNorm([undefined], 1), { code: "ARGUMENT" });
  await wick.close();
});

onBoth("layers say what is wrong with their options", async (wick) => {
  const x = wick.ones([1, 2, 4, 4]), weight = wick.ones([2, 2, 3, 3]);
  for (const options of [{ stride: 0 }, { stride: -1 }, { dilation: [1, 0] }, { groups: 0 },
                         { padding: -1 }])
    assert.throws(() => x.conv2d(weight, undefined, options), { code: "VALUE" });
  assert.throws(() => x.conv2d(weight, undefined, { stride: [1, 1, 1] }), { code: "ARGUMENT" });
  assert.throws(() => x.conv2d(weight, undefined, { stride: 0.5 }), { code: "ARGUMENT" });
  assert.throws(() => x.maxPool2d(0), { code: "VALUE" });
  assert.throws(() => x.resize([2, 2], "best"), { code: "VALUE" });
  assert.throws(() => x.mse(x, "all"), { code: "VALUE" });
  assert.throws(() => x.conv2d(undefined), { code: "ARGUMENT" });
  await rejects(x.conv2d(wick.ones([2, 3, 3, 3])).read(), "SHAPE", /conv2d/);
  await rejects(x.groupNorm(3).read(), "SHAPE", /group_norm/);
  await rejects(x.dropout(2).read(), "VALUE", /dropout/);
  const { values, indices } = wick.tensor([[1, 5, 2, 3]]).maxPool1dWithIndices(2);
  assert.deepEqual(await read(values, indices), [[5, 3], [1, 3]]);
  assert.deepEqual(await read(wick.arange(0, 6).reshape([1, 6]).adaptiveAvgPool([2])), [[1, 4]]);
  assert.deepEqual(await read(wick.tensor([[0, 3]]).resize([4], "linear", true)), [[0, 1, 2, 3]]);
  const [normal] = await read(wick.tensor([[[1], [3]], [[3], [5]]]).batchNormTrain());
  assert.deepEqual(normal.map(Math.round), [-1, -1, 1, 1]);
  const ignored = wick.zeros([2, 4]).crossEntropy(wick.tensor([1, 3], [2], "u32"),
                                                  { ignoredIndex: 3, reduction: "sum" });
  assert.ok(Math.abs(await ignored.item() - Math.log(4)) < 1e-6);
  await wick.close();
});

onBoth("a stream of random numbers is chosen", async (wick) => {
  wick.setSeed(5);
  const [, second] = await read(wick.randBits([4]), wick.randBits([4]));
  wick.setSeed("5", 1n);
  assert.deepEqual(await read(wick.randBits([4])), [second]);
  assert.throws(() => wick.setSeed(-1), { code: "VALUE" });
  assert.throws(() => wick.setSeed(0, 2n ** 64n), { code: "VALUE" });
  await wick.close();
});

/** Cube, with its gradient, by a function in JavaScript. */
const CUBE = {
  name: "cube", inputs: 1, shape: ([x]) => [x],
  compute: ([x]) => [x.map((value) => value ** 3)],
  gradient: ([x], _, dy) => [dy.mul(x.sqr()).mul(3)],
};

onBoth("an operation in JavaScript", async (wick) => {
  const cube = wick.operation(CUBE), x = wick.tensor([[1, 2, 3]]);
  const tape = wick.tape().watch(x);
  const [y] = await cube.run([x.mul(2)]);
  assert.deepEqual(await y.describe(), { dtype: "f32", shape: [1, 3] });
  assert.deepEqual(await read(y, ...tape.grad(y, [x])), [[8, 64, 216], [24, 96, 216]]);
  const [split, rest] = await wick.operation({
    name: "halves", inputs: 1, outputs: 2,
    shape: ([{ dtype, shape: [, n] }]) => [{ dtype, shape: [n - 1] }, { dtype: "f16", shape: [] }],
    compute: async ([values]) => [Array.from(values).slice(1), values[0] / 2],
  }).run([x]);
  assert.deepEqual(await read(split, rest), [[2, 3], [0.5]]);
  const [none] = await wick.operation({ ...CUBE, gradient: () => [undefined] }).run([x]);
  assert.deepEqual(await read(...tape.grad(none, [x])), [[0, 0, 0]]);
  const [plain] = await wick.operation({ ...CUBE, gradient: undefined }).run([x]);
  await rejects(tape.grad(plain, [x])[0].read(), "UNSUPPORTED", /cube has no gradient/);
  const [wrong] = await wick.operation({ ...CUBE, gradient: ([v]) => [v.sum()] }).run([x]);
  await rejects(tape.grad(wrong, [x])[0].read(), "SHAPE", /cube: the gradient of input 0/);
  const [failing] = await wick.operation({ ...CUBE, gradient: ([v]) => [v.softmax(9)] }).run([x]);
  await rejects(tape.grad(failing, [x])[0].read(), "DIM", /softmax/);
  cube.dispose();
  await rejects(tape.grad(y, [x])[0].read(), "STATE", /disposed/);
  await rejects(cube.run([x]), "STATE", /cube is disposed/);
  tape.end();
  await wick.sync();
  await wick.close();
});

onBoth("what an operation's functions do wrong", async (wick) => {
  const x = wick.ones([2]), make = (changes) => wick.operation({ ...CUBE, ...changes });
  await rejects(make({ shape: () => [] }).run([x]), "VALUE", /shape must return an array of 1/);
  await rejects(make({ compute: () => [] }).run([x]), "VALUE", /compute must return an array of 1/);
  await rejects(make({ compute: () => [[1]] }).run([x]).then(([y]) => y.read()), "ARGUMENT", /4|8/);
  await assert.rejects(make({ shape: () => { throw new Error("mine"); } }).run([x]), /mine/);
  await rejects(make({}).run([x, x]), "ARGUMENT", /cube: 2 inputs, 1 are wanted/);
  assert.throws(() => make({ compute: undefined }), { code: "VALUE" });
  assert.throws(() => make({ inputs: 0 }), { code: "VALUE" });
  for (const gradient of [() => [], ([v]) => [v, v], ([v]) => v])
    assert.throws(() => make({ gradient }),
                  { code: "VALUE", message: /cube: gradient must return an array of 1/ });
  assert.throws(() => make({ gradient: () => [wick.ones([1]).write(Float32Array.of(1))] }),
                { code: "UNSUPPORTED" });
  let waited;
  make({ gradient: ([v]) => {
    waited = v.read();
    return [v];
  } });
  await rejects(waited, "STATE", /nothing in it can wait/);
  const noise = make({ gradient: ([v], _, dy) => [dy.mul(wick.randn([2]).mul(0)).add(v)] });
  const tape = wick.tape().watch(x), [y] = await noise.run([x]);
  assert.deepEqual(await read(...tape.grad(y, [x])), [[1, 1]]);
  await wick.sync();
  await wick.close();
});

test("an operation of tensors that failed leaves no promise behind", async (t) => {
  const wick = await open(), cube = wick.operation(CUBE), left = [];
  const add = wick.operation({ ...CUBE, inputs: 2, gradient: undefined });
  const listener = (reason) => left.push(reason.message);
  process.on("unhandledRejection", listener);
  t.after(() => process.off("unhandledRejection", listener));
  const failed = () => wick.ones([2]).matmul(wick.ones([3])), disposed = wick.ones([2]);
  disposed.dispose();
  await rejects(cube.run([failed()]), "SHAPE", /matmul/);
  await rejects(add.run([failed(), disposed]), "STATE", /disposed/);
  await assert.rejects(cube.run([undefined]), TypeError);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(left, []);
  await wick.sync().catch(() => undefined);
  await wick.close();
});

const SCALED_SQUARE = `
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<uniform> scale: f32;
@compute @workgroup_size(WORKGROUP_X) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { y[id.x] = scale * x[id.x] * x[id.x]; }
}`;

test("an operation by a kernel, with its gradient", { skip: missing }, async () => {
  const wick = await open({ backend: "webgpu", gpu: await openWebGpu(), strict: true });
  const kernel = await wick.kernel(
    { source: SCALED_SQUARE, buffers: ["read_write", "read"], uniformBytes: 4 });
  const square = wick.operation({
    name: "square", inputs: 1, shape: ([x]) => [x], kernel,
    launch: ([{ shape }]) => ({
      size: { threads: shape.reduce((a, b) => a * b, 1) }, uniform: Float32Array.of(0.5),
    }),
    gradient: ([x], _, dy) => [dy.mul(x)],
  });
  const x = wick.tensor([1, 2, 3]), tape = wick.tape().watch(x);
  const [y] = await square.run([x]);
  assert.deepEqual(await read(y, ...tape.grad(y, [x])), [[0.5, 2, 4.5], [1, 2, 3]]);
  assert.equal((await wick.stats()).fallbacks, 0);
  const short = { ...square, name: "short", inputs: 1, shape: ([v]) => [v], kernel,
                  launch: () => ({ size: [1] }) };
  await rejects(wick.operation(short).run([x]), "ARGUMENT", /0 bytes of uniform/);
  wick.operation({ ...short, inputs: 2 });
  await rejects(wick.sync(), "VALUE", /buffers of its kernel/);
  await wick.close();
});

onBoth("a small network learns", async (wick) => {
  wick.setSeed(3);
  const x = wick.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]), labels = wick.tensor([0, 1, 1, 0], [4], "u32");
  const params = [wick.randn([8, 2]), wick.zeros([8]), wick.randn([2, 8]), wick.zeros([2])];
  const network = (w) => x.linear(w[0], w[1]).tanh().linear(w[2], w[3]);
  const optimizer = wick.optimizer(params, { kind: "adamw" });
  for (let i = 0; i < 60; i++)
    await wick.scope(() => {
      const tape = wick.tape().watch(...params);
      optimizer.step(tape.grad(network(params).crossEntropy(labels), params), 0.1);
      tape.end();
    });
  assert.ok(await network(params).crossEntropy(labels).item() < 0.05);
  assert.deepEqual(await read(network(params).argmax(1)), [[0, 1, 1, 0]]);
  await wick.close();
});

test("the snippets of docs/web.md", async () => {
  const wick = await open(), losses = [];
  const [training, operation] = snippets("Training");
  wick.setSeed(1);
  await training(wick, { log: (loss) => losses.push(loss) });
  assert.ok(losses.length === 100 && losses.at(-1) < 0.1 && losses[0] > 0.5, losses.at(-1));
  await operation(wick);
  await wick.sync();
  await wick.close();
});

test("tapes and optimizers that stay open are told in debug mode", async () => {
  const told = [], onLog = (level, text) => level === "warning" && told.push(text);
  const wick = await open({ debug: true, onLog });
  const x = wick.ones([1]);
  wick.tape().end();
  wick.tape();
  wick.optimizer([x], { kind: "sgd" });
  wick.operation(CUBE);
  x.dispose();
  await wick.close();
  assert.deepEqual(told.map((text) => text.split(" ").slice(0, 2).join(" ")), ["a tape", "an optimizer"]);
});

// Dawn keeps the process alive, and has work in flight that is not to be cut.
test.after(() => setImmediate(() => process.exit()));
