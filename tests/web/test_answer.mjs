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
    const model = await wick.load([withTemplate(template)]);
    await body(await model.session(), model);
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
      .spans, [{ kind: "call", text: json, tag: "", calls: [{ name: "f", arguments: {} }] }]);
  }));

test("calls are read in the form of the model's family, by the schemas of the tools", () =>
  withSession(TEMPLATE, async (session) => {
    const text = "<function=f><parameter=a>12</parameter><parameter=b>12</parameter></function>";
    const properties = { a: { anyOf: [{ type: "string" }, { type: "null" }] }, b: { type: "integer" } };
    const tool = { ...call, function: { name: "f", parameters: { type: "object", properties } } };
    const options = { tools: [tool], ...writes(`<tool_call>${text}</tool_call>`) };
    assert.deepEqual((await collect(session.chat(messages, options))).spans, [{ kind: "call", text,
      tag: "<tool_call>", calls: [{ name: "f", arguments: { a: "12", b: 12 } }] }]);
    const list = "<|tool_call_start|>[f(a='x'), f()]<|tool_call_end|>";
    assert.deepEqual((await collect(session.chat(messages, { tools: [tool], ...writes(list) }))).spans,
      [{ kind: "call", text: "[f(a='x'), f()]", tag: "<|tool_call_start|>",
        calls: [{ name: "f", arguments: { a: "x" } }, { name: "f", arguments: {} }] }]);
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

// ---- Conversations that are longer than the context ----

/** Each message is written as it is, between begin and end. */
const SAYS = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";

const say = (role, content) => ({ role, content });

test("the oldest turns are left out where the context is full", () =>
  withSession(SAYS, async (_, model) => {
    const session = await model.session({ contextLength: 128, maxTokens: 20, temperature: 0 });
    const talk = [say("system", "Be kind.")];
    const leftOut = [];
    for (let i = 0; i < 8; i++) {
      talk.push(say("user", `Question ${i}?`));
      const answer = session.chat(talk);
      talk.push(say("assistant", await answer.text()));
      leftOut.push(answer.leftOut);
      // As few turns as it takes, and whole ones.
      const seen = talk.slice(0, -1).toSpliced(1, answer.leftOut);
      assert.equal(seen[1].role, "user");
      assert.ok((await model.chatTokens(seen)).length <= 128 - 20);
      if (answer.leftOut > 0) {
        const one = talk.slice(0, -1).toSpliced(1, answer.leftOut - 2);
        assert.ok((await model.chatTokens(one)).length > 128 - 20);
      }
    }
    assert.equal(leftOut[0], 0);
    assert.ok(leftOut.at(-1) > leftOut[4] && leftOut[4] > 0, String(leftOut));
    await assert.rejects(session.chat([say("user", "word ".repeat(200))]).text(),
                         { code: "STATE", message: /^this message takes \d+ tokens .* 128, / });
    assert.notEqual(await session.chat([say("user", "Hi")]).text(), "");
  }));

test("what the template or chat refuses", () =>
  withSession("{{ raise_exception('only roses') }}", async (session) => {
    await assert.rejects(session.chat(messages).text(),
      { code: "VALUE", message: "the chat template refuses this: only roses" });
    assert.throws(() => session.chat(messages, { tools: [1] }),
                  { code: "VALUE", message: /'tools' must be an array of objects/ });
  }));

test("parts of texts, halves of characters and messages without a role", () =>
  withSession(SAYS, async (session, model) => {
    const tokens = async (content) => model.detokenize(await model.chatTokens([say("user", content)]));
    const parts = [{ type: "text", text: "one" }, { type: "text", text: "two" }];
    assert.equal(await tokens(parts), await tokens("one\ntwo"));
    for (const other of [{ type: "image_url" }, { type: "image_url", text: "two" }])
      assert.notEqual(await tokens([parts[0], other]), await tokens("one\ntwo"));
    assert.equal(await tokens("half \ud83d"), await tokens("half \ufffd"));
    for (const message of [{ content: "x" }, { role: 1, content: "x" }, null])
      await assert.rejects(session.chat([say("user", "Hi"), message]).text(),
        { code: "ARGUMENT", message: /^the role of messages\[1\] must be a text, not/ });
  }));

test("a conversation without messages", () => withSession(TEMPLATE, (session) =>
  assert.rejects(session.chat([]).text(), { code: "STATE", message: /no message/ })));
