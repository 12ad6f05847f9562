// Wrong use: every call is refused with a sentence, and none of them harms what comes after.
import assert from "node:assert/strict";
import { openAsBlob, readFileSync } from "node:fs";
import test from "node:test";
import { Wick } from "../../web/dist/wick.js";
import { stories } from "./fixtures.mjs";

const open = (options) => Wick.open({ backend: "cpu", threads: 1, ...options });
const argument = { name: "WickError", code: "ARGUMENT" };
const value = { name: "WickError", code: "VALUE" };

/** Opens an engine whose doors go through `change`, which gets the module's exports. */
async function openChanged(change) {
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = async (module, imports) => {
    const { exports } = await instantiate(module, imports);
    return { exports: change({ ...exports }) };
  };
  try {
    return await open();
  } finally {
    WebAssembly.instantiate = instantiate;
  }
}

test("an engine is closed once, and no call reaches it afterwards", async () => {
  const wick = await open();
  const x = wick.tensor([1]);
  await Promise.all([wick.close(), wick.close()]);
  await wick.close();
  for (const call of [() => wick.stats(), () => wick.load(new Uint8Array(9)), () => x.read()])
    await assert.rejects(call(), { code: /STATE|CANCELLED/, message: /engine (is|was) closed/ });
});

test("an engine that has trapped says so, and can be closed", async () => {
  let isTrapping = false;
  const wick = await openChanged((exports) => ({
    ...exports,
    device_stats(...given) {
      if (isTrapping) throw new WebAssembly.RuntimeError("unreachable");
      return exports.device_stats(...given);
    },
  }));
  isTrapping = true;
  const failed = { code: "INTERNAL", message: /^the engine has failed .*unreachable/ };
  await assert.rejects(wick.stats(), failed);
  isTrapping = false;
  await assert.rejects(wick.stats(), failed);
  await assert.rejects(wick.tensor([1]).read(), failed);
  await wick.close();
});

test("no model", async () => {
  const wick = await open();
  for (const source of [undefined, null, 5, {}, new Float32Array(4), Promise.resolve()])
    await assert.rejects(wick.load(source), argument);
  const failing = new ReadableStream({ pull: (stream) => stream.error(new Error("cut")) });
  await assert.rejects(wick.load(failing), { code: "IO", message: /cut$/ });
  const texts = () => new ReadableStream({ pull: (stream) => stream.enqueue("GGUF") });
  await assert.rejects(wick.load(texts()), argument);
  const locked = texts();
  locked.getReader();
  await assert.rejects(wick.load(locked), argument);
  const never = () => new Promise(() => undefined);
  const giving = new AbortController();
  const silent = new ReadableStream({ pull: () => (giving.abort(), never()), cancel: never },
                                    { highWaterMark: 0 });
  await assert.rejects(wick.load(silent, { signal: giving.signal }), { code: "CANCELLED" });
  await wick.close();
});

test("files that are cut off, or of another kind, by their names", async () => {
  const wick = await open();
  const bytes = readFileSync(new URL(`../../${stories.path}`, import.meta.url));
  for (const size of [1, 3, 4, 23, 24, 1000, 20000, bytes.length - 1]) {
    const part = new Blob([bytes.subarray(0, size)]);
    for (const source of [new File([part], "model.gguf"), part.stream()]) {
      const failed = { code: "FORMAT", message: /^(model\.gguf|a stream): .*: it is cut off/ };
      await assert.rejects(wick.load(source), failed, String(size));
    }
  }
  const other = new File(["a text of some length"], "model.txt");
  await assert.rejects(wick.load(other), { code: "FORMAT", message: /^model.txt: .*not a GGUF/ });
  await wick.close();
});

test("a model that is forced, and those that are not", async () => {
  const wick = await open({ memoryLimit: 1 });
  const bytes = readFileSync(new URL(`../../${stories.path}`, import.meta.url));
  const refused = () => assert.rejects(wick.load(bytes), { code: "OUT_OF_MEMORY" });
  await refused();
  await (await wick.load(bytes, { force: true })).close();
  await refused();
  assert.equal((await wick.preflight(bytes)).fits, false);
  await wick.close();
});

