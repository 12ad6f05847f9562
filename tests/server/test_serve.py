"""wick serve as clients meet it: answers, streams, refusals, clients that go away.

The environment is that of ../cli/command.py."""

import base64
import calendar
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))

from command import (  # noqa: E402, F401
    DATA, GREEDY, MODEL, TIMEOUT, equal, fails, main, start, succeeds, wick)
from reranker import write_reranker  # noqa: E402

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
USER = {"messages": [{"role": "user", "content": "Once upon a time"}], "temperature": 0,
        "max_tokens": 16}
TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "parameters": {
        "type": "object", "required": ["days"], "additionalProperties": False,
        "properties": {"days": {"type": "integer", "minimum": 1, "maximum": 9}}}}}]


class Server:
    """One that listens at a free port, until the end of a with block."""

    scheme = "http"

    def __init__(self, *options, model=MODEL):
        one = [model, "--alias", "tales"] if model else []
        self.process = start("serve", *one, "--port", 0, "-t", 1, *options)
        lines = iter(self.process.stderr.readline, b"")
        line = next((one for one in lines if not one.startswith(b"wick: warning")), b"").decode()
        assert line.startswith(f"Listening at {self.scheme}://127.0.0.1:"), line
        self.port = int(line.split(",")[0].rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)

    def ask(self, path, body=None, method=None, headers=None):
        """The status, the headers and the body, parsed where it is JSON."""
        connection = self.connect()
        content = json.dumps(body) if isinstance(body, (dict, list)) else body
        connection.request(method or ("GET" if body is None else "POST"), path, content,
                           headers or {})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        is_json = answer.headers.get_content_type() == "application/json" and text
        return answer.status, answer.headers, json.loads(text) if is_json else text

    def get(self, path, body=None, **options):
        status, _, content = self.ask(path, body, **options)
        assert status == 200, (status, content)
        return content

    def refuses(self, status, *words, path=CHAT, body=None, **options):
        got, headers, content = self.ask(path, body, **options)
        equal(got, status)
        equal(sorted(content), ["error"])
        error = content["error"]
        equal(error["code"], status)
        for word in words:
            assert word in error["message"], error
        return error

    def named_events(self, path, body):
        """The events of a stream whose events have types."""
        connection = self.connect()
        connection.request("POST", path, json.dumps({**body, "stream": True}))
        answer = connection.getresponse()
        equal(answer.status, 200)
        events = answer.read().decode()[:-2].split("\n\n")
        connection.close()
        made = []
        for event in events:
            kind, data = event.split("\n")
            made.append(json.loads(data.removeprefix("data: ")))
            equal(kind, "event: " + made[-1]["type"])
        return made

    def events(self, path, body):
        """The events of a stream, the last one [DONE]."""
        connection = self.connect()
        connection.request("POST", path, json.dumps({**body, "stream": True}))
        answer = connection.getresponse()
        equal(answer.status, 200)
        equal(answer.headers.get_content_type(), "text/event-stream")
        text = answer.read().decode()
        connection.close()
        assert text.endswith("\n\n"), text[-40:]
        events = text[:-2].split("\n\n")
        assert all(event.startswith("data: ") for event in events), events
        equal(events[-1], "data: [DONE]")
        return [json.loads(event[6:]) for event in events[:-1]]


def text_of(answer):
    return answer["choices"][0]["message"]["content"]


# ---- What it says of itself ----

def test_health_and_models():
    with Server() as server:
        equal(server.get("/health"), {"status": "ok"})
        models = server.get("/v1/models")
        equal([m["id"] for m in models["data"]], ["tales"])
        equal(models["data"][0]["meta"]["n_vocab"], 512)
        equal(server.get("/v1/models/tales")["object"], "model")
        server.refuses(404, "no model", path="/v1/models/other")
        server.refuses(404, "nothing at this path", path="/v1/none")
        equal(server.ask("/v1/messages/batches", {})[2]["type"], "error")  # as Anthropic has it
        server.refuses(405, "method", path="/v1/models", method="DELETE")
        for path, methods in (("/v1/models", "GET, HEAD, OPTIONS"), (CHAT, "OPTIONS, POST"),
                              ("/lora-adapters", "GET, HEAD, OPTIONS, POST")):
            equal(server.ask(path, method="PUT")[1]["Allow"], methods)
        equal(server.get("/props")["total_slots"], 4)
        status, headers, body = server.ask("/v1/models", method="HEAD")
        equal((status, body), (200, b""))


def test_tokens():
    with Server() as server:
        ids = server.get("/tokenize", {"content": GREEDY["prompt"], "add_special": True})["tokens"]
        equal(ids, GREEDY["prompt_tokens"] if "prompt_tokens" in GREEDY else ids)
        assert len(ids) > 3
        text = server.get("/detokenize", {"tokens": ids[1:]})["content"]
        equal(text.strip(), GREEDY["prompt"])
        pieces = server.get("/tokenize", {"content": "a b", "with_pieces": True})["tokens"]
        assert all(sorted(p) == ["id", "piece"] for p in pieces), pieces
        odd = server.get("/tokenize", {"content": "a\U00013000", "with_pieces": True})["tokens"]
        equal([p["piece"] for p in odd][-4:], [[byte] for byte in "\U00013000".encode()])
        server.refuses(400, "vocabulary", path="/detokenize", body={"tokens": [100000]})
        prompt = server.get("/apply-template", {"messages": USER["messages"]})["prompt"]
        assert prompt.startswith("<|im_start|>user\nOnce upon a time"), prompt
        without = server.get("/apply-template", {"messages": USER["messages"],
                                                 "add_generation_prompt": False})["prompt"]
        equal(without + "<|im_start|>assistant\n", prompt)


def test_local_date():
    """Templates show the date where the server is, east and west of UTC."""
    form = "%Y-%m-%d %H:%M"
    for zone, minutes in (("WICK-13:45", 13 * 60 + 45), ("WICK11", -11 * 60), ("UTC", 0)):
        os.environ["TZ"] = zone
        try:
            with Server("--chat-template", "{{ strftime_now('" + form + "') }}") as server:
                def now():
                    there = timezone(timedelta(minutes=minutes))
                    return datetime.now(there).strftime(form)
                before = now()
                told = server.get("/apply-template", {"messages": USER["messages"]})["prompt"]
                assert told in (before, now()), (told, before)
        finally:
            del os.environ["TZ"]


# ---- Answers ----

def test_chat():
    with Server() as server:
        answer = server.get(CHAT, USER)
        equal(answer["object"], "chat.completion")
        equal(answer["model"], "tales")
        equal(answer["choices"][0]["finish_reason"], "length")
        usage = answer["usage"]
        equal(usage["completion_tokens"], 16)
        equal(usage["total_tokens"], usage["prompt_tokens"] + 16)
        again = server.get(CHAT, USER)
        equal(text_of(again), text_of(answer))
        assert again["id"] != answer["id"]
        assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


def test_streams():
    with Server() as server:
        whole = server.get(CHAT, USER)
        events = server.events(CHAT, {**USER, "stream_options": {"include_usage": True}})
        equal({e["object"] for e in events}, {"chat.completion.chunk"})
        equal(len({e["id"] for e in events}), 1)
        deltas = [c for e in events for c in e["choices"]]
        equal(deltas[0]["delta"]["role"], "assistant")
        equal("".join(d["delta"].get("content") or "" for d in deltas), text_of(whole))
        equal([d["finish_reason"] for d in deltas if d["finish_reason"]], ["length"])
        equal(events[-1]["choices"], [])
        equal(events[-1]["usage"]["completion_tokens"], 16)


