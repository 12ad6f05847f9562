// Tensors of an engine in a worker are those of one in the page's own thread: commands, bytes and
// failures as messages.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Wick } from "../../web/dist/wick.js";
import { PageWorker } from "./node_worker.mjs";

globalThis.Worker = PageWorker;
const stories = new URL("../data/stories260K.gguf", import.meta.url);
const open = () => Wick.open({ backend: "cpu", math: "exact", worker: true });

test("tensors in a worker", async () => {
  const wick = await open();
  assert.ok(wick.capabilities().isWorker);
  const bytes = Float32Array.of(1, 2, 3, 4);
  const x = wick.tensor(bytes, [2, 2]);
  bytes[0] = 9; // what was given is a copy, which was handed over
  const y = await wick.scope(() => x.matmul(wick.eye(2)).affine(2, 0).add(x));
  assert.deepEqual(await y.read(), Float32Array.of(3, 6, 9, 12));
  assert.deepEqual(await y.describe(), { dtype: "f32", shape: [2, 2] });
  y.write(Float32Array.of(0, 0, 0, 1));
  assert.equal(await y.sum().item(), 1);
  await wick.close();
  await assert.rejects(y.read(), { code: "STATE" });
});

test("failures come through", async () => {
  const wick = await open();
  wick.ones([2]).add(wick.ones([3]));
  await assert.rejects(wick.sync(), { code: "SHAPE", message: /^add: / });
  const controller = new AbortController();
  const reading = wick.ones([1024, 1024]).matmul(wick.ones([1024, 1024])).read(controller);
  controller.abort();
  await assert.rejects(reading, { code: "CANCELLED" });
  await wick.sync();
  const model = await wick.load(new Blob([readFileSync(stories)]));
  for (const logitBias of [[[1]], [[1, "much"]], [["1", 2]], [3]])
    await assert.rejects(model.session({ logitBias }), { code: "VALUE", message: /'logitBias'/ });
  await model.session({ logitBias: [[1, null], [2, -0.5]] });
  await wick.close();
});

test("commands and answers keep their order", async () => {
  const wick = await open();
  const x = wick.zeros([3]);
  const seen = [];
  for (let i = 1; i <= 20; i++) seen.push(x.fill(i).sum().item());
  assert.deepEqual(await Promise.all(seen), Array.from({ length: 20 }, (_, i) => 3 * (i + 1)));
  await wick.close();
});

test("an operation of the page's own, and its gradient, in a worker", async () => {
  const wick = await open();
  const cube = wick.operation({
    name: "cube", inputs: 1, shape: ([x]) => [x], compute: ([x]) => [x.map((value) => value ** 3)],
    gradient: ([x], _, dy) => [dy.mul(x.sqr()).mul(3)],
  });
  const x = wick.tensor([1, 2, 3]), tape = wick.tape().watch(x), [y] = await cube.run([x]);
  assert.deepEqual(await y.read(), Float32Array.of(1, 8, 27));
  assert.deepEqual(await tape.grad(y, [x])[0].read(), Float32Array.of(3, 12, 27));
  await wick.close();
});

test("kernels are verified in a worker", async () => {
  const wick = await open();
  const told = [];
  const checks = await wick.verify({
    kernels: "s*_ref", cases: 2, onCheck: ({ kernel }) => told.push(kernel),
  });
  assert.deepEqual(checks.map(({ kernel }) => kernel), told);
  assert.ok(checks.length > 0 && checks.every(({ status }) => status === "OK"));
  await wick.close();
});

// So that a failure does not leave a thread behind.
test.after(() => setImmediate(() => process.exit()));
