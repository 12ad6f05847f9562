// The package in Node, on the CPU and on WebGPU (lavapipe): it generates what the native build
// does, families within the bound of their fixtures, and leaves nothing in memory.
import test from "node:test";
import { cases } from "./cases.mjs";
import {
  checkAborts, checkAhead, checkFamily, checkModels, checkReuse, checkSessions, checkTogether,
  checkTokens,
} from "./checks.mjs";
import {
  familyNames, missingFamilies, missingSmol, repeated, serve, smol, stories, testsAll,
} from "./fixtures.mjs";
import { missing, openWebGpu } from "./node_webgpu.mjs";

const { base } = await serve();
const call = (name, ...given) => cases[name](...given);

/** Its factors are those of a context of exactly its tokens; the native tests compare it. */
const needsFullContext = (name) =>
  name === "phi3-longrope-equal" && "nothing is generated after a prompt that fills the context";

/** On WebGPU the native tests have all of them. */
const few = ["gemma3", "gpt-oss"];
const isQuick = (name) => testsAll || few.includes(name);

async function checkBackend(t, options) {
  await cases.open({ math: "exact", strict: true, ...options }, base + stories.path);
  const maxTokens = options.backend === "cpu" || testsAll ? 200 : 64;
  await t.test("stories260K", () => checkTokens(call, stories, { maxTokens }));
  await t.test("a GPU that runs ahead", () => checkAhead(call, stories));
  await t.test("generations given up", () => checkAborts(call, repeated(100), 7));
  await t.test("sessions", () => checkSessions(call, repeated(50)));
  await t.test("a text that is in the cache", () => checkReuse(call));
  await t.test("three sessions at a time", () => checkTogether(call));
  await t.test("models", () => checkModels(call, base, repeated(20)));
  await t.test("families", { skip: missingFamilies }, async (families) => {
    const names = familyNames.filter(options.backend === "cpu" ? () => true : isQuick);
    for (const name of names)
      await families.test(name, { skip: needsFullContext(name) },
                          () => checkFamily(call, base, name));
  });
}

test("cpu", (t) => checkBackend(t, { backend: "cpu" }));

test("cpu: SmolLM2", { skip: missingSmol }, async () => {
  await cases.open({ backend: "cpu", math: "exact" }, base + smol.path);
  await checkTokens(call, smol, { maxTokens: 16 });
});

test("webgpu", { skip: missing }, async (t) => {
  const options = { backend: "webgpu", gpu: await openWebGpu() };
  await checkBackend(t, options);
  await t.test("the GPU is lost on the way", async () => {
    await cases.open({ math: "exact", ...options }, base + stories.path);
    await checkTokens(call, stories, { maxTokens: 32, loseAfter: 7 });
  });
});

// Dawn keeps the process alive, and has work in flight that is not to be cut.
test.after(() => setImmediate(() => process.exit()));
