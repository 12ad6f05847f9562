// The shape of Chrome's Prompt API over a model of the package.
import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate } from "node:timers/promises";
import { promptApi } from "../../web/dist/prompt-api.js";
import { Wick } from "../../web/dist/wick.js";
import { withTemplate } from "./fixtures.mjs";

const SAYS = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
  + "{% if add_generation_prompt %}assistant: {% endif %}";
const OPTIONS = { contextLength: 256, maxTokens: 12, temperature: 0 };

const wick = await Wick.open({ backend: "cpu", threads: 1 });
test.after(() => wick.close());
const file = withTemplate(SAYS);
const model = await wick.load([file]);
const LanguageModel = promptApi(model, OPTIONS);
const greedy = { temperature: 0, topK: 1 };
const system = [{ role: "system", content: "Be kind." }];

test("a model is loaded with the first session, and its download is told", async () => {
  const Lazy = promptApi((options) => wick.load([file], options), OPTIONS);
  assert.equal(await Lazy.availability(), "downloadable");
  assert.equal(await Lazy.availability({ expectedInputs: [{ type: "image" }] }), "unavailable");
  const told = [];
  const made = Lazy.create({ monitor: (m) =>
    m.addEventListener("downloadprogress", ({ loaded }) => told.push(loaded)) });
  assert.equal(await Lazy.availability(), "downloading");
  const session = await made;
  assert.equal(await Lazy.availability(), "available");
  assert.deepEqual([told[0], told.at(-1)], [0, 1]);
  session.destroy();
  const { defaultTopK, maxTemperature } = await Lazy.params();
  assert.deepEqual([defaultTopK, maxTemperature], [40, 2]);
  const Broken = promptApi(() => Promise.reject(new Error("no network")));
  await assert.rejects(Broken.create(), /no network/);
  assert.equal(await Broken.availability(), "downloadable");
});

test("it is what a session of the package answers", async () => {
  const session = await LanguageModel.create({ ...greedy, initialPrompts: system });
  const own = await model.session(OPTIONS);
  const talk = [...system, { role: "user", content: "Once upon a time" }];
  const wanted = await own.chat(talk, greedy).text();
  assert.equal(await session.prompt("Once upon a time"), wanted);
  talk.push({ role: "assistant", content: wanted });
  assert.equal(session.inputUsage, (await model.chatTokens(talk)).length);
  assert.equal(session.inputQuota, 256);
  talk.push({ role: "user", content: "And then?" });
  const pieces = [];
  for await (const piece of session.promptStreaming("And then?")) pieces.push(piece);
  assert.equal(pieces.join(""), await own.chat(talk, greedy).text());
  assert.ok(pieces.length > 1);
  await own.close();
  session.destroy();
});

test("append, measure, clone and a prefix", async () => {
  const session = await LanguageModel.create(greedy);
  const cost = await session.measureInputUsage("The dog");
  await session.append([{ role: "user", content: [{ type: "text", value: "The dog" }] }]);
  assert.equal(session.inputUsage, cost);
  const other = await session.clone();
  const [a, b] = await Promise.all([session.prompt("ran"), other.prompt("ran")]);
  assert.equal(a, b);
  const given = [{ role: "user", content: "Who?" }, { role: "assistant", content: "The ", prefix: true }];
  const before = session.inputUsage;
  const rest = await session.prompt(given);
  assert.ok(!rest.startsWith("The "));
  assert.ok(session.inputUsage > before);
  for (const one of [session, other]) one.destroy();
  await assert.rejects(session.prompt("x"), { name: "AbortError" });
});

test("answers are JSON of the constraint, and the input says so unless it is omitted", async () => {
  const session = await LanguageModel.create(greedy);
  const responseConstraint = { enum: ["red", "blue"] };
  const omitted = await session.measureInputUsage("Colour?",
    { responseConstraint, omitResponseConstraintInput: true });
  assert.ok(await session.measureInputUsage("Colour?", { responseConstraint }) > omitted);
  assert.match(await session.prompt("Colour?", { responseConstraint }), /^"(red|blue)"$/);
  await assert.rejects(session.prompt("x", { responseConstraint: /a+/ }), { name: "NotSupportedError" });
  session.destroy();
});

test("what does not fit is refused, and old turns are forgotten with an event", async () => {
  const session = await LanguageModel.create({ ...greedy, initialPrompts: system });
  await assert.rejects(session.prompt("word ".repeat(300)),
    (reason) => reason.name === "QuotaExceededError" && reason.quota === 256 && reason.requested > 256);
  let n = 0;
  session.onquotaoverflow = () => n++;
  for (let i = 0; i < 12; i++) await session.prompt(`Question ${i}?`);
  assert.ok(n > 0);
  assert.ok(session.inputUsage < session.inputQuota);
  session.destroy();
});

test("a prompt that is given up is no part of the conversation", async () => {
  const Endless = promptApi(model, { contextLength: 512, ignoreEnd: true });
  const session = await Endless.create(greedy);
  const controller = new AbortController();
  const first = session.promptStreaming("Once", { signal: controller.signal }).getReader();
  const waits = session.prompt("Twice", { signal: controller.signal });
  const next = session.promptStreaming("The dog").getReader();
  assert.equal(typeof (await first.read()).value, "string");
  controller.abort();
  await assert.rejects(async () => {
    while (!(await first.read()).done); // what had arrived before
  }, { name: "AbortError" });
  await assert.rejects(waits, { name: "AbortError" });
  assert.equal(typeof (await next.read()).value, "string");
  await next.cancel();
  assert.equal(session.inputUsage, 0);
  const destroyed = session.prompt("Once");
  session.destroy();
  await assert.rejects(destroyed, { name: "AbortError" });
  await assert.rejects(Endless.create({ signal: AbortSignal.abort() }), { name: "AbortError" });
  await assert.rejects(LanguageModel.create({ initialPrompts: [{ role: "user", content: "a" }, ...system] }),
                       TypeError);
});

