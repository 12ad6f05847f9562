// Tools that the visitor defines and the search in texts: in the tab, and on the page of `wick serve`.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import test from "node:test";
import { asPlain, asSent, callsIn } from "../../web/demo/calls.js";
import { cosine, passagesOf } from "../../web/demo/passages.js";
import { startDemoServer } from "../../web/serve.mjs";
import { browsers, missing, startBrowser } from "./browser.mjs";
import { inPage, skip, startServed, textOf, withPage } from "./demo_page.mjs";
import { longOnes, stories, withTemplate } from "./fixtures.mjs";

const long = skip ?? longOnes;

const PHONE = { width: 360, height: 740 };
const ADD = { type: "function", function: { name: "add", description: "Adds two numbers.", parameters: {
  type: "object", properties: { a: { type: "integer", minimum: 0, maximum: 9 }, b: { enum: [3] } },
  required: ["a", "b"], additionalProperties: false } } };

const press = (page, name) => page.getByRole("button", { name, exact: true }).click();
const ended = (page) => page.locator(".turn.answer:not(.busy)");
const widest = (page) => page.evaluate(() => document.documentElement.scrollWidth);

/** Pastes a whole tool; code: empty, the visitor answers. */
async function addTool(page, tool, code = "") {
  await page.locator("#tools-button").click();
  await press(page, "New tool");
  await page.getByLabel("Parameters").fill(JSON.stringify(tool));
  await page.getByLabel("JavaScript").fill(code);
  await press(page, "Save tool");
  await page.getByRole("checkbox", { name: tool.function.name }).waitFor();
  await press(page, "Done");
}

async function ask(page, text) {
  await page.getByLabel("Your message").fill(text);
  await page.keyboard.press("Enter");
}

// --- The sandbox ---

test("a tool's code sees no page, no storage and no network, and has a time limit", { skip }, async () => {
  for (const start of [() => startDemoServer({ isIsolated: true }), startServed])
    await withPage(async ({ page, server }) => {
      const run = `({ runApart }, [code, given]) => runApart(code, given, new AbortController().signal)
        .then((result) => result, (reason) => "failed: " + reason.message)`;
      const tried = (code, given = {}) => inPage(page, "sandbox.js", run, [code, given]);
      assert.equal(await tried("return { sum: args.a + args.b };", { a: 1, b: 2 }), '{"sum":3}');
      assert.equal(await tried("return await Promise.resolve('text');"), "text");
      assert.equal(await tried("return typeof document + typeof localStorage;"), "undefinedundefined");
      assert.match(await tried(`await fetch("${server.base}models.json");`), /failed: TypeError/);
      assert.match(await tried(`return await import("${server.base}served.js");`), /failed: TypeError/);
      assert.match(await tried("indexedDB.open('x');"), /failed: SecurityError/);
      assert.match(await tried("throw new Error('no such city');"), /failed: Error: no such city/);
      assert.equal((await tried("throw 'x'.repeat(20_000);")).length, "failed: ".length + 16_384);
      assert.match(await tried("return (;"), /failed: .*SyntaxError/);
      assert.match(await tried("for (;;);"), /failed: the tool took longer than 5 s/);
      assert.equal(await page.locator("iframe").count(), 0);
    }, { start });
});

if (browsers.includes("firefox"))
  test("firefox: a tool's code runs apart, too", { skip: missing("firefox") }, async (t) => {
    const server = await startServed();
    t.after(server.close);
    const firefox = await startBrowser("firefox", { webgpu: false });
    t.after(firefox.close);
    const { native } = await firefox.open(server.base, () => document.querySelector("#model option"));
    const tried = (code) => native.evaluate((text) => import("./sandbox.js")
      .then(({ runApart }) => runApart(text, { a: 1 }, new AbortController().signal))
      .catch(({ message }) => `failed: ${message}`), code);
    assert.equal(await tried("return args.a + 1;"), "2");
    assert.match(await tried(`await fetch("${server.base}");`), /failed: TypeError/);
    assert.match(await tried("indexedDB.open('x');"), /failed: SecurityError/);
    assert.equal(await tried("return (;"), "failed: a syntax error");
    assert.match(await tried("for (;;);"), /failed: the tool took longer than 5 s/);
  });

