// Kernels are verified in the page, without blocking it: on the CPU and on WebGPU.
import assert from "node:assert/strict";
import test from "node:test";
import { Wick } from "../../web/dist/wick.js";
import { testsAll } from "./fixtures.mjs";
import { missing, openWebGpu } from "./node_webgpu.mjs";

async function checkVerify(wick, kernels) {
  const told = [];
  const checks = await wick.verify({
    kernels, cases: 2, seed: 7, onCheck: (check) => told.push(check),
  });
  assert.deepEqual(checks, told);
  assert.ok(checks.length > 0);
  for (const { kernel, status, failure, cases, elements, worst, isDisabled } of checks) {
    assert.deepEqual([kernel, status, failure, isDisabled], [kernel, "OK", "", false]);
    assert.ok(cases === 2 && elements > 0 && worst <= 1, kernel);
  }
  await assert.rejects(wick.verify({ kernels: "nothing" }), { code: "NOT_FOUND" });
  await assert.rejects(wick.verify({ cases: -1 }), { code: "VALUE", message: /cases/ });
  const controller = new AbortController();
  const given = wick.verify({ kernels, signal: controller.signal,
                              onCheck: () => controller.abort() });
  await assert.rejects(given, { code: "CANCELLED" });
  assert.equal(await wick.ones([4]).sum().item(), 4);
  await wick.close();
}

test("on the CPU", async () => checkVerify(await Wick.open({ backend: "cpu" }), "*norm_wasm"));

test("on WebGPU", { skip: missing }, async () =>
  checkVerify(await Wick.open({ backend: "webgpu", gpu: await openWebGpu() }),
              testsAll ? "*_norm_wgsl" : "fill_wgsl"));

test("closing ends a verification", async () => {
  const wick = await Wick.open({ backend: "cpu" });
  const refused = assert.rejects(wick.verify(), { code: "CANCELLED" });
  await new Promise((resolve) => setTimeout(resolve, 20));
  await wick.close();
  await refused;
});

// Dawn keeps the process alive, and has work in flight that is not to be cut.
test.after(() => setImmediate(() => process.exit()));