test("tokens and text are taken twice", async () => {
  const wick = await open();
  const path = new URL(`../../${stories.path}`, import.meta.url);
  const model = await wick.load(await openAsBlob(path));
  const session = await model.session({ maxTokens: 3 });
  const taken = { code: "STATE", message: /taken already/ };
  const first = session.generate("Once");
  assert.notEqual(await first.text(), "");
  await assert.rejects(first.text(), taken);
  const second = session.generate("Once");
  for await (const _ of second) break;
  await assert.rejects(second.text(), taken);
  assert.throws(() => second[Symbol.asyncIterator](), taken);
  assert.equal(session.constructor.name, "Session");
  assert.equal(first.constructor.name, "Generation");
  await wick.close();
});

test("files on the disk", async () => {
  const wick = await open();
  const wanted = { code: "ARGUMENT", message: /^'.+' is not an address .* fs\.openAsBlob\(path\)/ };
  const paths = ["models/x.gguf", "/abs/x.gguf", "./x", "C:\\x.gguf", "file:///abs/x.gguf"];
  for (const source of [...paths, new URL("file:///x"), [paths], { cached: "x" }].flat(2)) {
    await assert.rejects(wick.load(source), wanted);
    await assert.rejects(wick.preflight(source), wanted);
  }
  await wick.close();
});

test("what the model does not have", async () => {
  const wick = await open();
  const path = new URL(`../../${stories.path}`, import.meta.url);
  const model = await wick.load(await openAsBlob(path));
  const session = await model.session();
  await assert.rejects(model.detokenize([1, 512]),
                       { code: "INDEX", message: "token 512 is not in the vocabulary of 512" });
  await assert.rejects(session.generate([512]).text(), { code: "INDEX", message: /^token 512 / });
  await assert.rejects(session.chat([]).text(),
                       { code: "NOT_FOUND", message: /session\.generate/ });
  await assert.rejects(model.chatTokens([], { template: "tools" }),
                       { code: "NOT_FOUND", message: /template named tools: / });
  await wick.close();
});

test("no options, prompts and texts", async () => {
  const wick = await open();
  const bytes = readFileSync(new URL(`../../${stories.path}`, import.meta.url));
  const jsonSchema = { type: "string" };
  const model = await wick.load([bytes], { session: { jsonSchema } });
  assert.ok((await wick.preflight(bytes, { jsonSchema })).fits);
  for (const temperature of [NaN, Infinity])
    await assert.rejects(model.session({ temperature }), value);
  const session = await model.session({ seed: 7n, maxTokens: 4 });
  assert.throws(() => session.generate("a", { topP: NaN }), value);
  for (const prompt of [undefined, null, 5, {}, [1.5], [-1], ["a"]])
    assert.throws(() => session.generate(prompt), { code: /^(ARGUMENT|INDEX)$/ });
  for (const messages of [undefined, null, "Hi"])
    await assert.rejects(session.chat(messages).text(), argument);
  await assert.rejects(model.embed("text"), argument);
  for (const text of [undefined, 5, ["a"]]) {
    await assert.rejects(model.embed([text]), argument);
    await assert.rejects(model.tokenize(text), { ...argument, message: /^a text is wanted, not / });
  }
  assert.notEqual(await session.generate("Once").text(), "");
  for (const saved of [undefined, "saved", [1]])
    await assert.rejects(session.restore(saved), { ...argument, message: /what save gave/ });
  const { buffer } = await session.save();
  await session.restore(buffer);
  await wick.close();
});

test("seeds are exact", async () => {
  const wick = await open();
  const model = await wick.load(readFileSync(new URL(`../../${stories.path}`, import.meta.url)));
  const largest = await model.session({ temperature: 1, seed: 2n ** 64n - 1n });
  assert.equal((await largest.stats()).seed, String(2n ** 64n - 1n));
  const seed = "18446744073709551557";
  const session = await model.session({ temperature: 1, seed });
  assert.equal((await session.stats()).seed, seed);
  const [check] = await wick.verify({ kernels: "softmax_*", cases: 1, seed });
  assert.equal(check.seed, seed);
  await wick.close();
});

