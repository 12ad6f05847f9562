// A model in several files, which `wick gguf split` makes, gives the tokens of the whole one.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { Wick } from "../../web/dist/wick.js";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const expected = JSON.parse(readFileSync(path("../data/stories260K.greedy.json")));
// The native command, which is not part of this stage's build.
const program = [process.env.WICK_BIN, path("../../build/wick")].find((at) => at && existsSync(at));
const skip = program === undefined && "the wick command, which makes parts, was not built";

async function checkTokens(wick, source) {
  const model = await wick.load(source);
  const session = await model.session({ temperature: 0 });
  const tokens = [];
  for await (const { id } of session.generate(expected.prompt, { maxTokens: 40 })) tokens.push(id);
  assert.deepEqual(tokens, expected.tokens.slice(0, 40));
  await model.close();
}

test("a model in parts: files, and addresses", { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "wick-"));
  t.after(() => rmSync(folder, { recursive: true }));
  execFileSync(program, ["gguf", "split", path("../data/stories260K.gguf"),
    join(folder, "m.gguf"), "--max-size", "400K"]);
  const names = readdirSync(folder).sort();
  assert.ok(names.length >= 3, names.join());
  const blobs = names.map((name) => new Blob([readFileSync(join(folder, name))]));
  const server = createServer((request, response) => {
    response.end(readFileSync(join(folder, request.url.slice(1))));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const base = `http://127.0.0.1:${server.address().port}/`;
  const wick = await Wick.open({ backend: "cpu", math: "exact" });
  await checkTokens(wick, blobs);
  await checkTokens(wick, names.map((name) => base + name));
  await checkTokens(wick, base + names[0]);
  await assert.rejects(wick.load(blobs.toReversed()), { code: "FORMAT" });
  await assert.rejects(wick.load(blobs.slice(1)), { code: "FORMAT" });
  await assert.rejects(wick.load(blobs[1]), { code: "NOT_FOUND" });
  const { fits } = await wick.preflight(blobs);
  assert.equal(fits, true);
  await wick.close();
});