test("a stream that nobody reads holds up no other prompt", async () => {
  const session = await LanguageModel.create(greedy);
  session.promptStreaming("The cat");
  assert.notEqual(await session.prompt("The dog"), "");
  assert.ok(session.inputUsage > 24); // both answers
  session.destroy();
});

/** A session that says these spans one by one, one answer after the other. */
function fakeModel(answers, seen = []) {
  const session = {
    stats: async () => ({ contextLength: 100 }),
    close: async () => undefined,
    chat: (messages, { tools, signal }) => {
      seen.push({ messages, tools });
      const answer = answers.shift();
      return { leftOut: 0, async *[Symbol.asyncIterator]() {
        for (const span of answer) {
          await setImmediate();
          signal.throwIfAborted();
          yield { spans: [span] };
        }
      } };
    },
  };
  return { session: async () => session, chatTokens: async (messages) => messages };
}

test("tools are run, and the model goes on with their results", async () => {
  const seen = [], ran = [];
  const callOf = (city) => ({ kind: "call", tag: "<tool_call>", text: "weather",
                              calls: [{ name: "weather", arguments: { city } }] });
  const call = callOf("Rome"), other = callOf("Bari");
  const fake = fakeModel([[{ kind: "content", text: "Let me see. " }, call, other], [call],
                          [{ kind: "content", text: "Sunny." }]], seen);
  const session = await promptApi(fake).create({ tools: [{ name: "weather", description: "of a city",
    inputSchema: { type: "object" }, execute: async (given) => (ran.push(given), { sky: "clear" }) }] });
  assert.equal(await session.prompt("Rome?"), "Let me see. Sunny.");
  assert.deepEqual(ran, [{ city: "Rome" }, { city: "Bari" }, { city: "Rome" }]);
  assert.equal(seen[0].tools[0].function.name, "weather");
  const [asked, result] = seen[1].messages.slice(-3);
  const ids = seen[2].messages.flatMap(({ tool_calls = [] }) => tool_calls).map(({ id }) => id);
  assert.equal(new Set(ids).size, 3);
  for (const id of ids) assert.match(id, /^\d{9}$/);
  assert.deepEqual(seen[2].messages.flatMap(({ tool_call_id: id }) => id ?? []), ids);
  assert.deepEqual(asked.tool_calls[0].function, { name: "weather", arguments: { city: "Rome" } });
  assert.deepEqual([result.role, result.content], ["tool", '{"sky":"clear"}']);
});

test("a load is given up when the last one who waits for it gives up", async () => {
  const loads = [];
  const Lazy = promptApi(({ signal }) => new Promise((resolve, reject) => {
    loads.push({ signal, resolve });
    signal.addEventListener("abort", () => reject(signal.reason));
  }), OPTIONS);
  const first = new AbortController(), second = new AbortController();
  const made = [first, second].map(({ signal }) => Lazy.create({ signal }));
  first.abort(new Error("the first one gives up"));
  await assert.rejects(made[0], /the first one gives up/);
  assert.equal(loads[0].signal.aborted, false);
  second.abort(new Error("the second one gives up"));
  await assert.rejects(made[1], /the second one gives up/);
  assert.deepEqual([loads.length, loads[0].signal.aborted], [1, true]);
  assert.equal(await Lazy.availability(), "downloadable");
  const again = Lazy.create();
  loads[1].resolve(model);
  (await again).destroy();
  assert.equal(await Lazy.availability(), "available");
});

const NEVER = new Promise(() => undefined);
const CALL = { kind: "call", text: "", calls: [{ name: "wait", arguments: {} }] };

test("a tool that never ends does not hold up who gives up, and those who wait may give up", async () => {
  const fake = fakeModel([[CALL], [{ kind: "content", text: "b" }], [CALL]]);
  const waiting = { resolve: () => undefined };
  const session = await promptApi(fake).create({ tools: [{ name: "wait", description: "",
    inputSchema: { type: "object" }, execute: () => (waiting.resolve(), NEVER) }] });
  const isRunning = () => new Promise((resolve) => (waiting.resolve = resolve));
  const first = new AbortController(), second = new AbortController();
  let running = isRunning();
  const slow = session.prompt("a", { signal: first.signal });
  const behind = session.prompt("b", { signal: second.signal }), last = session.prompt("c");
  await running;
  second.abort(new Error("no patience"));
  await assert.rejects(behind, /no patience/);
  first.abort(new Error("too slow"));
  await assert.rejects(slow, /too slow/);
  assert.equal(await last, "b");
  running = isRunning();
  const lost = session.prompt("d");
  await running;
  session.destroy();
  await assert.rejects(lost, { name: "AbortError" });
});

test("a stream that is cancelled stops a model that thinks", async () => {
  let nThought = 0;
  const thought = (function* () {
    for (; nThought < 100; nThought++) yield { kind: "reasoning", text: "hm" };
  })();
  const session = await promptApi(fakeModel([thought, [{ kind: "content", text: "b" }]])).create();
  const reader = session.promptStreaming("a").getReader();
  while (nThought < 4) await setImmediate();
  await reader.cancel();
  assert.equal(await session.prompt("b"), "b");
  assert.ok(nThought < 20, `${nThought} thoughts`);
});
