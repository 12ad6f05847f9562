// What tests of tensors in Node share: a device, both kinds of it, and refusals.
import assert from "node:assert/strict";
import test from "node:test";
import { Wick } from "../../web/dist/wick.js";
import { missing, openWebGpu } from "./node_webgpu.mjs";

/** A WickError of this code, with these words. */
export const rejects = (promise, code, words) => assert.rejects(promise, (reason) => {
  assert.equal(reason.code, code, reason.message);
  assert.match(reason.message, words);
  return true;
});

export const open = (options) => Wick.open({ backend: "cpu", math: "exact", ...options });

/** Runs it on the CPU and, where there is one, on WebGPU. */
export function onBoth(name, run) {
  test(`${name} on the CPU`, async () => run(await open()));
  test(`${name} on WebGPU`, { skip: missing }, async () =>
    run(await open({ backend: "webgpu", gpu: await openWebGpu() })));
}