const cycle = { type: "object" };
cycle.properties = cycle;

/** For each call what its options cannot be, and of what the sentence speaks. */
const WRONG = {
  session: [
    [{ contextLength: 0 }, "a whole number from 1 to 2147483647, not 0"],
    [{ contextLength: 1.5 }, "not 1.5"], [{ contextLength: 1e12 }, "not 1000000000000"],
    [{ maxTokens: -1 }, "a whole number from 0 to 4294967295, not -1"],
    [{ temperature: NaN }, "a finite number, not NaN"], [{ temperature: "1" }, 'not "1"'],
    [{ stop: "end" }, "an array of strings"], [{ dryBreakers: [1] }, "an array of strings"],
    [{ special: 1 }, "of type boolean"], [{ cache: "f64" }, "one of auto, f32, f16, q8_0, q4_0"],
    [{ maxTokens: 5n }, "a whole number from 0 to 4294967295, not 5n"],
    [{ stop: ["a\0"] }, "an array of strings without zero bytes"],
    [{ seed: -1 }, "its digits"], [{ seed: 1.5 }, "not 1.5"], [{ seed: 2 ** 64 }, "below 2^64"],
    [{ seed: [5] }, "not Array"], [{ seed: Object.create(null) }, "not an object"],
    [{ seed: "18446744073709551616" }, "below 2^64"], [{ jsonSchema: 5 }, "JSON, as an object or"],
    [{ jsonSchema: cycle }, "JSON, as an object or a text, not Object"],
    [{ jsonSchema: { const: 5n } }, "JSON, as an object or a text, not Object"],
    ...[5, [null], [[1, NaN]], [[1, "2"]], [[1, 2n]], [["1", 2]], [[1]], [1, 2]]
      .map((logitBias) => [{ logitBias }, "an array of [token, bias], not "]),
    [{ grammar: {} }, "a string without zero bytes, not Object"],
    [{ temprature: 1 }, "did you mean 'temperature'? There are contextLength, "],
    [{ max_tokens: 1 }, "did you mean 'maxTokens'?"], [{ toString: 1 }, "There are contextLength"],
    [{ ["a".repeat(1e5)]: 1 }, "There are"],
  ],
  generate: [
    [{ contextLength: 512 }, "There are maxTokens, stop, "], [{ topp: 1 }, "did you mean 'topP'?"],
    [{ signal: new AbortController() }, "an AbortSignal, not AbortController"],
    [{ onPrompt: "log" }, "of type function"],
  ],
  chat: [[{ tool: [] }, "did you mean 'tools'?"], [{ continueLast: "yes" }, "of type boolean"]],
  load: [
    [{ cach: false }, "did you mean 'cache'? There are onProgress, signal, cache, sha256, "],
    [{ cache: "write" }, 'one of true, false, read, not "write"'],
    [{ onProgress: 5 }, "of type function"], [{ fetch: "url" }, "of type function"],
    [{ connections: 0 }, "a whole number from 1 to 16, not 0"], [{ connections: 17 }, "not 17"],
    [{ stallTimeout: 0 }, "a whole number from 1 to "], [{ headers: { "a b": "1" } }, "'headers'"],
    [{ session: { contextLenght: 5 } }, "'contextLength'"],
  ],
  embed: [[{ pool: "mean" }, "There are pooling, "], [{ pooling: "meam" }, "one of auto, none, "]],
  rerank: [[{ topN: 2 }, "There are maxTokens, signal"]],
  open: [
    [{ treads: 2 }, "did you mean 'threads'?"], [{ threads: -1 }, "from 0 to 1024, not -1"],
    [{ threads: "2" }, 'not "2"'], [{ memoryLimit: 2 ** 32 + 1 }, "not 4294967297"],
    [{ backend: "gpu" }, "one of auto, cpu, webgpu"],
    [{ worker: "no" }, "of type boolean"], [{ onLog: 5 }, "of type function"],
    [{ gpuOptions: { f61: true } }, "did you mean 'f16'?"], [{ gpuOptions: 5 }, "of type object"],
  ],
  tokenize: [[{ addspecial: true }, "did you mean 'addSpecial'?"]],
  detokenize: [[{ special: 1 }, "of type boolean"]],
  chatTokens: [[{ signal: 1 }, "There are tools, documents, template, continueLast"]],
  verify: [[{ kernel: "*" }, "did you mean 'kernels'?"]],
  kernel: [[{ source: 5 }, "a string without zero bytes"], [{ workgroup: 64 }, "an array"]],
};

