// The APIs of a model in this process, as a fetch without a network, and libwick/openai with it.
import assert from "node:assert/strict";
import test from "node:test";
import { OpenAI } from "../../web/dist/openai.js";
import { Wick } from "../../web/dist/wick.js";
import { Wick as CpuWick } from "../../web/dist/cpu.js";
import { withTemplate } from "./fixtures.mjs";

const TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}";
const messages = [{ role: "user", content: "Once upon a time" }];

const wick = await Wick.open({ backend: "cpu", threads: 1, api: true });
test.after(() => wick.close());
const model = await wick.load([withTemplate(TEMPLATE)]);
const api = await model.api({ name: "stories", contextLength: 512 });
const client = new OpenAI(api);

const collect = async (stream) => {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
};

test("a conversation is answered, whole and as a stream", async () => {
  const request = { messages, max_tokens: 12, logprobs: true, top_logprobs: 2 };
  const { choices: [whole], usage, object } = await client.chat.completions.create(request);
  assert.equal(object, "chat.completion");
  assert.equal(whole.finish_reason, "length");
  assert.equal(whole.logprobs.content.length, 12);
  assert.equal(usage.completion_tokens, 12);
  const chunks = await collect(await client.chat.completions.create(
    { ...request, stream: true, stream_options: { include_usage: true } }));
  const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
  assert.equal(text, whole.message.content);
  assert.equal(chunks.at(-2).choices[0].finish_reason, "length");
  assert.equal(chunks.at(-1).usage.total_tokens, usage.total_tokens);
});

test("it is what a session generates", async () => {
  const session = await model.session({ maxTokens: 20 });
  const wanted = await session.generate("Once upon a time").text();
  await session.close();
  const { choices } = await client.completions.create(
    { prompt: "Once upon a time", max_tokens: 20 });
  assert.equal(choices[0].text, wanted);
  const stopped = await client.completions.create(
    { prompt: "Once upon a time", max_tokens: 20, stop: wanted.slice(5, 8) });
  assert.equal(stopped.choices[0].text, wanted.slice(0, wanted.indexOf(wanted.slice(5, 8))));
  const drawn = (seed) => client.completions.create(
    { prompt: "Once", max_tokens: 20, temperature: 1, seed }).then((it) => it.choices[0].text);
  assert.equal(await drawn(5), await drawn(5));
  assert.notEqual(await drawn(5), await drawn(6));
});

test("schemas and tools hold", async () => {
  const schema = { type: "object", properties: { color: { enum: ["red", "blue"] } },
                   required: ["color"], additionalProperties: false };
  const { choices: [{ message }] } = await client.chat.completions.create({ messages,
    response_format: { type: "json_schema", json_schema: { name: "c", schema } } });
  assert.ok(["red", "blue"].includes(JSON.parse(message.content).color));
  const tools = [{ type: "function", function: { name: "paint", parameters: schema } }];
  const { choices: [choice] } =
    await client.chat.completions.create({ messages, tools, tool_choice: "required" });
  assert.equal(choice.finish_reason, "tool_calls");
  const [call] = choice.message.tool_calls;
  assert.equal(call.function.name, "paint");
  assert.ok(["red", "blue"].includes(JSON.parse(call.function.arguments).color));
});

test("responses, embeddings and models", async () => {
  const whole = await client.responses.create({ input: "Once upon a time", max_output_tokens: 8 });
  assert.equal(whole.output_text, whole.output[0].content[0].text);
  assert.equal(whole.incomplete_details.reason, "max_output_tokens");
  const events = await collect(await client.responses.create(
    { input: "Once upon a time", max_output_tokens: 8, stream: true }));
  assert.equal(events[0].type, "response.created");
  assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
  const deltas = events.filter(({ type }) => type === "response.output_text.delta");
  assert.equal(deltas.map(({ delta }) => delta).join(""), whole.output_text);
  const { data } = await client.embeddings.create({ input: ["a", "b"] });
  const [vector] = await model.embed(["a"]);
  assert.equal(data.length, 2);
  assert.ok(data[0].embedding.every((x, i) => Math.abs(x - vector[i]) < 1e-6));
  assert.deepEqual((await client.models.list()).data.map(({ id }) => id), ["stories"]);
});

test("requests at once are not mixed up", async () => {
  const prompts = ["Once", "The dog", "A girl", "In the", "One day", "Tim"];
  const ask = (prompt) => client.completions.create({ prompt, max_tokens: 16 })
    .then(({ choices }) => choices[0].text);
  const alone = [];
  for (const prompt of prompts) alone.push(await ask(prompt));
  assert.deepEqual(await Promise.all(prompts.map(ask)), alone);
});

test("what is wrong has the API's own status and sentence", async () => {
  await assert.rejects(client.chat.completions.create({ messages: [] }),
    { name: "APIError", status: 400, message: /messages must be an array/ });
  await assert.rejects(client.completions.create({ prompt: "x".repeat(2000) }),
    ({ status, error }) => status === 400 && error.type === "exceed_context_size_error");
  assert.equal((await api.fetch("http://wick/nothing")).status, 404);
  assert.equal((await api.fetch(new Request("http://wick/health"))).status, 200);
  const small = await model.api({ parallel: 1, maxQueue: 0 });
  await small.close();
  await assert.rejects(small.fetch("http://wick/health"), { code: "STATE" });
  await assert.rejects(Wick.open({ api: true, tensors: true }), { code: "ARGUMENT" });
});

test("a request that is given up frees its place", async () => {
  const one = new OpenAI(await model.api({ parallel: 1, ignoreEnd: true, contextLength: 512 }));
  const endless = { prompt: "Once", stream: true };
  const controller = new AbortController();
  const stream = await one.completions.create(endless, { signal: controller.signal });
  await assert.rejects(async () => {
    for await (const _ of stream) controller.abort();
  }, { name: "AbortError" });
  for await (const _ of await one.completions.create(endless)) break;
  const late = new AbortController();
  const waits = one.completions.create({ prompt: "Once" }, { signal: late.signal });
  setTimeout(() => late.abort(), 5);
  await assert.rejects(waits, { name: "AbortError" });
  await assert.rejects(one.completions.create(endless, { signal: AbortSignal.abort() }),
                       { name: "AbortError" });
  const { choices } = await one.completions.create({ prompt: "Once", max_tokens: 3 });
  assert.equal(choices[0].finish_reason, "length");
});

test("a model that is closed ends its answers; other engines say what they lack", async () => {
  const cpu = await CpuWick.open({ threads: 1, api: true });
  const other = await cpu.load([withTemplate(TEMPLATE)]);
  const its = new OpenAI(await other.api({ ignoreEnd: true }));
  const stream = await its.completions.create({ prompt: "Once", stream: true });
  await assert.rejects(async () => {
    for await (const _ of stream) void other.close();
  }, { code: "STATE" });
  await cpu.close();
  const plain = await CpuWick.open({ threads: 1 });
  const text = await plain.load([withTemplate(TEMPLATE)]);
  await assert.rejects(text.api(), { code: "UNSUPPORTED", message: /api: true/ });
  await plain.close();
});