test("the policies name the script of the sandbox", () => {
  const read = (path) => readFileSync(new URL(`../../web/${path}`, import.meta.url), "utf8");
  const [, written] = /const FRAME = ([^]*?);\n\/\*\*/.exec(read("demo/sandbox.js"));
  const hash = createHash("sha256").update(new Function(`return ${written}`)()).digest("base64");
  for (const path of ["demo/index.html", "demo/served.html", "serve.mjs"])
    assert.ok(read(path).includes(`'sha256-${hash}'`), `${path}: 'sha256-${hash}'`);
});

// --- Tools ---

const WRONG = [
  ["", "no JSON", /^This is not JSON/], ["get", '{"type": "objekt"}', /^Parameters are an object/],
  ["get", '{"type": "object", "required": ["a"]}', /requires 'a', which is none of its properties/],
  ["get", '{"type": "object", "properties": {"a": {"type": "text"}}}', /The type of 'a' must be one of/],
  ["get", '{"type": "object", "properties": {"a": {"items": 3}}}', /The items of 'a' must be a schema/],
  ["get", '{"type": "object", "properties": {"a": {"enum": []}}}', /"enum" of 'a' must be a list/],
];

test("tools are checked, kept, changed, switched for a chat and deleted", { skip }, async () => {
  await withPage(async ({ page }) => {
    await page.locator("#tools-button").click();
    await press(page, "New tool");
    for (const [name, text, said] of WRONG) {
      await page.getByLabel("Name").fill(name);
      await page.getByLabel("Parameters").fill(text);
      await press(page, "Save tool");
      assert.match(await page.locator("#tool-parameters-problem").textContent(), said);
      const wrong = name === "" ? "tool-name" : "tool-parameters";
      assert.equal(await page.evaluate(() => document.activeElement.id), wrong);
      assert.equal(await page.locator(`#${wrong}`).getAttribute("aria-invalid"), "true");
    }
    assert.equal(await widest(page), 360);
    await press(page, "Cancel");
    await press(page, "Done");
    await addTool(page, ADD);
    assert.equal(await page.locator("#tools-button").textContent(), "Tools · 1");
    await page.reload();
    await page.locator("#tools-button").click();
    await page.getByRole("checkbox", { name: "add" }).uncheck();
    await press(page, "Change add");
    assert.equal(await page.getByLabel("Description").inputValue(), ADD.function.description);
    await page.getByLabel("Name").fill("sum");
    await press(page, "Save tool");
    await page.getByRole("checkbox", { name: "sum" }).waitFor();
    await press(page, "Delete sum");
    assert.equal(await page.locator(".tools li").count(), 0);
  }, { start: startServed, viewport: PHONE });
});

test("the server's page: a call is answered by the tool's code, and the chat goes on", { skip }, async () => {
  await withPage(async ({ page }) => {
    await addTool(page, ADD, "return { sum: args.a + args.b };");
    const asked = [];
    await page.route("**/v1/chat/completions", (route) => {
      const body = route.request().postDataJSON();
      asked.push(structuredClone(body));
      // The small model calls nothing by itself.
      if (asked.length === 1) body.tool_choice = "required";
      else delete body.tools;
      body.max_tokens = 100;
      return route.continue({ postData: JSON.stringify(body) });
    });
    await ask(page, "Add.");
    await ended(page).nth(1).waitFor();
    const [given, result] = await page.locator(".call pre").allTextContents();
    const { a, b } = JSON.parse(given);
    assert.deepEqual(JSON.parse(result), { sum: a + b });
    assert.equal(asked[0].tools[0].function.name, "add");
    const [called, answered] = asked[1].messages.slice(-2);
    assert.deepEqual(JSON.parse(called.tool_calls[0].function.arguments), { a, b });
    assert.deepEqual([answered.role, answered.content], ["tool", JSON.stringify({ sum: a + b })]);
    await page.reload();
    await page.locator(".call").waitFor();
    assert.equal(await page.locator(".call pre").last().textContent(), result);
    await press(page, "Try again");
    await page.waitForFunction(() => document.querySelectorAll(".turn.answer:not(.busy)").length === 1);
    await page.locator("#tools-button").click();
    await page.getByRole("checkbox", { name: "add" }).uncheck();
    await press(page, "Done");
    await ask(page, "And?");
    await ended(page).nth(1).waitFor();
    assert.equal(asked.at(-1).tools, undefined);
  }, { start: () => startServed(2048) });
});