test("options are known, and what they are meant to be", async () => {
  const wick = await open();
  const bytes = readFileSync(new URL(`../../${stories.path}`, import.meta.url));
  const model = await wick.load(bytes);
  for (const seed of ["18446744073709551609", 2 ** 60, 2n ** 60n])
    await (await model.session({ seed, jsonSchema: "{}", logitBias: [[1, -Infinity]] })).close();
  const session = await model.session({ seed: null, topK: undefined, logitBias: [[1, null]] });
  const calls = {
    open: (options) => Wick.open(options), load: (options) => wick.load(bytes, options),
    preflight: (options) => wick.preflight(bytes, options),
    session: (options) => model.session(options),
    generate: async (options) => session.generate("a", options),
    chat: async (options) => session.chat([], options),
    embed: (options) => model.embed(["a"], options),
    rerank: (options) => model.rerank("a", ["b"], options),
    tokenize: (options) => model.tokenize("a", options),
    detokenize: async (options) => model.detokenize([1], options),
    chatTokens: (options) => model.chatTokens([], options),
    verify: (options) => wick.verify(options), kernel: (options) => wick.kernel(options),
  };
  for (const [name, call] of Object.entries(calls)) {
    for (const options of [null, 5, "text", [], new Map([["topK", 5]])])
      await assert.rejects(call(options), { code: "ARGUMENT", message: /^options are/ }, name);
    for (const [options, words] of WRONG[name] ?? WRONG.session)
      await assert.rejects(call(options), ({ code, message }) => {
        assert.ok(message.includes(words), message);
        return code === "VALUE";
      });
  }
  assert.notEqual(await session.generate("Once", { signal: undefined, maxTokens: 4 }).text(), "");
  await wick.close();
});

test("each failure has its own sentence", async () => {
  const wick = await open(), whole =
    new Uint8Array(readFileSync(new URL(`../../${stories.path}`, import.meta.url)));
  const said = [];
  for (const bytes of [new Uint8Array(64), whole.slice(0, 5000), new Uint8Array(64)])
    said.push((await wick.preflight(bytes).then(() => assert.fail(), (reason) => reason)).message);
  assert.equal(said[0], said[2]);
  assert.notEqual(said[0], said[1]);
  await wick.close();
});

test("no tensors", async () => {
  const [wick, other] = await Promise.all([open(), open()]);
  const x = wick.tensor([1, 2]);
  for (const operand of [undefined, null, "5", {}, 1n, other.tensor([1, 2])])
    assert.throws(() => x.add(operand), argument);
  assert.throws(() => x.add(1n), /^WickError: add: an operand is no tensor: 1n$/);
  for (const [number, dtype] of [[300, "u8"], [-1, "u8"], [1e20, "i32"], [0.5, "i8"], [NaN, "i32"],
                                 [1.5, "i64"], [2n ** 63n, "i64"], [-1n, "u32"]])
    assert.throws(() => wick.tensor([0, number], [2], dtype), { ...value,
      message: `tensor: ${number} is no number of ${dtype}` });
  for (const data of [undefined, null, "text", {}, [1, "2"]])
    assert.throws(() => wick.tensor(data), argument);
  assert.throws(() => x.affine("2", 0), { ...argument, message: /^affine: a number is wanted/ });
  assert.throws(() => x.reshape(2), argument);
  assert.throws(() => x.sum("all"), argument);
  assert.deepEqual(await x.rmsNorm().mul(x.add(x)).sum().describe(), { dtype: "f32", shape: [] });
  await Promise.all([wick.close(), other.close()]);
});
