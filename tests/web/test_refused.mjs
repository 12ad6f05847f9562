// A kernel that the GPU's compiler refuses is replaced: by another kernel, its decomposition or the
// CPU, with one line in the log. Each of a model's kernels in turn, on a real WebGPU.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Wick } from "../../web/dist/wick.js";
import { testsAll } from "./fixtures.mjs";
import { missing, openWebGpu } from "./node_webgpu.mjs";

const read = (path) => readFileSync(new URL(path, import.meta.url));
const file = read("../data/stories260K.gguf");
const { prompt, tokens } = JSON.parse(read("../data/stories260K.greedy.json"));
const expected = tokens.slice(0, 6);

/** A view of an object in which some of its members are others. */
function like(object, members) {
  return new Proxy(object, {
    get(target, name) {
      if (name in members) return members[name];
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** The device's own, but that pipelines of this text are refused; notes all texts. */
function refuse(gpu, refused, texts) {
  const codeOf = new Map();
  const deviceLike = (device) => like(device, {
    createShaderModule(desc) {
      const module = device.createShaderModule(desc);
      codeOf.set(module, desc.code);
      texts.add(desc.code);
      return module;
    },
    async createComputePipelineAsync(desc) {
      if (codeOf.get(desc.compute.module) === refused) throw new Error("refused by the test");
      return device.createComputePipelineAsync(desc);
    },
  });
  return like(gpu, {
    async requestAdapter(options) {
      const adapter = await gpu.requestAdapter(options);
      return adapter && like(adapter, {
        requestDevice: async (desc) => deviceLike(await adapter.requestDevice(desc)),
      });
    },
  });
}

async function generate(gpu, refused) {
  const texts = new Set(), log = [], ids = [];
  const wick = await Wick.open({
    backend: "webgpu", math: "exact", worker: false, gpu: refuse(gpu, refused, texts),
    onLog: (level, text) => log.push(text),
  });
  const model = await wick.load(file);
  const session = await model.session({ temperature: 0, maxTokens: expected.length });
  for await (const { id } of session.generate(prompt)) ids.push(id);
  await wick.close();
  return { ids, texts: [...texts], log: log.filter((text) => text.includes("takes its place")) };
}

test("each kernel refused in turn", { skip: missing }, async () => {
  const gpu = await openWebGpu();
  const whole = await generate(gpu, null);
  assert.deepEqual(whole.ids, expected);
  assert.deepEqual(whole.log, []);
  assert.ok(whole.texts.length >= 15, `${whole.texts.length} kernels`);
  // Each round compiles all others again.
  for (const refused of whole.texts.filter((_, i) => testsAll || i % 3 === 0)) {
    const { ids, log } = await generate(gpu, refused);
    assert.deepEqual(ids, expected, refused.slice(0, 200));
    assert.equal(log.length, 1, log.join("; ") + refused.slice(0, 200));
  }
});