/** Deletes the chat that is answered; what the browser keeps when its answer has ended. */
async function deleteChat(page, title) {
  await page.getByRole("button", { name: "Chats" }).click();
  await press(page, `Delete ${title}`);
  await page.locator("#stop").waitFor({ state: "hidden" });
  await page.keyboard.press("Escape");
  return page.evaluate(() => JSON.parse(localStorage.getItem("wick-chats")).map(({ title }) => title));
}

test("the server's page: a chat that is deleted while a call waits stays deleted", { skip: long }, async () => {
  await withPage(async ({ page }) => {
    await page.evaluate(() => localStorage.setItem("wick-tools", '"none"'));
    await page.reload();
    await addTool(page, ADD);
    const call = { index: 0, function: { name: "add", arguments: '{"a":1,"b":3}' } };
    await page.route("**/v1/chat/completions", (route) => route.fulfill({ contentType: "text/event-stream",
      body: `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [call] } }] })}\n\n` }));
    await ask(page, "Add.");
    await page.getByLabel("Result of add").waitFor();
    assert.deepEqual(await deleteChat(page, "Add."), []);
  }, { start: startServed });
});

const CALL = { type: "object", properties: { name: { const: "add" }, arguments: { const: { a: 2, b: 3 } } },
  required: ["name", "arguments"], additionalProperties: false };
const SAYS = "{% for m in messages %}{{ m.content }}{% endfor %}";

/** Refuses tools and, as Gemma's template, system messages and questions without an answer between them. */
const GEMMA = `{% if tools %}{{ raise_exception("no tools") }}{% endif %}{% for m in messages %}
  {% if m.role != ["user", "assistant"][loop.index0 % 2] %}{{ raise_exception("roles must alternate") }}{% endif %}
  {{ m.content }}{% endfor %}`;
/** Refuses other ids than Mistral's, and questions without an answer between them. */
const MISTRAL = `{{ tools | tojson }}{% set ns = namespace(n=0) %}{% for m in messages %}
  {% if m.role != "tool" and not m.tool_calls %}
    {% if (m.role == "user") != (ns.n % 2 == 0) %}{{ raise_exception("roles must alternate") }}{% endif %}
    {% set ns.n = ns.n + 1 %}{% endif %}
  {% for c in m.tool_calls or [] %}
    {% if c.id|length != 9 %}{{ raise_exception("ids have 9 letters") }}{% endif %}{% endfor %}
  {{ m.content }}{% endfor %}`;

for (const [kind, template] of [["", GEMMA], [" with a template for tools", MISTRAL]])
  test(`in the tab${kind}: the visitor answers a call, and it is kept`, { skip }, async () => {
    await withPage(async ({ page }) => {
      const setSchema = async (text) => {
        await page.getByRole("button", { name: "Settings" }).click();
        await page.getByLabel("JSON schema").fill(text);
        await page.getByLabel("Context length").fill("2048");
        await page.getByLabel("Longest answer").fill("120");
        await page.getByLabel("Seed").fill("7");
        await press(page, "Done");
      };
      await setSchema(JSON.stringify(CALL));
      await page.locator("#file").setInputFiles(
        { name: "tales.gguf", mimeType: "", buffer: withTemplate(template) });
      await page.getByRole("heading", { name: "Ask tales" }).waitFor();
      await addTool(page, ADD);
      await ask(page, "Add.");
      const result = page.getByLabel("Result of add");
      await result.waitFor();
      assert.deepEqual(JSON.parse(await page.locator(".call pre").first().textContent()), { a: 2, b: 3 });
      assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), "Result of add");
      await setSchema(""); // what follows is a text
      await result.fill("five");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await ended(page).nth(1).waitFor();
      assert.equal(await page.locator(".call pre").last().textContent(), "five");
      assert.ok((await textOf(page)).length > 0);
      const kept = await page.evaluate(() => JSON.parse(localStorage.getItem("wick-chats"))[0].messages);
      assert.deepEqual(kept.map(({ role, calls }) => [role, calls?.[0].result]),
        [["user", undefined], ["assistant", "five"], ["assistant", undefined]]);
      await setSchema(JSON.stringify(CALL));
      await press(page, "New chat");
      await ask(page, "Again.");
      await result.waitFor();
      await page.keyboard.press("Escape");
      await ended(page).waitFor();
      assert.equal(await result.count(), 0);
      await setSchema(JSON.stringify({ const: "Yes." }));
      await ask(page, "And?");
      await ended(page).nth(1).waitFor();
      assert.equal(await textOf(page), '"Yes."');
      await setSchema(JSON.stringify(CALL));
      await ask(page, "Add.");
      await result.waitFor();
      assert.deepEqual(await deleteChat(page, "Again."), ["Add."]);
    });
  });