def test_completions():
    with Server() as server:
        body = {"prompt": GREEDY["prompt"], "temperature": 0, "max_tokens": 32}
        answer = server.get(TEXT, body)
        expected = GREEDY["text"][len(GREEDY["prompt"]):]
        assert expected.startswith(answer["choices"][0]["text"]), answer
        ids = server.get("/tokenize", {"content": GREEDY["prompt"], "add_special": True})["tokens"]
        equal(server.get(TEXT, {**body, "prompt": ids})["choices"][0]["text"],
              answer["choices"][0]["text"])
        several = server.get(TEXT, {**body, "prompt": [GREEDY["prompt"], "One day"], "n": 2})
        equal([c["index"] for c in several["choices"]], [0, 1, 2, 3])
        equal(several["choices"][0]["text"], answer["choices"][0]["text"])
        equal(several["choices"][2]["text"], several["choices"][3]["text"])
        streamed = server.events(TEXT, body)
        equal("".join(c["text"] for e in streamed for c in e["choices"]),
              answer["choices"][0]["text"])
        echoed = GREEDY["prompt"] + answer["choices"][0]["text"]
        equal(server.get(TEXT, {**body, "echo": True})["choices"][0]["text"], echoed)
        equal("".join(c["text"] for e in server.events(TEXT, {**body, "echo": True})
                      for c in e["choices"]), echoed)
        none = server.get(TEXT, {**body, "prompt": ids, "max_tokens": 0, "echo": True})
        equal(none["choices"][0]["text"].strip(), GREEDY["prompt"])
        equal(none["usage"]["completion_tokens"], 0)


def test_more_texts_than_places():
    with Server("--parallel", 2) as server:
        body = {"prompt": ["One day", "Once"], "max_tokens": 20, "n": 4, "temperature": 0}
        one = server.get(TEXT, {**body, "prompt": "Once", "n": 1})["choices"][0]["text"]
        got = []
        thread = threading.Thread(target=lambda: got.append(server.get(TEXT, body)))
        thread.start()
        while thread.is_alive():
            equal(len(server.get("/slots")), 2)
        thread.join()
        equal([c["text"] for c in got[0]["choices"][4:]], [one] * 4)
        server.refuses(400, "128", path=TEXT, body={**body, "n": 100})


def test_stop_and_logprobs():
    with Server() as server:
        plain = text_of(server.get(CHAT, USER))
        word = plain.split()[2]
        answer = server.get(CHAT, {**USER, "stop": [word]})
        equal(answer["choices"][0]["finish_reason"], "stop")
        equal(text_of(answer), plain[:plain.index(word)])
        answer = server.get(CHAT, {**USER, "logprobs": True, "top_logprobs": 3})
        tokens = answer["choices"][0]["logprobs"]["content"]
        equal(len(tokens), 16)
        for token in tokens:
            equal(len(token["top_logprobs"]), 3)
            equal(token["token"], token["top_logprobs"][0]["token"])
            assert token["logprob"] <= 0
            equal(bytes(token["bytes"]).decode(errors="replace"), token["token"])


def test_logprobs_of_other_apis():
    """They are those of a chat, whole and in the parts of a stream."""
    with Server() as server:
        wanted = {"logprobs": True, "top_logprobs": 2}
        chat = server.get(CHAT, {**USER, **wanted, "max_tokens": 6})["choices"][0]
        chat = chat["logprobs"]["content"]
        equal(len(chat), 6)

        def same(got):
            equal([(t["token"], t["bytes"], len(t["top_logprobs"])) for t in got],
                  [(t["token"], t["bytes"], 2) for t in chat])
        asked = {**ASKED, "max_output_tokens": 6, "top_logprobs": 2,
                 "include": ["message.output_text.logprobs"]}
        same(server.get("/v1/responses", asked)["output"][0]["content"][0]["logprobs"])
        events = server.named_events("/v1/responses", asked)
        kind = "response.output_text."
        same([t for e in events if e["type"] == kind + "delta" for t in e["logprobs"]])
        same(*[e["logprobs"] for e in events if e["type"] == kind + "done"])
        same(events[-1]["response"]["output"][0]["content"][0]["logprobs"])
        equal(server.get("/v1/responses", ASKED)["output"][0]["content"][0]["logprobs"], [])
        options = {**wanted, "options": {"temperature": 0, "num_predict": 6}}
        for path, body in (("/api/chat", {"messages": USER["messages"]}),
                           ("/api/generate", {"prompt": USER["messages"][0]["content"]})):
            same(server.get(path, {**body, **options, "stream": False})["logprobs"])
            lines = lines_of(server, path, {**body, **options})
            same([t for line in lines for t in line.get("logprobs", [])])


def test_seeds():
    with Server() as server:
        body = {**USER, "temperature": 1.5, "seed": 7}
        equal(text_of(server.get(CHAT, body)), text_of(server.get(CHAT, body)))
        texts = {text_of(server.get(CHAT, {**USER, "temperature": 1.5})) for _ in range(4)}
        assert len(texts) > 1, texts
        two = server.get(CHAT, {**body, "n": 2})["choices"]
        assert two[0]["message"] != two[1]["message"], two


def test_tools_and_schemas():
    with Server() as server:
        body = {**USER, "tools": TOOLS, "max_tokens": 100}
        for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
            answer = server.get(CHAT, {**body, "tool_choice": choice})
            equal(answer["choices"][0]["finish_reason"], "tool_calls")
            equal(answer["tool_format"], "generic")
            call = answer["choices"][0]["message"]["tool_calls"][0]
            equal(call["function"]["name"], "get_weather")
            assert 1 <= json.loads(call["function"]["arguments"])["days"] <= 9
            events = server.events(CHAT, {**body, "tool_choice": choice})
            calls = [c for e in events for d in e["choices"] for c in
                     d["delta"].get("tool_calls", [])]
            equal([c["function"] for c in calls], [call["function"]])
        asked = {**USER, "max_tokens": 100, "response_format": {
            "type": "json_schema", "json_schema": {
                "name": "x", "schema": TOOLS[0]["function"]["parameters"]}}}
        assert 1 <= json.loads(text_of(server.get(CHAT, asked)))["days"] <= 9
        server.refuses(400, "there are no tools", body={**USER, "tool_choice": "required"})
        server.refuses(400, "no such tool", body={**body, "tool_choice": {
            "type": "function", "function": {"name": "other"}}})


def test_tools_in_words():
    """ChatML has no place for tools: the system message has them."""
    with Server() as server:
        told = server.get("/apply-template", {"tools": TOOLS, "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [{
                "id": "1", "type": "function",
                "function": {"name": "get_weather", "arguments": '{"days": 2}'}}]},
            {"role": "tool", "tool_call_id": "1", "content": "rain"}]})["prompt"]
        assert told.startswith("<|im_start|>system\nBe brief.\n\nYou can call"), told
        assert '"name":"get_weather","parameters":{' in told, told
        assert '<|im_start|>assistant\n{"name":"get_weather","arguments":{"days":2}}' in told, told
        assert "<|im_start|>tool\nrain<|im_end|>" in told, told


# ---- Other APIs ----

ASKED = {"max_output_tokens": 16, "temperature": 0, "input": "Once upon a time"}
MESSAGES = {"max_tokens": 16, "temperature": 0, "messages": USER["messages"]}


