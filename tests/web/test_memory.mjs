// The module's memory: above 2 GiB, where JavaScript sees places as negative numbers, and the depth
// of its stack.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { load } from "./built.mjs";
import { withTemplate } from "./fixtures.mjs";

const { Memory } = await load("memory");
const { Module } = await load("module");
const { MemorySource } = await load("plain_source");

const GIB = 2 ** 30, PAGE = 65536;

test("views and texts at places above 2 GiB", () => {
  const memory = new Memory(new WebAssembly.Memory({ initial: 2 * GIB / PAGE + 1 }));
  const at = (2 * GIB + 64) | 0;
  assert.ok(at < 0);
  memory.bytes(at, 4).set([1, 2, 3, 4]);
  assert.deepEqual([...memory.words(at, 1)], [0x04030201]);
  memory.floats(at, 1)[0] = 0.5;
  assert.deepEqual([...memory.bytes(at, 4)], [0, 0, 0, 0x3f]);
  memory.doubles(at, 1)[0] = 7;
  assert.equal(memory.doubles(2 * GIB + 64, 1)[0], 7);
  memory.putText(at, 6, "über all");
  assert.equal(memory.text(at), "über");
  assert.equal(memory.text(at, 3), "üb");
});

/** Polls WHAT_poll to its end. */
async function finish(module, what, pointer, ...more) {
  await module.finish(() => module.call(`${what}_poll`, pointer, ...more));
  return module.pointer(`${what}_finish`, pointer);
}

const stories = readFileSync(new URL("../data/stories260K.gguf", import.meta.url));
const openModule = () => Module.load({
  kind: "text", taken: () => 0,
  baseUrl: new URL("../../web/dist/", import.meta.url).href,
  backend: "cpu", gpu: undefined, threads: 1, mayWait: false,
  memory: { bytes: 4 * GIB, isShared: false },
  log: () => undefined, lost: () => undefined,
});
const openDevice = (module) =>
  finish(module, "device", module.pointer("device_open", '{"backend":"cpu"}'));

test("an engine whose heap has passed 2 GiB", async () => {
  const module = await openModule();
  const free = () => module.record("device_info", device).memoryAvailable;
  let device = await openDevice(module);
  const before = free();
  module.call("device_close", device);
  const blocks = [1.4 * GIB, 0.9 * GIB].map((size) => module.alloc(size));
  device = await openDevice(module);
  assert.ok(device < 0, "the device lies above 2 GiB");
  assert.ok(free() < before - 2.2 * GIB);
  const source = module.addSource(new MemorySource(stories));
  const file = await finish(module, "file", module.pointer("file_open", source));
  const fit = module.record("file_predict", file, device, '{"contextLength":64}');
  assert.equal(fit.architecture, "llama");
  assert.equal(fit.fileBytes, stories.length);
  module.call("file_close", file);
  assert.throws(() => module.pointer("device_open", '{"backend":"abacus"}'),
                { code: "VALUE", message: "the option 'backend' cannot be read" });
  for (const block of blocks) module.release(block);
  assert.ok(free() > before - 0.1 * GIB, "what was released counts as available");
  module.call("device_close", device);
});

test("the deepest templates are refused, and the engine lives on", async () => {
  const module = await openModule();
  const device = await openDevice(module);
  const progress = module.alloc(16);
  const open = (template) => {
    const source = module.addSource(new MemorySource(withTemplate(template)));
    return finish(module, "model", module.pointer("model_open", device, source, "{}"), progress);
  };
  const nested = JSON.parse("[".repeat(120) + "]".repeat(120));
  const chat = (model, messages) =>
    module.checked("chat_tokens", model, JSON.stringify({ messages }));
  for (const body of ["f(n + 1)", "[{'a': f(n + 1)}]"]) {
    const model = await open(`{% macro f(n) %}{{ ${body} }}{% endmacro %}{{ f(0) }}`);
    assert.throws(() => chat(model, []), /maximum recursion depth exceeded/);
    module.call("model_close", model);
  }
  const model = await open("{{ messages | tojson }}");
  assert.ok(chat(model, nested) > 120);
  module.call("model_close", model);
  module.call("device_close", device);
});
