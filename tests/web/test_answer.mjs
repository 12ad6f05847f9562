// An answer of a chat comes as content, reasoning and calls. A grammar says what the model writes.
import assert from "node:assert/strict";
import test from "node:test";
import { Wick } from "../../web/dist/wick.js";
import { withTemplate } from "./fixtures.mjs";

const messages = [{ role: "user", content: "Once upon a time" }];
const TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}";

async function withSession(template, body) {
  const wick = await Wick.open({ backend: "cpu", threads: 1 });
  try {
    await body(await (await wick.load([withTemplate(template)])).session());
  } finally {
    await wick.close();
  }
}

const writes = (text) => ({ grammar: `root ::= ${JSON.stringify(text)}` });

/** All text, and the spans with what goes on joined. */
async function collect(generation) {
  const spans = [];
  let all = "";
  for await (const token of generation) {
    all += token.text;
    for (const span of token.spans) {
      assert.notEqual(span.text, "");
      const last = spans.at(-1);
      if (span.kind !== "call" && last?.kind === span.kind) last.text += span.text;
      else spans.push({ ...span });
    }
  }
  return { all, spans };
}

const call = { type: "function", function: { name: "f", parameters: {} } };

test("reasoning and calls are apart from the content", () =>
  withSession(TEMPLATE, async (session) => {
    const text = "<think>hm, 1 < 2</think>Yes <this>.<tool_call>{}</tool_call>[TOOL";
    assert.deepEqual(await collect(session.chat(messages, writes(text))), { all: text, spans: [
      { kind: "reasoning", text: "hm, 1 < 2" }, { kind: "content", text: "Yes <this>." },
      { kind: "call", text: "{}", tag: "<tool_call>" }, { kind: "content", text: "[TOOL" },
    ] });
    // The next answer begins anew.
    assert.deepEqual((await collect(session.chat(messages, writes("a</think>")))).spans,
                     [{ kind: "content", text: "a</think>" }]);
  }));

test("with tools, an answer that is JSON is a call", () =>
  withSession(TEMPLATE, async (session) => {
    const json = '{"name": "f"}';
    assert.deepEqual((await collect(session.chat(messages, writes(json)))).spans,
                     [{ kind: "content", text: json }]);
    assert.deepEqual((await collect(session.chat(messages, { tools: [call], ...writes(json) })))
      .spans, [{ kind: "call", text: json, tag: "" }]);
  }));

test("the prompt may have opened the thinking", () =>
  withSession(`${TEMPLATE}<think>\n`, async (session) => {
    assert.deepEqual((await collect(session.chat(messages, writes("hm</think>Yes")))).spans,
                     [{ kind: "reasoning", text: "hm" }, { kind: "content", text: "Yes" }]);
  }));

test("a text that goes on has no spans", () => withSession(TEMPLATE, async (session) => {
  for await (const token of session.chat(messages, { maxTokens: 2 })) assert.ok(token.spans);
  for await (const token of session.generate(" a", { maxTokens: 2 }))
    assert.equal(token.spans, undefined);
}));