def test_responses():
    with Server() as server:
        expected = text_of(server.get(CHAT, USER))
        answer = server.get("/v1/responses", ASKED)
        equal(answer["status"], "incomplete")
        equal(answer["incomplete_details"], {"reason": "max_output_tokens"})
        equal([item["type"] for item in answer["output"]], ["message"])
        equal(answer["output"][0]["content"][0]["text"], expected)
        equal(answer["usage"]["output_tokens"], 16)
        unsaid = server.get("/v1/responses", {**ASKED, "instructions": None})
        equal(unsaid["usage"]["input_tokens"], answer["usage"]["input_tokens"])
        events = server.named_events("/v1/responses", ASKED)
        equal([e["sequence_number"] for e in events], list(range(len(events))))
        equal("".join(e["delta"] for e in events if e["type"] == "response.output_text.delta"),
              expected)
        equal(events[-1]["type"], "response.incomplete")
        equal(events[-1]["response"]["output"][0]["content"], answer["output"][0]["content"])
        flat = [{"type": "function", **TOOLS[0]["function"]}]
        called = server.get("/v1/responses", {**ASKED, "tools": flat, "tool_choice": "required",
                                              "max_output_tokens": 100})
        call = called["output"][0]
        equal((call["type"], call["name"]), ("function_call", "get_weather"))
        assert 1 <= json.loads(call["arguments"])["days"] <= 9
        spaces = [{"type": "namespace", "name": "sky", "description": "sky", "tools": flat}]
        asked = {**ASKED, "tools": spaces, "tool_choice": "required", "max_output_tokens": 100}
        inside = server.get("/v1/responses", asked)["output"][0]
        equal((inside["namespace"], inside["name"]), ("sky", "get_weather"))
        events = server.named_events("/v1/responses", asked)
        equal([e["item"]["namespace"] for e in events if "item" in e], ["sky", "sky"])
        equal([e["name"] for e in events if "name" in e], ["get_weather"])
        answer = server.get("/v1/responses", {**ASKED, "tools": flat, "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Rain?"}]}, call,
            {"type": "function_call_output", "call_id": call["call_id"], "output": "no"}]})
        assert answer["output"], answer
        count = server.get("/v1/responses/input_tokens", ASKED)
        equal(count["input_tokens"], server.get(CHAT, USER)["usage"]["prompt_tokens"])
        status, _, refusal = server.ask("/v1/responses", {"input": "word " * 600})
        equal((status, refusal["error"]["code"]), (400, "context_length_exceeded"))
        server.refuses(400, "stores no", path="/v1/responses",
                       body={**ASKED, "previous_response_id": "resp_1"})