test("calls are read as JSON, also where their arguments are a text", () => {
  const given = { a: 1 };
  for (const call of [{ arguments: given }, { parameters: given }, { arguments: JSON.stringify(given) }])
    assert.deepEqual(callsIn(JSON.stringify({ name: "get", ...call })), [{ name: "get", given: '{"a":1}' }]);
  assert.deepEqual(callsIn('{"name": "get", "arguments": ""}'), [{ name: "get", given: "{}" }]);
  for (const text of ["[]", "get", '{"nome": "get"}', '{"name": "get", "arguments": "{"}'])
    assert.equal(callsIn(text), undefined, text);
});

test("calls are sent with ids of nine digits, and a question comes after an answer", () => {
  const call = { name: "get", given: '{"a":1}', result: "2" };
  const messages = [{ role: "user", content: "A?" }, { role: "assistant", content: "", calls: [call, call] },
    { role: "assistant", content: "", calls: [call] }, { role: "user", content: "B?" },
    { role: "user", content: "C?" }];
  const sent = asSent(messages);
  assert.deepEqual(sent.map(({ role }) => role), ["user", "assistant", "tool", "tool", "assistant", "tool",
    "assistant", "user", "assistant", "user"]);
  const ids = sent.flatMap(({ tool_calls = [] }) => tool_calls).map(({ id }) => id);
  assert.deepEqual(ids, ["000000000", "000000001", "000000002"]);
  assert.deepEqual(sent.flatMap(({ tool_call_id: id }) => id ?? []), ids);
  assert.equal(sent[1].tool_calls[0].function.arguments, '{"a":1}');
  assert.deepEqual(asSent(messages, true)[1].tool_calls[0].function.arguments, { a: 1 });
  assert.deepEqual(asPlain(messages).map(({ role }) => role),
    ["user", "assistant", "user", "assistant", "user", "assistant", "user", "assistant", "user"]);
});

test("calls that come as spans become cards, and those that are no calls stay text", { skip }, async () => {
  await withPage(async ({ page }) => {
    const show = `({ AnswerView }, [spans, takesCalls]) => {
      const view = new AnswerView(undefined, () => undefined);
      view.takesCalls = takesCalls;
      view.add({ text: "raw", spans });
      view.takeTextAsCalls(["get"]);
      view.finish("", "");
      return [view.content, view.calls.map(({ name, given }) => name + given),
        view.element.querySelectorAll(".call").length, view.hasUnreadCall];
    }`;
    const content = (text) => ({ kind: "content", text });
    const call = (text, ...calls) => ({ kind: "call", tag: "<tool_call>", text,
      ...(calls.length > 0 && { calls: calls.map((name) => ({ name, arguments: { a: 1 } })) }) });
    const shown = (...given) => inPage(page, "turn.ts", show, given);
    assert.deepEqual(await shown([content("I look."), call("<function=get>", "get")], true),
      ["I look.", ['get{"a":1}'], 1, false]);
    assert.deepEqual(await shown([call("[]", "get", "put")], true),
      ["", ['get{"a":1}', 'put{"a":1}'], 2, false]);
    assert.deepEqual(await shown([call('{"name": "get"}', "get")], false),
      ['<tool_call>{"name": "get"}', [], 0, false]);
    assert.deepEqual(await shown([call("get(1)")], true), ["<tool_call>get(1)", [], 0, true]);
    assert.deepEqual(await shown([content('{"name": "get"}')], true), ["", ["get{}"], 1, false]);
    assert.deepEqual(await shown([content('{"name": "Tom"}')], true), ['{"name": "Tom"}', [], 0, false]);
  });
});

