// The module with threads in Node: the same tokens with any number of them, and what happens where
// they cannot be had or fail.
import assert from "node:assert/strict";
import {
  copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Wick } from "../../web/dist/wick.js";
import { load } from "./built.mjs";

const { ThreadWorkers } = await load("thread_workers");
const dist = fileURLToPath(new URL("../../web/dist/", import.meta.url));
const read = (path) => readFileSync(new URL(path, import.meta.url));
const file = read("../data/stories260K.gguf");
const expected = JSON.parse(read("../data/stories260K.greedy.json"));

/** An engine, and the warnings of its log. */
async function open(options) {
  const warnings = [];
  const onLog = (level, message) => level === "warning" && warnings.push(message);
  return { wick: await Wick.open({ backend: "cpu", math: "exact", onLog, ...options }), warnings };
}

async function checkStories(wick, maxTokens = expected.tokens.length) {
  const model = await wick.load(file);
  const session = await model.session({ temperature: 0 });
  const tokens = [];
  for await (const { id } of session.generate(expected.prompt, { maxTokens })) tokens.push(id);
  assert.deepEqual(tokens, expected.tokens.slice(0, maxTokens));
}

/** A copy of the package's files; change makes it another. Returns its URL. */
function copyOfPackage(t, change) {
  const folder = mkdtempSync(join(tmpdir(), "wick-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const name of readdirSync(dist)) copyFileSync(join(dist, name), join(folder, name));
  change(folder);
  return `${pathToFileURL(folder)}/`;
}

for (const threads of [1, 2, 4])
  test(`stories260K with ${threads} threads`, async () => {
    const { wick, warnings } = await open({ threads });
    const { module, device } = wick.capabilities();
    assert.deepEqual([module, device.threads], [threads > 1 ? "threads" : "simd", threads]);
    await checkStories(wick);
    await wick.close();
    assert.deepEqual(warnings, []);
  });

test("many engines at once, opened and closed", async () => {
  for (let round = 0; round < 5; round++) {
    const engines = await Promise.all([2, 3, 4].map((threads) => open({ threads })));
    await Promise.all(engines.map(({ wick }) => checkStories(wick, 20)));
    await Promise.all(engines.map(({ wick }) => wick.close()));
  }
});

test("a second device in the module computes with the threads that are left", async () => {
  const { wick } = await open({ threads: 3, verify: true });
  await checkStories(wick, 3);
  assert.ok((await wick.stats()).verified > 0);
  await wick.close();
});

test("without the script of its workers it computes with one thread and says so", async (t) => {
  const baseUrl = copyOfPackage(t, (folder) => rmSync(join(folder, "threads-worker.js")));
  const { wick, warnings } = await open({ threads: 3, baseUrl });
  assert.equal(wick.capabilities().device.threads, 1);
  assert.match(warnings.join("\n"), /^2 of 2 workers for threads do not start: .*threads-worker/);
  await checkStories(wick);
  await wick.close();
});

for (const [what, script, reason] of [
  ["that fail at once", "throw new Error('')", ""],
  ["that never answer", "setInterval(() => {}, 1000)", "it does not answer"],
])
  test(`workers ${what} are done without`, async (t) => {
    const baseUrl = copyOfPackage(t, (folder) =>
      writeFileSync(join(folder, "threads-worker.js"), script));
    const { wick, warnings } = await open({ threads: 2, baseUrl });
    assert.equal(wick.capabilities().device.threads, 1);
    assert.deepEqual(warnings, [`1 of 1 workers for threads do not start: ${reason}`]);
    await wick.close();
  });

test("no worker starts when all have been ended meanwhile", async () => {
  const workers = new ThreadWorkers(pathToFileURL(dist).href);
  const { port1, port2 } = new MessageChannel();
  const starting = assert.rejects(workers.start(port2), { message: "the engine is closed" });
  workers.end();
  await starting;
  port1.close();
});

test("without the second module the first one serves", async (t) => {
  const baseUrl = copyOfPackage(t, (folder) => rmSync(join(folder, "wick-threads.wasm")));
  const { wick, warnings } = await open({ threads: 2, baseUrl });
  assert.deepEqual([wick.capabilities().module, warnings.length], ["simd", 1]);
  assert.match(warnings[0], /one thread: .*wick-threads.wasm does not load/);
  await checkStories(wick, 20);
  await wick.close();
});

test("a worker that fails is an error, not a wait without end", async (t) => {
  const baseUrl = copyOfPackage(t, (folder) => writeFileSync(join(folder, "threads-worker.js"), `
    import { parentPort } from "node:worker_threads";
    parentPort.on("message", (port) => port.on("message", ({ memory, thread }) => {
      const words = new Int32Array(memory.buffer);
      parentPort.postMessage(null);
      Atomics.wait(words, thread / 4, 0);
      Atomics.store(words, thread / 4, -1);
    }));`));
  const { wick } = await open({ threads: 2, baseUrl });
  await checkStories(wick, 20); // nobody waits for a worker that never began
  await assert.rejects(wick.close(), { code: "INTERNAL", message: /a thread has failed/ });
});

test("a number of threads that is none is refused", async () => {
  for (const threads of [-1, 1.5]) await assert.rejects(open({ threads }), { code: "VALUE" });
});
