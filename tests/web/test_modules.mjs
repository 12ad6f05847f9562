// The module for text alone and the one with tensors: which is loaded when, and both in one engine.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Wick } from "../../web/dist/wick.js";
import { load as loadBuilt } from "./built.mjs";
import { stories } from "./fixtures.mjs";
import { missing, openWebGpu } from "./node_webgpu.mjs";

const dist = fileURLToPath(new URL("../../web/dist", import.meta.url));
const bytes = readFileSync(fileURLToPath(new URL(`../../${stories.path}`, import.meta.url)));
const exact = { math: "exact" };

async function generate(model, maxTokens = 20) {
  const session = await model.session({ maxTokens });
  const text = await session.generate("Once upon a time").text();
  await session.close();
  return text;
}

/** The package's modules that have come to life in this thread; Node has others. */
let nModules = 0;
const { instantiate } = WebAssembly;
WebAssembly.instantiate = (module, imports) => {
  if (imports && "wick" in imports) nModules++;
  return instantiate(module, imports);
};

/** On the CPU and on WebGPU, with two modules and with one. */
function onAll(name, run) {
  for (const tensors of [false, true]) {
    const how = tensors ? "one module" : "two modules";
    test(`${name}: ${how}, CPU`, () => run({ ...exact, backend: "cpu", tensors }));
    test(`${name}: ${how}, WebGPU`, { skip: missing }, async () =>
      run({ ...exact, backend: "webgpu", gpu: await openWebGpu(), tensors }));
  }
}

test("text needs no module with tensors, and tensors say that it is missing", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "wick-"));
  t.after(() => rmSync(folder, { recursive: true }));
  cpSync(dist, folder, { recursive: true, filter: (path) => !/-tensors.*\.wasm$/.test(path) });
  for (const entry of ["wick.js", "cpu.js"]) {
    const module = await import(pathToFileURL(join(folder, entry)).href);
    const wick = await module.Wick.open({ ...exact, backend: "cpu" });
    const model = await wick.load(bytes);
    const text = await generate(model);
    const message = /wick(-cpu)?-tensors\.wasm does not load/;
    for (const use of [() => wick.ones([2]).add(1).read(), () => wick.sync(), () => wick.verify()])
      await assert.rejects(use(), { code: "IO", message });
    assert.equal(await generate(model), text);
    assert.ok((await wick.stats()).ops > 0);
    await wick.close();
    await assert.rejects(module.Wick.open({ backend: "cpu", tensors: true }),
                         { code: "IO", message });
  }
});

onAll("models and tensors in turn", async (options) => {
  nModules = 0;
  const wick = await Wick.open({ ...options, profile: true });
  const model = await wick.load(bytes);
  const alone = await generate(model);
  const before = await wick.stats();
  assert.equal(nModules, 1);
  const x = wick.ones([64, 64]);
  const [text, sum] = await Promise.all([generate(model), x.matmul(x).sum().item()]);
  assert.deepEqual([text, sum], [alone, 64 ** 3]);
  await wick.sync();
  const after = await wick.stats();
  assert.ok(after.ops > before.ops && after.bufferBytes > before.bufferBytes);
  assert.equal(nModules, options.tensors ? 1 : 2);
  const names = (await wick.profile()).map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const kernel of [/^matmul/, /^linear/, /^attention_cached/])
    assert.ok(names.some((name) => kernel.test(name)), String(kernel));
  await model.close();
  assert.equal(await x.sum().item(), 64 ** 2);
  await wick.close();
});

for (const tensors of [false, true])
  test(`a lost GPU: ${tensors ? "one device" : "two devices"}`, { skip: missing }, async () => {
    const lost = [];
    const wick = await Wick.open({ ...exact, backend: "webgpu", gpu: await openWebGpu(), tensors,
                                   onDeviceLost: (message) => lost.push(message) });
    const model = await wick.load(bytes);
    const text = await generate(model);
    const x = wick.ones([4]);
    assert.equal(await x.sum().item(), 4);
    await wick.loseDevice();
    await assert.rejects(x.exp().read(), { code: "DEVICE_LOST" });
    await wick.sync().catch(() => undefined);
    assert.equal(await generate(model), text);
    assert.equal(await wick.ones([4]).sum().item(), 4);
    assert.equal(lost.length, tensors ? 1 : 2);
    await wick.close();
  });

onAll("closing while the module with tensors comes", async (options) => {
  const wick = await Wick.open(options);
  const refused = [wick.ones([2]).read(), wick.sync(), wick.verify()]
    .map((given) => assert.rejects(given, { code: "CANCELLED", message: /closed meanwhile/ }));
  await wick.close();
  await Promise.all(refused);
  await assert.rejects(wick.ones([2]).read(), { code: "STATE" });
});

test("what takes memory counts for both", async () => {
  const MIB = 2 ** 20;
  const wick = await Wick.open({ ...exact, backend: "cpu", threads: 1, memoryLimit: 64 * MIB });
  const before = (await wick.preflight(bytes)).availableBytes;
  const x = wick.zeros([24 * MIB / 4]);
  await x.read();
  assert.ok((await wick.preflight(bytes)).availableBytes < before - 24 * MIB);
  await wick.close();
});

test("models take no kernel that verification has found wrong", { skip: missing }, async () => {
  const { Verifier } = await loadBuilt("verifier");
  const { next } = Verifier.prototype;
  Verifier.prototype.next = async function (...given) {
    const check = await next.apply(this, given);
    return check && { ...check, isDisabled: true };
  };
  const { Wick: Built } = await loadBuilt("wick");
  const baseUrl = pathToFileURL(`${dist}/`).href;
  const wick = await Built.open({ ...exact, backend: "webgpu", gpu: await openWebGpu(), baseUrl,
                                  profile: true });
  await wick.verify({ kernels: "rms_norm*", cases: 1 });
  const before = (await wick.stats()).fallbacks;
  await generate(await wick.load(bytes), 1);
  assert.ok((await wick.stats()).fallbacks > before);
  await wick.close();
});

// Dawn keeps the process alive, and has work in flight that is not to be cut.
test.after(() => setImmediate(() => process.exit()));
