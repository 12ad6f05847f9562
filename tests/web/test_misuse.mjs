// What callers do wrong, or all at once: each call ends with an error that says what to do, nothing
// is used after its end, and the engine goes on. In the page's own thread and in a worker.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { Wick } from "../../web/dist/wick.js";
import { PageWorker } from "./node_worker.mjs";

globalThis.Worker = PageWorker;
const file = readFileSync(new URL("../data/stories260K.gguf", import.meta.url));
const { prompt } = JSON.parse(
  readFileSync(new URL("../data/stories260K.greedy.json", import.meta.url)));
const schema = { type: "object", properties: { a: { type: "integer" } } };

const open = (worker) => Wick.open({ backend: "cpu", math: "exact", threads: 1, worker });

async function read(generation, n) {
  const ids = [];
  for await (const { id } of generation) if (ids.push(id) === n) break;
  return ids;
}

test("dtypes by the names of others", async () => {
  const wick = await open(false);
  assert.throws(() => wick.tensor([1, 2], [2], "float32"),
                { code: "DTYPE", message: /^the dtype of numbers is one of f32, .* not float32; / });
  await assert.rejects(wick.zeros([2], "float32").read(),
                { code: "DTYPE", message: /^unknown dtype float32: numbers have one of f32, / });
  await wick.close();
});

for (const worker of [false, true]) {
  const where = worker ? "in a worker" : "in the page";

  test(`closing ${where}`, async (t) => {
    const wick = await open(worker);
    const model = await wick.load(file);
    await t.test("a session that is saved and generates", async () => {
      const session = await model.session();
      await read(session.generate(prompt), 3); // the next token is on its way
      const [saved] = await Promise.allSettled([session.save(), session.close()]);
      // A worker may have saved before it hears of the closing.
      if (worker && saved.value) assert.ok(saved.value.length > 0);
      else assert.throws(() => { throw saved.reason; },
                         { code: "STATE", message: "the session is closed" });
      await assert.rejects(session.tokens(), { code: "STATE" });
      await session.close();
    });
    await t.test("a session, its model and the session again, while a prompt is read", async () => {
      const other = await wick.load(file), session = await other.session({ contextLength: 512 });
      const reading = read(session.generate("Once upon a time there was a dog. ".repeat(27)), 1);
      const failed = assert.rejects(reading, { code: "STATE", message: "the session is closed" });
      await new Promise((resolve) => setTimeout(resolve, 3));
      const [last] = await Promise.all([wick.load(file), session.close(), other.close(),
                                         session.close(), other.close()]);
      await failed;
      assert.equal((await read((await last.session()).generate(prompt), 3)).length, 3);
      await last.close();
    });
    await t.test("a model whose texts are embedded", async () => {
      const other = await wick.load(file);
      const embedding = other.embed(Array(20).fill("Once upon a time there was a dog."));
      const closing = other.close();
      await assert.rejects(embedding, { code: "STATE", message: "the model is closed" });
      await closing;
    });
    await t.test("the engine, twice, with work under way", async () => {
      const session = await model.session();
      await read(session.generate(prompt), 2);
      const running = [read(session.generate(""), 50), wick.load(file), wick.ones([3]).read()];
      const results = Promise.allSettled(running);
      await Promise.all([wick.close(), wick.close()]);
      for (const { status, reason } of await results)
        if (status === "rejected") assert.match(reason.code, /^(STATE|CANCELLED)$/);
      await wick.close();
      for (const call of [wick.stats(), wick.load(file), model.session(), session.reset(),
                          wick.ones([1]).read(), model.tokenize("a"), wick.preflight(file)])
        await assert.rejects(call, { code: "STATE", message: "the engine is closed" });
    });
  });

  test(`closing while a server does not answer, ${where}`, async (t) => {
    let asked;
    const server = createServer(() => asked()).listen(0, "localhost");
    t.after(() => server.close().closeAllConnections());
    await once(server, "listening");
    const address = `http://localhost:${server.address().port}/model.gguf`;
    const wick = await open(worker);
    const ended = [];
    for (const begin of [() => wick.load(address), () => wick.load(address, { cache: false }),
                         () => wick.preflight(address)]) {
      const request = new Promise((resolve) => (asked = resolve));
      ended.push(assert.rejects(begin(), { code: /^(STATE|CANCELLED)$/ }));
      await request;
    }
    await wick.close();
    await Promise.all(ended);
  });

  test(`two calls at once ${where}`, async () => {
    const wick = await open(worker);
    const model = await wick.load(file);
    const session = await model.session();
    await read(session.generate(prompt), 3);
    const [saved, second] = await Promise.allSettled([session.save(), session.save()]);
    assert.ok(saved.value.length > 0);
    // A worker may have ended the first before it hears of the second.
    if (worker && second.value) assert.deepEqual(second.value, saved.value);
    else assert.match(second.reason.message, /^the session is busy: /);
    const length = (await session.tokens()).length;
    const [whole, reset] = await Promise.allSettled([session.save(), session.reset()]);
    assert.deepEqual(whole.value, saved.value);
    // A worker may have saved before it hears of the reset.
    if (!worker) assert.match(reset.reason.message, /^the session is busy: /);
    if (reset.reason) assert.equal((await session.tokens()).length, length);
    await session.restore(whole.value);
    const controller = new AbortController();
    controller.abort();
    const before = await session.tokens();
    const { signal } = controller;
    await assert.rejects(read(session.generate("more", { signal }), 1), { code: "CANCELLED" });
    assert.deepEqual(await session.tokens(), before);
    assert.equal((await read(session.generate(""), 2)).length, 2);
    await wick.close();
  });

  test(`arguments ${where}`, async () => {
    const wick = await open(worker), other = await open(worker);
    const x = wick.ones([2]);
    assert.throws(() => x.add(other.ones([2])), { code: "ARGUMENT", message: /another engine/ });
    assert.throws(() => x.matmul(2), { code: "ARGUMENT", message: /no tensor: 2/ });
    for (const [source, kind] of [[undefined, "undefined"], [null, "null"], [7, "7"],
                                  [{}, "Object"], [new Response("GGUF"), "Response"],
                                  [Promise.resolve(file), "Promise"], [[5], "5"]])
      await assert.rejects(wick.load(source), { code: "ARGUMENT",
        message: `a model is loaded from an address, a File, bytes, a stream (as the body of a `
          + `Response) or { cached }, not from ${kind}` });
    await assert.rejects(wick.load(file, { sha256: "" }), { code: "ARGUMENT" });
    const model = await wick.load(file, { session: { jsonSchema: schema } });
    assert.equal((await wick.preflight(file, { jsonSchema: schema })).fits, true);
    await assert.rejects(model.session({ temprature: 1 }), { code: "VALUE" });
    await assert.rejects(model.session({ temperature: NaN }), { code: "VALUE" });
    await (await model.session({ seed: 7n, logitBias: [[1, -Infinity]] })).close();
    await assert.rejects(model.session({ contextLength: -1 }), { code: "VALUE" });
    for (const token of [1.5, NaN, -1, 2 ** 32, "1"])
      assert.throws(() => model.detokenize([token]), { code: "INDEX", message: /is no token$/ });
    await Promise.all([wick.close(), other.close()]);
  });
}

