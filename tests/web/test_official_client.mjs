// The official npm client of OpenAI's API, with the fetch of a model in this process; and its types
// beside those of libwick/openai: what one takes and gives, the other does.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Wick } from "../../web/dist/wick.js";
import { withTemplate } from "./fixtures.mjs";

const CLIENT = "openai@7.55.0";
const web = fileURLToPath(new URL("../../web", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "wick-"));
process.on("exit", () => rmSync(folder, { recursive: true }));
const run = (program, ...args) =>
  execFileSync(program, args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

/** Why the client is not here; undefined: it is. */
function install() {
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  try {
    run("npm", "install", "--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts", CLIENT);
  } catch (reason) {
    return `npm does not fetch ${CLIENT}: ${String(reason.stderr).split("\n")[0]}`;
  }
  symlinkSync(web, join(folder, "node_modules/libwick"));
  return undefined;
}
const skip = install();

/** Official values go to libwick/openai and the other way round, without casts. */
const USER = `
import Official from "openai";
import { OpenAI, type AnswerResponse } from "libwick/openai";
import { Wick } from "libwick";

const wick = await Wick.open({ api: true });
const api = await (await wick.load("model.gguf")).api();
export const official =
  new Official({ apiKey: "x", baseURL: "http://wick/v1", fetch: api.fetch, dangerouslyAllowBrowser: true });
const client = new OpenAI(api);

const messages: Official.Chat.ChatCompletionMessageParam[] = [{ role: "user", content: "Hi" }];
const tools: Official.Chat.ChatCompletionTool[] =
  [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];
declare const asked: Official.Chat.ChatCompletionCreateParamsNonStreaming;
declare const streamed: Official.Chat.ChatCompletionCreateParamsStreaming;
declare const completion: Official.CompletionCreateParamsNonStreaming;
declare const embedding: Official.EmbeddingCreateParams;
declare const response: Official.Responses.ResponseCreateParamsNonStreaming;

export const a: Official.Chat.ChatCompletion = await client.chat.completions.create(asked);
export const b: AsyncIterable<Official.Chat.ChatCompletionChunk> =
  await client.chat.completions.create(streamed);
export const c: Official.Completion = await client.completions.create(completion);
export const d: Official.CreateEmbeddingResponse = await client.embeddings.create(embedding);
/** Without what OpenAI's own servers alone say. */
export const e: Omit<Official.Responses.Response, "access_programs"> =
  await client.responses.create(response);
export const f: Official.Chat.ChatCompletion =
  await client.chat.completions.create({ model: "wick", messages, tools, tool_choice: "auto" });
messages.push(f.choices[0]!.message, (await client.chat.completions.create({ messages })).choices[0]!.message);
export const g: string = ((await client.responses.create({ input: "Hi" })) satisfies AnswerResponse).output_text;
// @ts-expect-error: a field that neither knows
await client.chat.completions.create({ messages, no_such_field: 1 });
`;

test("the types fit without casts", { skip }, () => {
  writeFileSync(join(folder, "user.ts"), USER);
  try {
    run(process.execPath, join(web, "node_modules/typescript/bin/tsc"), "--strict", "--noEmit",
        "--skipLibCheck", "--target", "es2022", "--lib", "es2022,dom,dom.iterable,esnext.disposable",
        "--module", "nodenext", "user.ts");
  } catch (reason) {
    assert.fail(reason.stdout);
  }
});

test("the official client", { skip }, async (t) => {
  const { default: Official } =
    await import(pathToFileURL(join(folder, "node_modules/openai/index.mjs")));
  const wick = await Wick.open({ backend: "cpu", threads: 1, api: true });
  t.after(() => wick.close());
  const model = await wick.load([withTemplate("{% for m in messages %}{{ m.content }}{% endfor %}")]);
  const { fetch } = await model.api({ name: "stories" });
  const client = new Official({ apiKey: "x", baseURL: "http://wick/v1", fetch, maxRetries: 0,
                                dangerouslyAllowBrowser: true });
  const messages = [{ role: "user", content: "Once upon a time" }];
  const common = { model: "stories", messages, max_tokens: 12 };

  await t.test("chat", async () => {
    const { choices: [{ message }] } = await client.chat.completions.create(common);
    let text = "";
    for await (const { choices } of await client.chat.completions.create({ ...common, stream: true }))
      text += choices[0]?.delta.content ?? "";
    assert.notEqual(text, "");
    assert.equal(text, message.content);
    const whole = await client.chat.completions.stream(common).finalChatCompletion();
    assert.equal(whole.choices[0].message.content, text);
  });
  await t.test("a schema and a tool", async () => {
    const schema = { type: "object", properties: { n: { type: "integer", minimum: 1, maximum: 3 } },
                     required: ["n"], additionalProperties: false };
    const parsed = await client.chat.completions.parse({ model: "stories", messages,
      response_format: { type: "json_schema", json_schema: { name: "n", strict: true, schema } } });
    assert.ok([1, 2, 3].includes(JSON.parse(parsed.choices[0].message.content).n));
    const ran = [];
    const tool = { type: "function", function: { name: "f", parameters: schema, parse: JSON.parse,
                                                 function: ({ n }) => String(ran.push(n)) } };
    await client.chat.completions.runTools({ model: "stories", messages: [{ role: "user", content: "f" }],
      tools: [tool], tool_choice: { type: "function", function: { name: "f" } } }).done();
    assert.equal(ran.length, 1);
  });
  await t.test("completions, responses, embeddings, models", async () => {
    const completion = await client.completions.create(
      { model: "stories", prompt: "Once", max_tokens: 4 });
    assert.equal(completion.usage.completion_tokens, 4);
    const response = await client.responses.create(
      { model: "stories", input: "Once", max_output_tokens: 4 });
    const stream = client.responses.stream({ model: "stories", input: "Once", max_output_tokens: 4 });
    assert.equal((await stream.finalResponse()).output_text, response.output_text);
    const { data: [{ embedding }] } = await client.embeddings.create({ model: "stories", input: "a" });
    assert.equal(embedding.length, 64);
    assert.deepEqual((await client.models.list()).data.map(({ id }) => id), ["stories"]);
  });
  await t.test("errors and abort", async () => {
    await assert.rejects(client.chat.completions.create({ model: "stories", messages: [] }),
      (error) => error instanceof Official.BadRequestError && /messages/.test(error.message));
    await assert.rejects(client.models.retrieve("none"), Official.NotFoundError);
    const stream = await client.completions.create({ model: "stories", prompt: "Once", stream: true });
    let n = 0;
    for await (const _ of stream) if (++n === 2) stream.controller.abort();
    assert.ok(n < 10);
  });
});
