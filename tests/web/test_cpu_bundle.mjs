// The bundle for the CPU alone does what the other one does on the CPU, in the caller's thread and
// in a worker, and refuses WebGPU.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Wick } from "../../web/dist/cpu.js";
import { stories } from "./fixtures.mjs";
import { PageWorker } from "./node_worker.mjs";

globalThis.Worker = PageWorker;
const file = new Blob([readFileSync(new URL(`../../${stories.path}`, import.meta.url))]);

/** Tokens as recorded, and one of the operations on tensors. */
async function check(options) {
  const wick = await Wick.open({ math: "exact", ...options });
  const { device, module } = wick.capabilities();
  const model = await wick.load(file);
  const session = await model.session({ temperature: 0 });
  const tokens = [];
  for await (const { id } of session.generate(stories.prompt, { maxTokens: 100 })) tokens.push(id);
  assert.deepEqual(tokens, stories.tokens.slice(0, 100));
  assert.equal((await wick.stats()).referenceOps, 0);
  assert.equal(await wick.ones([4]).sum().item(), 4);
  await wick.close();
  return { device, module };
}

test("with one thread", async () => {
  const { device, module } = await check({ threads: 1 });
  assert.deepEqual([device.backend, module], ["cpu", "simd"]);
});

test("with threads", async () => assert.equal((await check({ threads: 2 })).module, "threads"));

test("in a worker", async () => {
  await check({ worker: true, threads: 1 });
});

test("kernels are verified", async () => {
  const wick = await Wick.open();
  const checks = await wick.verify({ kernels: "*norm_*", cases: 2 });
  assert.ok(checks.length > 0);
  for (const { kernel, status } of checks) assert.equal(status, "OK", kernel);
  await wick.close();
});

test("there is no WebGPU, and it says why", async () => {
  const message = /libwick\/cpu is for the CPU alone/;
  await assert.rejects(Wick.open({ backend: "webgpu" }), { code: "NO_DEVICE", message });
  const wick = await Wick.open();
  const { device, backends } = wick.capabilities();
  assert.equal(device.backend, "cpu");
  assert.match(device.fallbackReason, message);
  const { isAvailable, reason } = backends.find(({ name }) => name === "webgpu");
  assert.equal(isAvailable, false);
  assert.match(reason, message);
  await assert.rejects(wick.kernel({ source: "" }), { code: "UNSUPPORTED" });
  await wick.close();
});