test("options of the engine", async () => {
  await assert.rejects(Wick.open({ backend: "cpu", treads: 1 }), { code: "VALUE" });
  await assert.rejects(Wick.open({ baseUrl: "http://" }), { code: "ARGUMENT" });
  await assert.rejects(Wick.open({ baseUrl: "file:///nowhere", worker: false }),
                       { code: "IO", message: /^file:\/\/\/nowhere\/wick.wasm / });
});

test("the GPU that saves power is asked for where that is wanted", async () => {
  for (const [gpuOptions, wanted] of [[{ lowPower: true }, "low-power"], [{}, "high-performance"]]) {
    const asked = new Set(), opened = [];
    const requestAdapter = async ({ powerPreference }) => {
      asked.add(powerPreference);
      const requestDevice = async () => {
        opened.push(powerPreference);
        throw new Error("no device");
      };
      return { info: {}, features: new Set(), limits: {}, requestDevice };
    };
    await assert.rejects(Wick.open({ backend: "webgpu", gpu: { requestAdapter }, gpuOptions }),
                         { message: /no device/ });
    assert.deepEqual([...asked], [wanted]);
    assert.equal(opened[0], wanted);
  }
});

test("a worker that cannot start, or ends", async () => {
  const options = { backend: "cpu", worker: true };
  const baseUrl = "file:///nowhere/";
  await assert.rejects(Wick.open({ ...options, baseUrl }), { code: "INTERNAL" });
  await assert.rejects(Wick.open({ ...options, gpuOptions: { f16: () => true } }),
                       { code: "VALUE" });
  let page;
  globalThis.Worker = class extends PageWorker {
    constructor(url) {
      super(url);
      page = this;
    }
  };
  const wick = await Wick.open(options);
  const waiting = wick.verify();
  page.onerror({ message: "out of memory" });
  await assert.rejects(waiting, { code: "INTERNAL", message: /out of memory/ });
  await assert.rejects(wick.stats(), { code: "INTERNAL" });
  await wick.close();
});

/** A program whose callbacks throw, at once and later. */
const THROWS = `
import { readFileSync } from "node:fs";
const thrown = [];
console.error = ({ message }) => thrown.push(message);
const [dist, path] = process.argv.slice(-2);
const { Wick } = await import(dist);
const wick = await Wick.open({ backend: "cpu", threads: 1, worker: false });
await wick.load(readFileSync(path), { onProgress() { throw new Error("theirs"); } });
await wick.load(readFileSync(path), { async onProgress() { throw new Error("theirs, too"); } });
await wick.close();
console.log([...new Set(thrown)].join());`;

test("what callers throw stays theirs", () => {
  const given = ["../../web/dist/wick.js", "../data/stories260K.gguf"]
    .map((path) => fileURLToPath(new URL(path, import.meta.url)));
  const args = ["--input-type=module", "--eval", THROWS, ...given];
  assert.equal(execFileSync(process.execPath, args, { encoding: "utf8" }), "theirs,theirs, too\n");
});

// So that a failure does not leave a thread behind.
test.after(() => setImmediate(() => process.exit()));