def test_messages():
    with Server("-c", 512) as server:
        expected = text_of(server.get(CHAT, USER))
        answer = server.get("/v1/messages", MESSAGES)
        equal((answer["type"], answer["role"]), ("message", "assistant"))
        equal(answer["content"], [{"type": "text", "text": expected}])
        equal(answer["stop_reason"], "max_tokens")
        usage = answer["usage"]
        equal(usage["output_tokens"], 16)
        events = server.named_events("/v1/messages", MESSAGES)
        kinds = [e["type"] for e in events]
        equal(kinds[:2], ["message_start", "content_block_start"])
        equal(kinds[-3:], ["content_block_stop", "message_delta", "message_stop"])
        equal("".join(e["delta"]["text"] for e in events if e["type"] == "content_block_delta"),
              expected)
        tools = [{"name": "get_weather", "input_schema": TOOLS[0]["function"]["parameters"]}]
        body = {**MESSAGES, "tools": tools, "tool_choice": {"type": "any"}, "max_tokens": 100}
        called = server.get("/v1/messages", body)
        equal(called["stop_reason"], "tool_use")
        assert 1 <= called["content"][0]["input"]["days"] <= 9
        streamed = server.named_events("/v1/messages", body)
        equal(json.loads("".join(e["delta"]["partial_json"] for e in streamed
                                 if e["type"] == "content_block_delta")),
              called["content"][0]["input"])
        told = server.get("/v1/messages", {**MESSAGES, "system": "Be brief", "messages": [
            {"role": "user", "content": "Rain?"},
            {"role": "assistant", "content": called["content"]},
            {"role": "user", "content": [{"type": "tool_result", "content": "no",
                                          "tool_use_id": called["content"][0]["id"]}]}]})
        assert told["content"], told
        count = server.get("/v1/messages/count_tokens", {"messages": USER["messages"]})
        equal(count["input_tokens"],
              usage["input_tokens"] + usage["cache_read_input_tokens"])
        for body, word in [({"messages": USER["messages"]}, "max_tokens"),
                           ({"max_tokens": 1, "messages": []}, "messages"),
                           ({"max_tokens": 1, "messages": [{"role": "user", "content": [
                               {"type": "image", "source": {}}]}]}, "text"),
                           ({"max_tokens": 1, "messages": [
                               {"role": "user", "content": "word " * 600}]},
                            "prompt is too long: ")]:
            status, _, content = server.ask("/v1/messages", body)
            equal((status, content["type"]), (400, "error"))
            equal(content["error"]["type"], "invalid_request_error")
            assert word in content["error"]["message"], content
        assert " tokens > 512 maximum" in content["error"]["message"], content
        for thread in ({"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}):
            status, _, content = server.ask("/v1/messages", {**MESSAGES, "thread": thread})
            equal((status, content["error"]["details"]["error_code"]),
                  (400, "thread_unsupported_request"))
        equal(server.get("/v1/messages", {**MESSAGES, "thread": None})["content"],
              answer["content"])


def test_native():
    with Server() as server:
        body = {"prompt": GREEDY["prompt"], "temperature": 0, "n_predict": 12}
        answer = server.get("/completion", body)
        equal(answer["content"], server.get(TEXT, {**body, "max_tokens": 12})["choices"][0]["text"])
        equal((answer["stop"], answer["stop_type"]), (True, "limit"))
        equal(answer["tokens_predicted"], 12)
        equal(answer["timings"]["predicted_n"], 12)
        word = answer["content"].split()[1]
        stopped = server.get("/completion", {**body, "n_predict": -1, "stop": ["", word]})
        equal((stopped["stop_type"], stopped["stopping_word"]), ("word", word))
        server.refuses(400, "n_predict", path="/completion", body={**body, "n_predict": -2})
        several = server.get("/completion", {**body, "prompt": [GREEDY["prompt"], "One day"]})
        equal([a["index"] for a in several], [0, 1])
        listed = server.get("/completion", {**body, "n_probs": 2})["completion_probabilities"]
        equal([len(p["top_logprobs"]) for p in listed], [2] * 12)
        connection = server.connect()
        connection.request("POST", "/completion", json.dumps({**body, "stream": True}))
        events = [json.loads(e[6:]) for e in
                  connection.getresponse().read().decode()[:-2].split("\n\n")]
        connection.close()
        equal("".join(e["content"] for e in events), answer["content"])
        equal([e["stop"] for e in events], [False] * (len(events) - 1) + [True])


def lines_of(server, path, body):
    _, headers, text = server.ask(path, body)
    equal(headers.get_content_type(), "application/x-ndjson")
    return [json.loads(line) for line in text.decode().splitlines()]


def test_ollama():
    settings = {"options": {"temperature": 0, "num_predict": 16}}
    with Server() as server:
        expected = text_of(server.get(CHAT, USER))
        parts = [{"type": "text", "text": "Once upon a time"}]  # before the role
        message = {"content": parts, "role": "user"}
        equal(text_of(server.get(CHAT, {**USER, "messages": [message]})), expected)
        body = {"model": "tales", "messages": USER["messages"], **settings}
        whole = server.get("/api/chat", {**body, "stream": False})
        equal(whole["message"], {"role": "assistant", "content": expected})
        equal((whole["done"], whole["done_reason"], whole["eval_count"]), (True, "length", 16))
        made = time.strptime(whole["created_at"], "%Y-%m-%dT%H:%M:%SZ")
        age = time.time() - calendar.timegm(made)
        assert -2 < age < TIMEOUT, whole["created_at"]
        lines = lines_of(server, "/api/chat", body)
        equal("".join(line["message"]["content"] for line in lines), expected)
        equal([line["done"] for line in lines], [False] * (len(lines) - 1) + [True])
        lines = lines_of(server, "/api/generate", {"prompt": "Once upon a time", **settings})
        equal("".join(line["response"] for line in lines), expected)
        raw = server.get("/api/generate", {"prompt": GREEDY["prompt"], "raw": True,
                                           "stream": False, **settings})["response"]
        assert GREEDY["text"][len(GREEDY["prompt"]):].startswith(raw), raw
        schema = TOOLS[0]["function"]["parameters"]
        said = server.get("/api/chat", {**body, "stream": False, "format": schema,
                                        "options": {"num_predict": 100}})["message"]["content"]
        assert 1 <= json.loads(said)["days"] <= 9, said
        equal(server.get("/api/tags")["models"][0]["name"], "tales")
        equal(server.get("/api/show", {"model": "tales"})["details"]["family"], "llama")
        about = server.get("/api/version")
        # VS Code's Copilot refuses servers before 0.6.4.
        assert tuple(map(int, about["version"].split("."))) >= (0, 6, 4), about
        equal("wick " + about["wick"], wick("--version").stdout.decode().split("\n")[0])
        vectors = server.get("/api/embed", {"input": ["One day", "Once"]})["embeddings"]
        one = server.get("/v1/embeddings", {"input": "One day"})["data"][0]
        equal(vectors[0], one["embedding"])
        equal(server.get("/api/embeddings", {"prompt": "One day"}), {"embedding": vectors[0]})
        equal(server.get("/api/embed", {"input": []})["embeddings"], [])
        marked = "One</s> day"  # a text is a text, also beside ids and where one is cut
        alone, = server.get("/api/embed", {"input": marked})["embeddings"]
        beside = server.get("/v1/embeddings", {"input": [marked, [1]]})["data"][0]["embedding"]
        assert all(abs(a - b) < 1e-6 for a, b in zip(alone, beside)), (alone, beside)
        counts = [server.get("/api/generate", {"prompt": "One", "stream": False, **system,
                                               "options": {"num_predict": 1}})["prompt_eval_count"]
                  for system in ({}, {"system": ""}, {"system": "Be brief."})]
        assert counts[0] == counts[1] < counts[2], counts
        long = "One day " * 3000
        whole, cut = server.get("/api/embed", {"input": ["One day", long]})["embeddings"]
        equal((whole, len(cut)), (vectors[0], len(whole)))
        for path, body in (("/api/embed", {"input": long, "truncate": False}),
                           ("/api/chat", {"messages": 5}), ("/api/none", {})):
            status, _, content = server.ask(path, body)
            equal((status, list(content)), (404 if path == "/api/none" else 400, ["error"]))
            assert isinstance(content["error"], str), content
        running = server.get("/api/ps")["models"][0]
        equal(running["digest"], server.get("/api/tags")["models"][0]["digest"])
        assert running["expires_at"] > running["modified_at"] and running["size_vram"] > 0
        for path in ("/api/generate", "/api/chat"):
            loaded = server.get(path, {"model": "tales", "messages": [], "stream": False})
            equal((loaded["done"], loaded["done_reason"]), (True, "load"))
            equal(len(lines_of(server, path, {"model": "tales"})), 1)


def test_ollama_thinks_and_fills_the_context():
    template = "{% for m in messages %}{{ m.content }}{% endfor %}<think>"
    settings = {"options": {"temperature": 0, "num_predict": 8}}
    with Server("-c", 64, "--chat-template", template) as server:
        full = server.get("/api/generate", {"prompt": "Once", "raw": True, "stream": False,
                                            "options": {"temperature": 0}})
        equal((full["done_reason"], full["prompt_eval_count"] + full["eval_count"] >= 64),
              ("length", True))
        body = {"messages": USER["messages"], **settings}
        said = server.get("/api/chat", {**body, "stream": False})["message"]
        equal((said["content"], bool(said["thinking"])), ("", True))
        lines = [line["message"] for line in lines_of(server, "/api/chat", body)]
        equal("".join(line.get("thinking", "") for line in lines), said["thinking"])
        body = {"prompt": "Once upon a time", **settings}
        whole = server.get("/api/generate", {**body, "stream": False})
        equal((whole["response"], whole["thinking"]), ("", said["thinking"]))
        lines = lines_of(server, "/api/generate", body)
        equal("".join(line.get("thinking", "") for line in lines), said["thinking"])


def test_slots_and_metrics():
    with Server("--parallel", 2, "--metrics") as server:
        server.get(CHAT, USER)
        slots = server.get("/slots")
        equal([s["is_processing"] for s in slots], [False, False])
        with reading(server):
            slots = server.get("/slots")
            equal([s["is_processing"] for s in slots], [True, False])
        text = server.get("/metrics").decode()
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
        assert float(values["llamacpp:tokens_predicted_total"]) >= 16, text
        assert int(values["vllm:time_to_first_token_seconds_count"]) >= 2, text
        # All tokens of an answer but its first.
        assert int(values["vllm:inter_token_latency_seconds_count"]) >= 15, text
        equal(values['vllm:request_queue_time_seconds_bucket{le="+Inf"}'],
              values["vllm:request_queue_time_seconds_count"])


def test_embeddings():
    with Server() as server:
        path = "/v1/embeddings"
        answer = server.get(path, {"input": ["One day", "Once upon a time"]})
        equal([d["index"] for d in answer["data"]], [0, 1])
        vectors = [d["embedding"] for d in answer["data"]]
        for vector in vectors:
            assert abs(sum(v * v for v in vector) - 1) < 1e-4, vector
        one = server.get(path, {"input": "Once upon a time"})["data"][0]["embedding"]
        equal(one, vectors[1])
        ids = server.get("/tokenize", {"content": "Once upon a time", "add_special": True})
        equal(server.get(path, {"input": ids["tokens"]})["data"][0]["embedding"], one)
        equal(answer["usage"]["prompt_tokens"] > len(ids["tokens"]), True)
        with Server("--pooling", "mean") as other:
            assert other.get(path, {"input": "Once upon a time"})["data"][0]["embedding"] != one
        packed = server.get(path, {"input": [ids["tokens"], [1, 2]], "encoding_format": "base64"})
        bits = base64.b64decode(packed["data"][0]["embedding"])
        floats = struct.unpack(f"<{len(one)}f", bits)
        assert all(abs(a - b) < 1e-6 for a, b in zip(floats, one)), floats
        short = server.get(path, {"input": "Once upon a time", "dimensions": 8})["data"][0]
        equal(len(short["embedding"]), 8)
        assert abs(sum(v * v for v in short["embedding"]) - 1) < 1e-4
        for body, word in [({}, "input"), ({"input": []}, "input"), ({"input": [{}]}, "input"),
                           ({"input": "a", "dimensions": 9999}, "dimensions"),
                           ({"input": "a", "encoding_format": "x"}, "encoding_format"),
                           ({"input": [[99999]]}, "below 512"), ({"input": "a " * 5000}, "text"),
                           ({"input": ["a"] * 2049}, "1 to 2048 texts")]:
            server.refuses(400, word, path=path, body=body)
        equal(len(server.get(path, {"input": ["a"] * 2048})["data"]), 2048)


# ---- Several models ----

def test_several_models():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("one", "two"):
            os.symlink(MODEL, os.path.join(folder, name + ".gguf"))
        Path(folder, "bad.gguf").write_bytes(b"GGUF")
        with Server("--models", folder, "--idle", 0, model=None) as server:
            def states():
                return {m["id"]: m["status"]["value"] for m in server.get("/v1/models")["data"]}
            equal(states(), {"bad": "unloaded", "one": "unloaded", "two": "unloaded"})
            texts = [server.get(CHAT, {**USER, "model": name}) for name in ("one", "two")]
            equal([t["model"] for t in texts], ["one", "two"])
            equal(text_of(texts[0]), text_of(texts[1]))
            server.refuses(404, "no model", body={**USER, "model": "three"})
            server.refuses(404, "no model", path="/v1/models/three")
            server.refuses(400, "which model", body=USER)
            server.refuses(400, "JSON", body="{")
            server.refuses(413, "values", body='{"model":"three","x":[' + "1," * 2000001 + "1]}")
            server.refuses(404, "nothing at this path", path="/v1/none", body={})
            server.refuses(405, "method", path=CHAT)
            server.refuses(500, body={**USER, "model": "bad"})
            equal(server.get("/v1/models/one")["id"], "one")
            with reading(server, {**LONG, "model": "two"}):
                assert text_of(server.get(CHAT, {**USER, "model": "one"}))
            wait_until(lambda: set(states().values()) == {"unloaded"})
            equal(server.get(CHAT, {**USER, "model": "one"})["model"], "one")


def test_models_on_demand():
    """Loaded and closed when a client says so; what is said of each by itself."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("one", "two"):
            os.symlink(MODEL, os.path.join(folder, name + ".gguf"))
        with Server("--models", folder, "--metrics", model=None) as server:
            def state(name):
                return {m["id"]: m["status"]["value"]
                        for m in server.get("/v1/models")["data"]}[name]
            equal(server.get("/models/load", {"model": "one"}), {"success": True})
            wait_until(lambda: state("one") == "loaded")
            server.get(CHAT, {**USER, "model": "one"})
            equal(server.get("/props?model=one")["model_alias"], "one")
            equal(server.get("/props?a%26b=%25&model=%6Fne")["model_alias"], "one")
            equal(len(server.get("/slots?model=one")), 4)
            assert b"tokens_predicted_total 16" in server.get("/metrics?x=1&model=one")
            for path in ("/props", "/slots", "/metrics"):
                server.refuses(400, "not loaded", path=path + "?model=two")
                server.refuses(404, "which model", path=path)
                server.refuses(404, "which model", path=path + "?model=three")
            equal(state("two"), "unloaded")
            with reading(server, {**LONG, "model": "one"}):
                server.refuses(400, "answering", path="/models/unload", body={"model": "one"})
            wait_until(lambda: server.ask("/models/unload", {"model": "one"})[0] == 200)
            equal(state("one"), "unloaded")
            for path, said, keep in (("/api/generate", {"response": ""}, 0), ("/api/chat", {
                    "message": {"role": "assistant", "content": ""}}, "0s")):
                server.get(CHAT, {**USER, "model": "one"})
                words = {"prompt": "Once", "messages": USER["messages"], "stream": False,
                         "options": {"num_predict": 1}, "model": "one"}
                for kept in ("5m", "0h30m", -1, "-1s", ".5h", 1e300, "5", "m", "1h-1m", None, [0]):
                    server.get(path, {**words, "keep_alive": kept})
                    equal(state("one"), "loaded")
                for kept in (0, "0s", "1ns"):
                    server.get(path, {**words, "keep_alive": kept})
                    wait_until(lambda: state("one") == "unloaded")
                server.get(CHAT, {**USER, "model": "one"})
                time.sleep(0.2)
                equal(state("one"), "loaded")  # the request before does not count

                def unload(path=path, keep=keep):  # the last answer may not be over yet
                    status, _, got = server.ask(path, {"model": "one", "keep_alive": keep})
                    gone.append(got)
                    return status == 200
                gone = []
                wait_until(unload)
                equal({key: gone[-1][key] for key in (*said, "model", "done", "done_reason")},
                      {**said, "model": "one", "done": True, "done_reason": "unload"})
                equal(state("one"), "unloaded")
            os.unlink(os.path.join(folder, "two.gguf"))
            server.refuses(500, "cannot be loaded", path="/models/load", body={"model": "two"})
            for path in ("/models/load", "/models/unload"):
                server.refuses(404, "no model", path=path, body={"model": "three"})
                server.refuses(400, "JSON", path=path, body="{")


def test_models_are_not_kept_by_questions():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("one", "two"):
            os.symlink(MODEL, os.path.join(folder, name + ".gguf"))
        with Server("--models", folder, "--idle", 1, "--metrics", model=None) as server:
            def state(name):
                return {m["id"]: m["status"]["value"]
                        for m in server.get("/v1/models")["data"]}[name]
            server.get(CHAT, {**USER, "model": "one", "keep_alive": -1})
            server.get(CHAT, {**USER, "model": "two"})

            def is_gone():
                server.ask("/metrics?model=two")
                server.ask("/v1/models/two")
                server.ask("/api/show", {"model": "two"})
                return state("two") == "unloaded"
            server.get("/api/show", {"model": "one"})
            wait_until(is_gone)
            equal(state("one"), "loaded")  # that question does not take back what was said


def test_models_that_are_not_loaded():
    """What is said of a model does not load it, and is the same once it is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(MODEL, os.path.join(folder, "one.gguf"))
        Path(folder, "bad.gguf").write_bytes(b"GGUF")
        with Server("--models", folder, model=None) as server:
            with Server() as other:
                equal(server.get("/api/version"), other.get("/api/version"))
            listed, = server.get("/api/tags")["models"]
            equal((listed["name"], listed["size"]), ("one", os.path.getsize(MODEL)))
            time.strptime(listed["modified_at"], "%Y-%m-%dT%H:%M:%SZ")
            equal(server.get("/v1/models/one:latest")["status"]["value"], "unloaded")
            shown = server.get("/api/show", {"name": "one"})
            equal(shown["model_info"]["general.architecture"], "llama")
            equal(shown["model_info"]["llama.context_length"], 512)
            equal(shown["details"]["quantization_level"], "F32")
            assert re.fullmatch(r"[0-9.]+K", shown["details"]["parameter_size"]), shown
            equal({m["status"]["value"] for m in server.get("/v1/models")["data"]}, {"unloaded"})
            equal(server.get("/api/ps"), {"models": []})
            equal(server.get(CHAT, {**USER, "model": "one:latest"})["model"], "one")
            for name in ("one", "one:latest"):
                equal(server.get(f"/v1/models/{name}")["meta"]["n_vocab"], 512)
            equal(server.get("/api/show", {"model": "one"}), shown)
            running = server.get("/api/ps")["models"]
            equal([(m["name"], m["size"]) for m in running], [("one", os.path.getsize(MODEL))])
            with Server() as other:  # of one model
                for name in ("tags", "ps"):
                    one, = other.get("/api/" + name)["models"]
                    many, = server.get("/api/" + name)["models"]
                    for key in ("digest", "details", *(["size_vram"] if name == "ps" else [])):
                        equal(many[key], one[key])
            assert running[0]["expires_at"] > listed["modified_at"]


# ---- What llama-server has besides ----

def test_logprobs_of_completions():
    with Server() as server:
        body = {"prompt": GREEDY["prompt"], "temperature": 0, "max_tokens": 5, "logprobs": 2}
        one = server.get(TEXT, body)["choices"][0]
        got = one["logprobs"]
        equal("".join(got["tokens"]), one["text"])
        equal([len(top) for top in got["top_logprobs"]], [2] * 5)
        equal(got["text_offset"][:2], [0, len(got["tokens"][0])])
        equal(got["token_logprobs"][0], max(got["top_logprobs"][0].values()))
        whole = server.get(TEXT, {**body, "echo": True})["choices"][0]
        echoed = whole["logprobs"]
        equal(echoed["token_logprobs"][0], None)
        equal(echoed["tokens"][-5:], got["tokens"])
        n = len(echoed["tokens"]) - 5
        assert all(x < 0 for x in echoed["token_logprobs"][1:]), echoed
        # What was generated is what a model reads that is given it.
        ids = server.get("/tokenize", {"content": GREEDY["prompt"], "add_special": True})["tokens"]
        more = server.get("/completion", {"prompt": ids, "temperature": 0, "n_predict": 5,
                                          "return_tokens": True})["tokens"]
        again = server.get(TEXT, {**body, "prompt": ids + more, "max_tokens": 0, "echo": True})
        read = again["choices"][0]["logprobs"]["token_logprobs"][n:]
        assert all(abs(a - b) < 0.05 for a, b in zip(read, got["token_logprobs"])), (read, got)
        none = server.get(TEXT, {**body, "echo": True, "max_tokens": 0})["choices"][0]
    with Server("--context-shift") as server:
        equal(server.get(TEXT, {**body, "echo": True, "max_tokens": 0})["choices"][0], none)


def test_counts_of_minus_one():
    with Server() as server:
        plain = server.get("/completion", {"prompt": "Once", "n_predict": 8, "temperature": 0})
        same = server.get("/completion", {"prompt": "Once", "n_predict": 8, "temperature": 0,
                                          "top_k": -1, "repeat_last_n": -1, "seed": -1,
                                          "dry_penalty_last_n": -1, "return_tokens": True})
        equal(same["content"], plain["content"])
        equal((len(same["tokens"]), plain["tokens"]), (8, []))
        word = plain["content"].split()[0]
        for bias in ([[" " + word, -100]], {" " + word: -100}):
            other = server.get("/completion", {"prompt": "Once", "n_predict": 8, "temperature": 0,
                                               "logit_bias": bias})
            assert not other["content"].startswith(plain["content"][:4]), other
        server.refuses(400, "top_k", path="/completion", body={"prompt": "a", "top_k": -2})


def test_stop_sequence():
    with Server() as server:
        text = server.get("/v1/messages", MESSAGES)["content"][0]["text"]
        word = text.split()[2]
        body = {**MESSAGES, "stop_sequences": ["nowhere", word]}
        answer = server.get("/v1/messages", body)
        equal((answer["stop_reason"], answer["stop_sequence"]), ("stop_sequence", word))
        delta = server.named_events("/v1/messages", body)[-2]["delta"]
        equal((delta["stop_reason"], delta["stop_sequence"]), ("stop_sequence", word))
        native = server.get("/completion", {"prompt": "Once", "stop": ["nowhere", "a"]})
        equal(native["stopping_word"], "a")


def test_names_and_switches():
    with Server("--tags", "small,tales", "--no-slots",
                "--allowed-hosts", "127.0.0.1,box") as server:
        for path in ("/slots", "/metrics"):
            server.refuses(501, "--", path=path)
        equal(server.get("/v1/models")["data"][0]["tags"], ["small", "tales"])
        props = server.get("/props")
        assert props["model_path"].endswith(".gguf"), props
        equal(props["default_generation_settings"]["params"]["n_predict"], -1)
        server.get("/health", headers={"Host": "box:99"})
        server.refuses(403, "host", path="/health", headers={"Host": "evil.example"})
        server.refuses(403, "host", path="http://evil.example/health")
        server.get("http://box:99/health", headers={"Host": "evil.example"})
        status, _, content = server.ask("/v1/messages", MESSAGES, headers={"Host": "x"})
        equal((status, content["type"]), (403, "error"))


def test_slots_are_saved():
    with tempfile.TemporaryDirectory() as folder, Server("--slot-save-path", folder) as server:
        body = {"prompt": GREEDY["prompt"], "temperature": 0, "n_predict": 8, "id_slot": 1}
        first = server.get("/completion", body)
        equal(first["id_slot"], 1)
        saved = server.get("/slots/1?action=save", {"filename": "one.bin"})
        assert saved["n_saved"] > 8, saved
        equal(os.listdir(folder), ["one.bin"])
        equal(server.get("/slots/1?action=erase", "")["n_erased"], saved["n_saved"])
        server.refuses(400, "no text", path="/slots/1?action=save", body={"filename": "a"})
        restored = server.get("/slots/0?action=restore", {"filename": "one.bin"})
        equal(restored["n_restored"], saved["n_saved"])
        again = server.get("/completion", {**body, "id_slot": 0})
        equal(again["content"], first["content"])
        equal(again["timings"]["prompt_n"], 1)
        anew = server.get("/completion", {**body, "id_slot": 0, "cache_prompt": False})
        equal((anew["content"], anew["timings"]["cache_n"]), (first["content"], 0))
        server.get("/slots/0?action=restore", {"filename": "one.bin"})
        for name in ("../a", "/etc/passwd", ".a", "a/b", "", "a\0b", 7):
            server.refuses(400, "filename", path="/slots/0?action=save", body={"filename": name})
        server.refuses(400, "no such file", path="/slots/0?action=restore", body={"filename": "b"})
        server.refuses(404, "slot", path="/slots/9?action=erase", body={})
        for query in ("", "?xaction=erase", "?action=erase%26x", "?action=erased"):
            server.refuses(400, "action", path="/slots/0" + query, body={})
        assert server.get("/slots/0?x=action=&action=erase", "")["n_erased"] > 8
        server.get("/completion", {**body, "id_slot": 0})
        os.mkdir(os.path.join(folder, "taken"))
        for action in ("save", "restore"):  # the folder's own path is not told
            status, _, content = server.ask(f"/slots/0?action={action}", {"filename": "taken"})
            message = content["error"]["message"]
            assert status == 500 and "'taken'" in message and folder not in message, content
        shutil.copy(MODEL, os.path.join(folder, "a.gguf"))
        os.mkfifo(os.path.join(folder, "pipe"))
        server.refuses(400, "not replaced", path="/slots/0?action=save",
                       body={"filename": "a.gguf"})
        equal(server.ask("/slots/0?action=save", {"filename": "pipe"})[0], 500)
        equal(Path(folder, "a.gguf").read_bytes(), Path(MODEL).read_bytes())
        equal(server.get("/slots/0?action=save", {"filename": "one.bin"})["filename"], "one.bin")
        shutil.rmtree(folder)
        status, _, content = server.ask("/slots/0?action=save", {"filename": "one.bin"})
        assert status == 500 and folder not in content["error"]["message"], content
        os.mkdir(folder)
    with Server() as server:
        server.refuses(501, "--slot-save-path", path="/slots/0?action=erase", body={})


def test_infill():
    """Tokens of the vocabulary become marks of a gap in a copy of the model."""
    data = Path(MODEL).read_bytes()
    for old, new in (("\u2581he", "<PRE>"), ("\u2581wa", "<SUF>"), ("\u2581th", "<MID>")):
        size = struct.pack("<Q", 5)
        assert data.count(size + old.encode()) == 1, old
        data = data.replace(size + old.encode(), size + new.encode())
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        file.write(data)
        file.flush()
        with Server(model=file.name) as server:
            body = {"input_prefix": "One ", "input_suffix": " day", "prompt": "sunny",
                    "n_predict": 4, "temperature": 0}
            answer = server.get("/infill", body)
            equal(answer["tokens_predicted"], 4)
            more = server.get("/infill", {**body, "input_extra": [
                {"filename": "a.c", "text": "int a;"}]})
            assert more["tokens_evaluated"] > answer["tokens_evaluated"], more
            for extra in ([{}], [{"filename": 1, "text": "a"}], {}):
                server.refuses(400, "input_extra", path="/infill",
                               body={**body, "input_extra": extra})
    with Server() as server:
        server.refuses(400, "gap", path="/infill", body=body)
        server.refuses(400, "not a reranker", path="/rerank", body={"query": "a"})


def test_rerank():
    """The best first, with the scores of `wick rerank`; Jina's shape and a bare one."""
    shared = os.environ.get("WICK_SHARED_DATA")
    if not shared:
        return "WICK_SHARED_DATA is not set"
    texts = ["a river", "a long river of fire", "water"]
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        write_reranker(f"{shared}/families/bert.gguf", file.name)
        lines = wick("rerank", file.name, "fire", *texts, "--json").stdout.splitlines()
        want = [(row["index"], row["score"]) for row in map(json.loads, lines)]
        with Server("--rerank", "--math", "exact", model=file.name) as server:
            body = {"query": "fire", "documents": texts}
            for path in ("/v1/rerank", "/rerank"):
                answer = server.get(path, body)
                got = [(row["index"], row["relevance_score"]) for row in answer["results"]]
                equal([index for index, _ in got], [index for index, _ in want])
                assert all(abs(a[1] - b[1]) < 1e-6 for a, b in zip(got, want)), (got, want)
                assert answer["usage"]["prompt_tokens"] > 0, answer
            best, = server.get("/rerank", {**body, "top_n": 1, "return_documents": True})["results"]
            equal(best["document"], {"text": texts[want[0][0]]})
            bare = server.get("/rerank", {"query": "fire", "texts": texts, "return_text": True})
            equal([row["text"] for row in bare], [texts[index] for index, _ in want])
            for wrong in ({"query": "fire"}, {"query": "fire", "documents": []},
                          {"documents": texts}, {"query": "fire", "documents": [1]}):
                server.refuses(400, path="/rerank", body=wrong)
    return None


def test_long_texts():
    """A text that is much longer than the context is refused before all of it is tokenized."""
    with Server() as server:
        text = "Once upon a time there was a little girl. " * 100000
        error = server.refuses(400, "context", path=TEXT, body={"prompt": text})
        equal(error["type"], "exceed_context_size_error")
        assert len(text) / 5 < error["n_prompt_tokens"] < len(text), error
        error = server.refuses(400, "context", body={"messages": [
            {"role": "user", "content": text}]})
        assert len(text) / 5 < error["n_prompt_tokens"] < len(text), error


def test_pings():
    """A stream that waits gets comments."""
    with Server("--parallel", 1, "--context-shift", "--sse-ping-interval", 1) as server:
        with reading(server, {**LONG, "max_tokens": -1}):
            connection = server.connect()
            connection.request("POST", CHAT, json.dumps({**USER, "stream": True}))
            equal(connection.getresponse().readline(), b": waiting\n")
            connection.close()


def test_log():
    for option, has_body in (("--verbose", False), ("--log-requests", True)):
        with Server(option) as server:
            server.get("/tokenize", {"content": "secret words"})
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(TIMEOUT)
            line = json.loads(server.process.stderr.read().decode().splitlines()[-1])
            equal((line["method"], line["path"], line["status"]), ("POST", "/tokenize", 200))
            equal("secret" in line.get("body", ""), has_body)
            equal(line["client"], "127.0.0.1")
    with Server("--verbose") as server:
        server.ask("/%c2%9b31m%1bX")
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(TIMEOUT)
        line = server.process.stderr.read().splitlines()[-1]
        assert b"/\\u009b31m\\u001bX" in line, line  # nothing that steers a terminal


def test_log_that_nobody_reads():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "bad.gguf").write_bytes(b"GGUF")
        os.symlink(MODEL, os.path.join(folder, "one.gguf"))
        with Server("--models", folder, model=None) as server:
            server.process.stderr.close()
            for _ in range(2):
                server.refuses(500, body={**USER, "model": "bad"})
            assert text_of(server.get(CHAT, {**USER, "model": "one"}))


# ---- Requests that make no sense ----

def test_refusals():
    with Server("-c", 64) as server:
        for body, word in [("{", "JSON"), ("[]", "object"), ({}, "messages"),
                           ({"messages": []}, "messages"), ({"messages": [1]}, "role"),
                           ({"messages": [{"role": "user", "content": 7}]}, "content"),
                           ({**USER, "temperature": "hot"}, "temperature"),
                           ({**USER, "temperature": -1}, "temperature"),
                           ({**USER, "n": 0}, "n must"), ({**USER, "stop": [1]}, "stop"),
                           ({**USER, "stream": 1}, "stream"),
                           ({**USER, "logit_bias": {"x": "y"}}, "logit_bias"),
                           ({**USER, "top_logprobs": 2}, "logprobs"),
                           ({**USER, "response_format": {"type": "xml"}}, "response_format"),
                           ({**USER, "grammar": "root ::= ("}, "grammar"),
                           ({**USER, "messages": [{"role": "user", "content": [
                               {"type": "image_url", "image_url": {"url": "x"}}]}]}, "text")]:
            equal(server.refuses(400, word, body=body)["type"], "invalid_request_error")
        error = server.refuses(400, "context", body={"messages": [
            {"role": "user", "content": "word " * 100}]})
        equal(error["type"], "exceed_context_size_error")
        equal(error["n_ctx"], 64)
        assert error["n_prompt_tokens"] > 64
        equal(server.get("/health"), {"status": "ok"})


def test_errors_of_each_api():
    with Server() as server:
        for path in ("/v1/messages", "/v1/messages/count_tokens"):
            for body in ("{", "[]", {}, {"max_tokens": 1, "messages": [
                    {"role": "user", "content": 7}]}, {**MESSAGES, "tools": 1},
                    {**MESSAGES, "tool_choice": {"type": "other"}}):
                status, _, content = server.ask(path, body)
                equal((status, content["type"]), (400, "error"))
                equal(content["error"]["type"], "invalid_request_error")
        server.refuses(400, "JSON", path="/v1/responses", body="{")
        server.refuses(400, "array", path="/v1/responses", body={**ASKED, "tools": "x"})
        server.refuses(400, "tool_calls", body={"messages": [
            {"role": "assistant", "tool_calls": "x"}]})
        server.refuses(400, "logit_bias", body={**USER, "logit_bias": "x"})
        server.refuses(400, "at most", body={**USER, "stop": ["a"] * 1000})
        server.refuses(400, "token id", path="/v1/embeddings", body={"input": [[1], 2]})
        server.refuses(413, "values", path="/tokenize",
                       body='{"content":[' + "1," * 2000001 + "1]}")
        server.refuses(405, "method", path="/health", method="DELETE")
        equal(server.get("/health"), {"status": "ok"})


def test_keys():
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys"
        keys.write_bytes(b"\r\n\nother\r\nlast")
        check_keys("--api-key", "secret", "--api-key-file", keys)
        fails(1, "no/such", arguments=["serve", MODEL, "--api-key-file", "no/such"])
        keys.write_bytes(b"\r\n\n")
        fails(1, "has no key", arguments=["serve", MODEL, "--api-key-file", keys])


def test_options_that_make_no_sense():
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "t.jinja"
        template.write_text("{{ messages }}")
        fails(2, "--template and --chat-template exclude each other",
              arguments=["serve", MODEL, "--template", template, "--chat-template", "chatml"])
    fails(1, "is not a reranker", arguments=["serve", MODEL, "--rerank", "--port", 0])
    fails(1, "there is no folder 'nowhere'",
          arguments=["serve", MODEL, "--slot-save-path", "nowhere"])
    for option in ("--alias", "--tags"):
        fails(2, f"{option} has more than 64 items",
              arguments=["serve", MODEL, option, ",".join(["x"] * 65)])
    for more in ([MODEL], ["--alias", "x"]):
        fails(2, "several models take no MODEL.gguf",
              arguments=["serve", "--models", DATA, "--port", 0, *more])


def check_keys(*options):
    with Server(*options) as server:
        equal(server.get("/health"), {"status": "ok"})
        equal(server.refuses(401, path="/v1/models")["type"], "authentication_error")
        server.refuses(401, path="/v1/models", headers={"Authorization": "Bearer secre"})
        status, headers, page = server.ask("/")
        equal((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        assert b'src="served.js"' in page, page
        scripts = ["served.js"]  # with all that they import
        for name in scripts:
            status, headers, text = server.ask(f"/{name}")
            equal((name, status, headers["Content-Type"]), (name, 200, "text/javascript"))
            scripts += [found for found in re.findall(r'from "./([a-z_]+[.]js)"', text.decode())
                        if found not in scripts]
        assert "sandbox.js" in scripts, scripts
        equal(server.ask("/nothing.js")[0], 401)
        server.refuses(401, path="/v1/models", headers={"x-api-key": ""})
        server.refuses(401, path="/v1/models", headers={"Authorization": "Bearer wrong",
                                                        "x-api-key": "wrong"})
        for headers in ({"Authorization": "Bearer secret"}, {"x-api-key": "other"},
                        {"x-api-key": "last"},
                        {"Authorization": "Bearer wrong", "x-api-key": "last"},
                        {"Authorization": "Bearer last", "x-api-key": "wrong"},
                        {"Authorization": "Basic YTpi", "x-api-key": "last"}):
            server.get("/v1/models", headers=headers)


def test_pages_of_others():
    page = {"Origin": "https://a.example"}
    with Server() as server:
        status, headers, _ = server.ask(CHAT, method="OPTIONS", headers=page)
        equal((status, headers["Access-Control-Allow-Origin"]), (200, page["Origin"]))
        asked = {**page, "Access-Control-Request-Headers": "authorization,content-type"}
        headers = server.ask(CHAT, method="OPTIONS", headers=asked)[1]
        equal(headers["Access-Control-Allow-Headers"], "authorization,content-type")
        equal(headers["Vary"], "Origin")
    with Server("--cors-origins", "localhost") as server:
        status, headers, _ = server.ask("/v1/models", headers=page)
        equal((status, headers["Access-Control-Allow-Origin"]), (403, None))
        body, simple = {"content": "Hi"}, {**page, "Content-Type": "text/plain"}
        equal(server.ask("/tokenize", body, headers=simple)[0], 403)
        equal(server.ask("/health", headers=page)[0], 200)
        named = {"Origin": "http://box.lan:80", "Host": "box.lan:80"}  # the server's own page
        equal(server.ask("/tokenize", body, headers=named)[0], 200)
        own = {"Origin": "http://localhost:3000"}
        equal(server.ask("/v1/models", headers=own)[1]["Access-Control-Allow-Origin"],
              own["Origin"])


def send(server, text):
    """What comes back for bytes on a connection of their own."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(65536)


def test_large_headers():
    """Refused, also where they take all but the last byte of what a connection has."""
    def status_of(headers):
        with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT) as connection:
            with contextlib.suppress(ConnectionError):  # it is refused before all was sent
                connection.sendall(b"\r\n".join([
                    b"POST /tokenize HTTP/1.1", b"Host: x", b"Content-Length: 900", *headers, b"",
                    b"a" * 900]))
                return connection.recv(65536)[9:12]
            return b""
    with Server() as server:
        for size in (*range(24500, 24540, 7), *range(31700, 32600), 40000):
            status = status_of([b"X: " + b"a" * size])
            assert status in (b"431", b""), (size, status)
        for n in range(330, 700):
            status = status_of([b"H:"] * n)
            assert status in (b"431", b""), (n, status)
        equal(status_of([b"X: " + b"a" * 20000]), b"400")
        equal(status_of([b"H:"] * 200), b"400")


def test_raw_requests():
    with Server() as server:
        head = b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: "
        both = send(server, head + b"2\r\nTransfer-Encoding: chunked\r\n\r\n{}")
        assert both.startswith(b"HTTP/1.1 400 "), both
        large = send(server, head + b"99999999999\r\n\r\n{}")
        assert large.startswith(b"HTTP/1.1 413 "), large
        body = b"".join(b"%X\r\n%s\r\n" % (size, b" " * size) for size in (1 << 22, 1 << 22, 2))
        chunks = head[:-16] + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"
        large = send(server, chunks)
        assert large.startswith(b"HTTP/1.1 413 "), large
        two = send(server, head + b"2\r\nContent-Length: 3\r\n\r\n{}")
        assert two.startswith(b"HTTP/1.1 400 "), two
        packed = send(server, head + b"2\r\nContent-Encoding: gzip\r\n\r\n{}")
        assert packed.startswith(b"HTTP/1.1 415 "), packed
        server.get("/tokenize", {"content": "a"}, headers={"Content-Encoding": "identity"})
        for target, status in (("http://x/v1/models", 200), ("http://x:80/health?a=b", 200),
                               ("http://x", 200), ("/v1/models%00", 404), ("/v1%2fmodels", 200),
                               ("/v1/models/%E4%zz", 404)):
            equal((target, server.ask(target)[0]), (target, status))
        nobody = send(server, b"GET /health HTTP/1.1\r\n\r\n")
        assert nobody.startswith(b"HTTP/1.1 400 "), nobody
        send(server, b"\x00\xff\x00")
        send(server, b"GET / HTTP/9.9\r\n\r\n")
        equal(server.get("/health"), {"status": "ok"})


# ---- Many ----

def test_many_at_once():
    """Each gets what it would get alone."""
    with Server("--parallel", 6) as server:
        bodies = [{**USER, "messages": [{"role": "user", "content": "Tell me " + "more " * i}],
                   "max_tokens": 8 + i} for i in range(12)]
        alone = [text_of(server.get(CHAT, body)) for body in bodies]
        got = [None] * len(bodies)

        def ask(i):
            if i % 2:
                events = server.events(CHAT, bodies[i])
                got[i] = "".join(d["delta"].get("content") or "" for e in events
                                 for d in e["choices"])
            else:
                got[i] = text_of(server.get(CHAT, bodies[i]))
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(bodies))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(got, alone)


LONG = {**USER, "max_tokens": 400, "ignore_eos": True, "stream": True}


@contextlib.contextmanager
def reading(server, body=LONG):
    """A stream of which the head and a part have come."""
    connection = server.connect()
    connection.request("POST", CHAT, json.dumps(body))
    answer = connection.getresponse()
    answer.read(20)
    try:
        yield answer
    finally:
        connection.close()


def wait_until(condition):
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.02)


def test_queue():
    with Server("--parallel", 1, "--max-queue", 1, "--context-shift") as server:
        with reading(server, {**LONG, "max_tokens": -1}), contextlib.ExitStack() as waiting:
            second = server.connect()
            waiting.callback(second.close)
            second.request("POST", CHAT, json.dumps(USER))
            refused = []

            def is_refused():
                status, headers, _ = server.ask(CHAT, USER)
                refused.append(headers["Retry-After"] if status == 503 else None)
                return status == 503
            wait_until(is_refused)
            equal(refused[-1], "1")
            equal(server.get("/health"), {"status": "ok"})
        equal(len(text_of(server.get(CHAT, USER))) > 0, True)


def test_client_goes_away():
    """Its place is free for others."""
    with Server("--parallel", 1) as server:
        for _ in range(3):
            with reading(server):
                pass
        equal(len(text_of(server.get(CHAT, USER))) > 0, True)


def test_half_requests():
    """Connections that send no whole request do not stand in the way, and end."""
    with Server("--timeout", 1) as server, contextlib.ExitStack() as open_ones:
        halves = [b"", b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n",
                  b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"]
        sockets = []
        for i in range(150):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT)
            open_ones.callback(connection.close)
            connection.sendall(halves[i % 3])
            sockets.append(connection)
        equal(server.get("/health"), {"status": "ok"})
        assert text_of(server.get(CHAT, USER))
        for connection in sockets[:6]:
            while connection.recv(4096):
                pass


def test_slow_requests():
    """A byte now and then does not keep a place."""
    with Server("--timeout", 1) as server:
        for text in (b"GET /health HTTP/1.1\r\nHost: x\r\nA: ",
                     b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=0.2) as connection:
                connection.sendall(text)
                end = time.monotonic() + TIMEOUT
                is_open = True
                while is_open:
                    assert time.monotonic() < end, "it does not end"
                    with contextlib.suppress(TimeoutError):
                        is_open = connection.recv(10) != b""
                    with contextlib.suppress(OSError):
                        connection.sendall(b"a")


# ---- Ends ----

def test_ends_on_request():
    with Server() as server, reading(server) as answer:
        server.process.send_signal(signal.SIGTERM)
        rest = answer.read().decode()
        equal(server.process.wait(TIMEOUT), 0)
        assert "shutting down" in rest, rest[-200:]


def test_ends_with_a_queue():
    """Requests that wait, and those that have not been read yet, get an answer."""
    with Server("--parallel", 1, "--max-queue", 100) as server, reading(server):
        connections = [server.connect() for _ in range(40)]
        for connection in connections:
            connection.request("POST", CHAT, json.dumps(USER))
        server.process.send_signal(signal.SIGTERM)
        for connection in connections:
            with contextlib.suppress(ConnectionError):  # it came too late
                answer = connection.getresponse()
                assert answer.status in (200, 503), answer.status
                answer.read()
            connection.close()
        equal(server.process.wait(TIMEOUT), 0)


def test_address_in_use():
    with Server() as server:
        done = wick("serve", MODEL, "--port", server.port)
        equal(done.returncode, 1)
        assert b"in use" in done.stderr, done.stderr


def test_socket():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "wick.sock")
        process = start("serve", MODEL, "--socket", path)
        process.stderr.readline()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert b'{"status":"ok"}' in connection.recv(4096)
        process.send_signal(signal.SIGTERM)
        equal(process.wait(TIMEOUT), 0)
        assert not os.path.exists(path)
        process.stdout.close()
        process.stderr.close()


def test_socket_of_a_killed_server():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "wick.sock")
        for end in (signal.SIGKILL, signal.SIGTERM):
            process = start("serve", MODEL, "--socket", path)
            assert process.stderr.readline().startswith(b"Listening at unix:")
            if end == signal.SIGTERM:
                equal(wick("serve", MODEL, "--socket", path).returncode, 1)
            process.send_signal(end)
            process.wait(TIMEOUT)
            process.stdout.close()
            process.stderr.close()


def run(names):
    """As main, where the command can serve."""
    built = wick("serve", MODEL, "--host", "256.0.0.1", "--port", "0")
    if b"libmicrohttpd" in built.stderr:
        print("the command was built without libmicrohttpd (libmicrohttpd-dev)")
        sys.exit(77)
    sys.exit(main(names))


if __name__ == "__main__":
    run(globals())
