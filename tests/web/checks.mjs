// The checks that hold wherever the package runs: call(name, ...given) runs a function of cases.mjs
// there, base is the address of the tests' server.
import assert from "node:assert/strict";
import { readFamily, stories } from "./fixtures.mjs";

const bytesOfShortlist = 1024; // what a GPU gives back for a token: src/llm/shortlist.h

/** Tokens as recorded; every operation on the device itself; a small read-back for each token. */
export async function checkTokens(call, { prompt, tokens, nVocab }, { maxTokens, loseAfter }) {
  const { tokens: got, did, backend } = await call("generate", { prompt, maxTokens, loseAfter });
  assert.deepEqual(got, tokens.slice(0, maxTokens));
  assert.ok(did.ops > 0);
  assert.equal(did.fallbacks, 0);
  assert.equal(did.referenceOps, 0);
  assert.equal(did.losses, loseAfter ? 1 : 0);
  const nReads = got.length + did.losses; // what was lost is read again
  assert.ok(did.reads <= nReads, `${did.reads} reads for ${got.length} tokens`);
  const bytesEach = backend === "webgpu" ? bytesOfShortlist : 4 * nVocab;
  assert.ok(did.bytesRead <= nReads * bytesEach, `${did.bytesRead} bytes read back`);
}

/** A GPU that draws tokens itself and computes on: the same tokens, few reads of several. */
export async function checkAhead(call, { prompt, tokens }) {
  const maxTokens = 24, drawn = { temperature: 0.8, topK: 40, seed: 3 };
  const { tokens: want } = await call("generate", { prompt, maxTokens, options: drawn });
  for (const [options, expected] of [[{}, tokens.slice(0, maxTokens)], [drawn, want]]) {
    const { tokens: got, did, backend } =
      await call("generate", { prompt, maxTokens, speculate: "ahead", options });
    assert.deepEqual(got, expected);
    if (backend === "webgpu") assert.ok(did.reads <= 8, `${did.reads} reads`);
  }
}

/**
 * Device memory is the same after each round but the first, the module's after each but two. What
 * is kept of released tensors grows until it is as many as any round has had at once.
 */
function checkMemory(after) {
  const last = after.at(-1), most = 16384;
  for (const { bufferBytes, liveBytes } of after.slice(1)) {
    assert.equal(bufferBytes, last.bufferBytes);
    assert.ok(Math.abs(last.liveBytes - liveBytes) < most, `${liveBytes}, ${last.liveBytes}`);
  }
  for (const { heapBytes } of after.slice(2)) assert.equal(heapBytes, after[1].heapBytes);
}

export async function checkAborts(call, nTimes, most) {
  const { prompt } = stories;
  const { nAborted, tokens, after } = await call("abort", { prompt, nTimes, most });
  assert.equal(nAborted, nTimes);
  assert.deepEqual(tokens, stories.tokens.slice(0, most + 1));
  checkMemory(after);
}

export async function checkSessions(call, nTimes) {
  checkMemory(await call("sessions", { prompt: stories.prompt, nTimes }));
}

/** Of a text that is in the cache only the last token is computed again. */
export async function checkReuse(call) {
  const [, second, alone] = await call("reuse", { prompt: stories.prompt });
  assert.equal(second.reusedTokens, second.promptTokens - 1);
  assert.deepEqual([alone.reusedTokens, alone.promptTokens], [0, second.promptTokens]);
}

/** Sessions that generate at the same time give what each gives alone. */
export async function checkTogether(call) {
  const three = await call("together", { prompt: stories.prompt, maxTokens: 20 });
  for (const tokens of three.alone) assert.equal(tokens.length, 20);
  assert.deepEqual(three.together, three.alone);
}

export async function checkModels(call, base, nTimes) {
  const { prompt, path } = stories;
  checkMemory(await call("models", { address: base + path, prompt, nTimes }));
}

export async function checkFamily(call, base, name) {
  const { path, prompt, nVocab, logprobs, bound } = readFamily(name);
  const got = await call("logprobs", { address: base + path, prompt, nVocab });
  const error = Math.max(...logprobs.map((want, id) => Math.abs(want - got[id])));
  assert.ok(error <= bound, `${error} is more than ${bound}`);
}