// --- The search ---

const TEXTS = ["The cat sleeps on the red sofa.", "Paris is the capital of France.", "Water boils."];

async function search(page, texts, question) {
  await page.getByRole("textbox", { name: "Texts" }).fill(texts);
  await page.getByLabel("Question").fill(question);
  await page.keyboard.press("Enter");
}

/** Finds a passage by itself, and puts it into the chat. */
async function findPassage(page) {
  await search(page, TEXTS.join("\n\n"), TEXTS[1]);
  const found = page.locator(".passages li");
  await found.nth(2).waitFor();
  assert.equal(await found.first().textContent(), `1.000${TEXTS[1]}`);
  assert.match(await page.locator("#search .hint").first().textContent(), /3 passages/);
  for (const other of [1, 2]) await found.nth(other).getByRole("checkbox").uncheck();
  assert.equal(await widest(page), 360);
  await press(page, "Put into the chat");
  assert.equal(await page.locator("#prompt").inputValue(),
    `Answer from these passages:\n\n[1] ${TEXTS[1]}\n\n${TEXTS[1]}\n\nTyped before.`);
  assert.equal(await page.evaluate(() => document.activeElement.id), "prompt");
}

test("the server's page: passages are found by its embeddings", { skip }, async () => {
  await withPage(async ({ page, complaints }) => {
    await page.locator("#prompt").fill("Typed before.");
    await page.locator("#search-button").click();
    await search(page, "", "x");
    assert.match(await page.locator("#search-texts-problem").textContent(), /no text to search/);
    await findPassage(page);
    await page.route("**/v1/embeddings", (route) => route.fulfill({ status: 501,
      json: { error: { message: "this server has no embeddings" } } }));
    await page.locator("#search-button").click();
    await search(page, "Another text.", "x");
    await page.locator("#search .notice", { hasText: "This server has no embeddings. Not every model" }).waitFor();
    assert.match(complaints.pop(), /status of 501/);
  }, { start: startServed, viewport: PHONE });
});

test("the server's page: another model for the search begins it again", { skip: long }, async () => {
  await withPage(async ({ page }) => {
    const asked = [];
    await page.route("**/v1/models", (route) => route.fulfill({ json: { data: [{ id: "a" }, { id: "b" }] } }));
    await page.route("**/v1/embeddings", async (route) => {
      const { model, input } = route.request().postDataJSON();
      asked.push([model, input.length]);
      if (asked.length === 1) await page.getByLabel("Model for embeddings").selectOption("b");
      return route.fulfill({ json: { data: input.map(() => ({ embedding: model === "a" ? [1] : [1, 2] })) } });
    });
    await page.reload();
    await page.getByRole("heading", { name: "Ask a" }).waitFor();
    await page.locator("#search-button").click();
    await search(page, Array.from({ length: 20 }, (_, i) => `Text ${i}.`).join("\n\n"), "x");
    await page.locator(".passages li").first().waitFor();
    assert.deepEqual(asked, [["a", 16], ["b", 16], ["b", 5]]);
  }, { start: startServed });
});

