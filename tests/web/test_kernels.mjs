// Every kernel of the wasm module against the reference on random operations. By hand:
// WICK_BUILD_DIR=build-web node tests/web/test_kernels.mjs [NAMES [CASES]]
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const [names = "*", cases = process.env.WICK_KERNEL_CASES ?? "6"] = process.argv.slice(2);
const module = new WebAssembly.Module(
  readFileSync(`${process.env.WICK_BUILD_DIR}/web/check_kernels.wasm`));
const text = (at) => {
  const bytes = new Uint8Array(doors.memory.buffer, at);
  return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
};
const reports = [];
const provided = {
  clock_ns: () => performance.now() * 1e6,
  entropy: () => Math.floor(Math.random() * 2 ** 52),
  report: (kernel, summary, failure) =>
    reports.push({ name: `${text(kernel)}: ${text(summary)}`, failure: failure && text(failure) }),
};
const imports = {};
for (const { module: space, name } of WebAssembly.Module.imports(module)) {
  imports[space] ??= {};
  imports[space][name] = provided[name] ?? (() => assert.fail(`${name} was called on the CPU`));
}
const doors = new WebAssembly.Instance(module, imports).exports;
doors._initialize();

const pattern = new TextEncoder().encode(`${names}\0`);
const at = doors.alloc(pattern.length);
new Uint8Array(doors.memory.buffer, at).set(pattern);
doors.check_kernels(at, Number(cases));
test("there are kernels of that name", () => assert.notEqual(reports.length, 0));
for (const { name, failure } of reports) test(name, () => assert.equal(failure, 0));
