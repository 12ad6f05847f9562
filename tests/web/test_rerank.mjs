// Documents in the order of a reranker: by a call and by the API, on the CPU in Node.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { Wick as CpuWick } from "../../web/dist/cpu.js";
import { Wick } from "../../web/dist/wick.js";
import { families, missingFamilies, stories } from "./fixtures.mjs";

const skip = missingFamilies;
const QUERY = "fire", DOCUMENTS = ["a river", "a long river of fire", "water", "a river"];

/** The bytes of a small one, which tests of the command make. */
function makeReranker() {
  const folder = mkdtempSync(join(tmpdir(), "wick-")), path = join(folder, "reranker.gguf");
  const tools = fileURLToPath(new URL("../cli", import.meta.url));
  const code = `import sys; sys.path.insert(0, sys.argv[1])
from reranker import write_reranker
write_reranker(sys.argv[2], sys.argv[3])`;
  execFileSync("python3", ["-B", "-c", code, tools, join(families, "bert.gguf"), path]);
  const bytes = readFileSync(path);
  rmSync(folder, { recursive: true });
  return bytes;
}

for (const [name, Opener] of [["both backends", Wick], ["the CPU alone", CpuWick]])
  test(`documents are ordered by the package with ${name}`, { skip }, async () => {
    const wick = await Opener.open({ backend: "cpu", math: "exact", threads: 1, api: true });
    const model = await wick.load(makeReranker());
    assert.equal(model.info.labels, 2);
    const ranked = await model.rerank(QUERY, DOCUMENTS);
    assert.deepEqual(ranked.map(({ index }) => index).toSorted(), [0, 1, 2, 3]);
    for (let i = 1; i < ranked.length; i++) {
      const [a, b] = [ranked[i - 1], ranked[i]];
      assert.ok(a.score > b.score || (a.score === b.score && a.index < b.index));
    }
    const scores = new Map(ranked.map(({ index, score }) => [index, score]));
    assert.equal(scores.get(0), scores.get(3));
    assert.equal(new Set(scores.values()).size, 3);
    for (const [i, text] of DOCUMENTS.entries()) {
      const [alone] = await model.rerank(QUERY, [text]);
      assert.deepEqual(alone, { index: 0, score: scores.get(i) });
    }
    assert.notEqual((await model.rerank("water", ["water"]))[0].score, scores.get(2));
    assert.deepEqual(await model.rerank(QUERY, []), []);
    const api = await model.api();
    const body = JSON.stringify({ query: QUERY, documents: DOCUMENTS });
    const answer = await api.fetch("http://wick/v1/rerank", { method: "POST", body });
    const { results } = await answer.json();
    assert.deepEqual(results.map(({ index }) => index), ranked.map(({ index }) => index));
    for (const { index, relevance_score: score } of results)
      assert.ok(Math.abs(score - scores.get(index)) < 1e-6);
    await assert.rejects(model.rerank(undefined, DOCUMENTS), { code: "ARGUMENT" });
    await assert.rejects(model.rerank(QUERY, "water"), { code: "ARGUMENT" });
    await assert.rejects(model.rerank(QUERY, [5]), { code: "ARGUMENT" });
    await assert.rejects(model.rerank(QUERY, DOCUMENTS, { pooling: "mean" }), { code: "VALUE" });
    await assert.rejects(model.rerank(QUERY, DOCUMENTS, { maxTokens: 4 }), { code: "STATE" });
    await assert.rejects(model.rerank(QUERY, DOCUMENTS, { signal: AbortSignal.abort() }));
    await assert.rejects(model.embed(DOCUMENTS), { code: "UNSUPPORTED" });
    await wick.close();
  });

test("other models and engines say that they rank nothing", async () => {
  const bytes = readFileSync(new URL(`../../${stories.path}`, import.meta.url));
  for (const [options, message] of [[{}, /api: true/], [{ api: true }, /classifier/]]) {
    const wick = await Wick.open({ backend: "cpu", threads: 1, ...options });
    const model = await wick.load(bytes);
    assert.equal(model.info.labels, 0);
    await assert.rejects(model.rerank(QUERY, DOCUMENTS), { code: "UNSUPPORTED", message });
    await wick.close();
  }
});
