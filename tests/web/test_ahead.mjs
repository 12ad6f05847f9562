// The engine computes one token ahead of who reads them, and nobody can tell but by the time.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Wick } from "../../web/dist/wick.js";

const read = (path) => readFileSync(new URL(path, import.meta.url));
const file = read("../data/stories260K.gguf");
const { prompt, tokens: expected } = JSON.parse(read("../data/stories260K.greedy.json"));

const wick = await Wick.open({ backend: "cpu", math: "exact" });
const model = await wick.load(file);

/** Tokens of a generation, read with so many milliseconds between them. */
async function take(generation, n, pause = 0) {
  const ids = [];
  for await (const { id } of generation) {
    ids.push(id);
    if (ids.length === n) break;
    if (pause) await sleep(pause);
  }
  return ids;
}

for (const pause of [0, 5]) {
  test(`left off and gone on with, ${pause} ms for each token`, async () => {
    const session = await model.session();
    assert.deepEqual(await take(session.generate(prompt), 5, pause), expected.slice(0, 5));
    if (pause) await sleep(50); // what comes next has been computed by now
    const tokens = await session.tokens();
    assert.deepEqual([...tokens.slice(-5)], expected.slice(0, 5));
    assert.deepEqual(await take(session.generate(""), 5, pause), expected.slice(5, 10));
    // A call with other options, and other tokens after what was read.
    const [, second] = await take(session.generate(" The dog", { temperature: 0.5, seed: 1 }), 2);
    assert.equal((await session.tokens()).at(-1), second);
    await session.reset();
    assert.deepEqual(await take(session.generate(prompt), 9, pause), expected.slice(0, 9));
    await session.close();
  });
}

test("saved, restored and closed in between", async () => {
  const session = await model.session();
  await take(session.generate(prompt), 3);
  const fork = await session.fork();
  assert.deepEqual(await take(fork.generate(""), 3), expected.slice(3, 6));
  await fork.restore(await session.save());
  await session.close();
  assert.deepEqual(await take(fork.generate(""), 4), expected.slice(3, 7));
  await fork.close();
  await assert.rejects(fork.reset(), { code: "STATE" });
});

test("given up while it is computed ahead", async () => {
  const session = await model.session();
  const controller = new AbortController();
  const generation = session.generate(prompt, { signal: controller.signal });
  const iterator = generation[Symbol.asyncIterator]();
  const { value } = await iterator.next();
  controller.abort();
  await assert.rejects(iterator.next(), { code: "CANCELLED" });
  assert.deepEqual([value.id, ...await take(session.generate(""), 4)], expected.slice(0, 5));
  await session.close();
});

test.after(() => wick.close());