test("in the tab: passages of files are found by a model from a file", { skip: long }, async () => {
  await withPage(async ({ page }) => {
    await page.getByRole("button", { name: "Tiny stories" }).click();
    await page.locator("#suggestions .chip").first().waitFor();
    assert.ok(await page.locator("#tools-button").isHidden());
    await page.locator("#prompt").fill("Typed before.");
    await page.locator("#search-button").click();
    await search(page, "text", "x");
    await page.locator("#search .notice", { hasText: "There is no model for embeddings yet" }).waitFor();
    await page.locator("#search-model-file").setInputFiles(
      { name: "notes.gguf", mimeType: "", buffer: Buffer.from("no model") });
    await page.locator("#search-model-problem", { hasText: "Wick reads GGUF files" }).waitFor();
    const file = new URL(`../../${stories.path}`, import.meta.url);
    await page.locator("#search-model-file").setInputFiles(
      { name: "stories.gguf", mimeType: "", buffer: readFileSync(file) });
    await page.getByText("Vectors by stories.gguf.").waitFor();
    await page.locator("#search-file").setInputFiles(
      { name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("first\n\nsecond\n") });
    await page.locator("#search .hint", { hasText: "3 passages" }).waitFor();
    await page.locator("#search").evaluate((sheet) => {
      const dataTransfer = new DataTransfer();
      for (const [text, name] of [["third\n", "b.txt"], ["\0", "c.bin"]])
        dataTransfer.items.add(new File([text], name));
      for (const type of ["dragenter", "drop"])
        sheet.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }));
    });
    await page.locator("#search .hint", { hasText: "4 passages" }).waitFor();
    assert.equal(await page.locator("#search-texts-problem").textContent(), "c.bin is not a text, or is too long.");
    assert.ok(await page.locator("#drop-veil").isHidden());
    assert.equal(await page.locator("#prompt").inputValue(), "Typed before.");
    await findPassage(page);
    await page.locator("#search-button").click();
    await press(page, "Use the chat's model");
    await search(page, "One.\n\nTwo.", "Two.");
    await page.locator(".passages li").filter({ hasText: "1.000Two." }).waitFor();
  }, { viewport: PHONE });
});

test("long paragraphs are cut after sentences, and equal ones are one", () => {
  const sentence = `${"word ".repeat(60)}end.`, japanese = `${"語".repeat(99)}。`;
  assert.deepEqual(passagesOf("a\n\na\n \nb"), ["a", "b"]);
  assert.deepEqual(passagesOf(Array(6).fill(sentence).join(" ")), [`${sentence} ${sentence}`]);
  assert.deepEqual(passagesOf("x".repeat(1700)).map(({ length }) => length), [800, 100]);
  assert.deepEqual(passagesOf(`${japanese.repeat(2)}${"字".repeat(199)}。${japanese}`),
    [japanese.repeat(2), `${"字".repeat(199)}。${japanese}`]);
  assert.deepEqual(passagesOf("字".repeat(310)).map(({ length }) => length), [300, 10]);
  assert.equal(passagesOf("word ".repeat(2_000_000)).length, 1);
  assert.deepEqual(passagesOf(" \n "), []);
});

test("the cosine of vectors is that of their angle", () => {
  assert.deepEqual([cosine([1, 2], [2, 4]), cosine([1, 0], [0, 3]), cosine([0, 0], [1, 1])]
    .map((x) => Number(x.toFixed(6))), [1, 0, 0]);
});

// --- Several models ---

test("the server's page: a model of several is chosen, loaded and unloaded", { skip: long }, async () => {
  await withPage(async ({ page }) => {
    const states = { first: "unloaded", tales: "loaded" };
    await page.route("**/v1/models", (route) => route.fulfill({ json: { data: Object.entries(states)
      .map(([id, value]) => ({ id, status: { value } })) } }));
    await page.route("**/models/*load", (route) => {
      const isLoad = route.request().url().endsWith("/load");
      const { model } = route.request().postDataJSON();
      states[model] = isLoad ? "loading" : "unloaded";
      if (isLoad) setTimeout(() => { states[model] = model === "first" ? "loaded" : "unloaded"; }, 400);
      return route.fulfill({ json: { success: true } });
    });
    await page.reload();
    await page.getByRole("heading", { name: "Ask first" }).waitFor();
    const options = page.locator("#model option");
    assert.deepEqual(await options.allTextContents(), ["first", "tales (loaded)"]);
    await press(page, "Load first");
    await page.getByRole("button", { name: "Unload first" }).waitFor();
    await page.getByLabel("Model", { exact: true }).selectOption("tales");
    await page.getByRole("heading", { name: "Ask tales" }).waitFor();
    assert.deepEqual(await options.allTextContents(), ["first (loaded)", "tales"]);
    await press(page, "Unload tales");
    await press(page, "Load tales");
    await page.locator("#figures", { hasText: "The server cannot load tales" }).waitFor();
    assert.equal(await widest(page), 360);
    await page.reload();
    await page.getByRole("heading", { name: "Ask tales" }).waitFor();
    await ask(page, "Once");
    await ended(page).waitFor();
    assert.ok((await textOf(page)).length > 10);
  }, { start: startServed, viewport: PHONE });
});
