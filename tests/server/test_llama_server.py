"""What llama-server's clients ask for beside OpenAI's fields, and its own shapes of answers.

The environment is that of ../cli/command.py."""

import json
import time

from test_serve import CHAT, GREEDY, TEXT, USER, Server, equal, run, text_of

PROMPT = {"prompt": GREEDY["prompt"], "temperature": 0, "n_predict": 8}
ASKS = [{"role": "user", "content": "Hi"}]


def begun(text, *more):
    return [*ASKS, {"role": "assistant", "content": text, **dict(more)}]


def test_answers_that_go_on():
    """With a last message of the assistant, in each API that has such messages."""
    with Server() as server:
        told = server.get("/apply-template", {"messages": begun("Once upon")})["prompt"]
        equal(told, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nOnce upon")
        parts = [{"type": "text", "text": "Once"}, {"type": "text", "text": "upon"}]
        told = server.get("/apply-template", {"messages": begun(parts)})["prompt"]
        assert told.endswith("<|im_start|>assistant\nOnce\nupon"), told
        closed = server.get("/apply-template", {"messages": begun("Once"),
                                                "add_generation_prompt": False})["prompt"]
        assert closed.endswith("<|im_start|>assistant\nOnce<|im_end|>\n"), closed
        body = {"messages": begun("Once upon a"), "temperature": 0, "max_tokens": 8}
        text = text_of(server.get(CHAT, body))
        assert "Once" not in text[:4], text
        same = {**body, "continue_final_message": True, "add_generation_prompt": False}
        equal(text_of(server.get(CHAT, same)), text)
        equal(server.get("/v1/messages", body)["content"][0]["text"], text)
        chat = {"messages": body["messages"], "stream": False,
                "options": {"temperature": 0, "num_predict": 8}}
        equal(server.get("/api/chat", chat)["message"]["content"], text)
        alone = server.get(TEXT, {"prompt": told.replace("Once\nupon", "Once upon a"),
                                  "temperature": 0, "max_tokens": 8})
        equal(alone["choices"][0]["text"], text)
        server.refuses(400, "exclude", body={**same, "add_generation_prompt": True})
        server.refuses(400, "last two", body={**body, "messages": [*begun("a"), *begun("b")[1:]]})
        server.refuses(400, "continue_final_message", body={**same, "messages": ASKS})
        server.refuses(400, "continue_final_message", body={**same, "continue_final_message": "x"})


def test_thinking_is_over():
    """Where the template begins to think, a content that is given comes after the thoughts."""
    template = "{% for m in messages %}{{ m.content }}|{% endfor %}{{ '<think>\n' }}"
    with Server("--chat-template", template) as server:
        told = server.get("/apply-template", {"messages": begun("Yes")})["prompt"]
        equal(told, "Hi|<think>\n</think>\n\nYes")


def test_date():
    with Server("--chat-template", "{{ strftime_now('%Y-%m-%d') }}") as server:
        before = time.strftime("%Y-%m-%d", time.gmtime())
        told = server.get("/apply-template", {"messages": ASKS})["prompt"]
        assert told in (before, time.strftime("%Y-%m-%d", time.gmtime())), told


def test_response_fields():
    with Server() as server:
        whole = server.get("/completion", PROMPT)
        names = ["content", "generation_settings/n_predict", "timings/predicted_n", "none", "a/b"]
        equal(server.get("/completion", {**PROMPT, "response_fields": names}),
              {"content": whole["content"], "generation_settings/n_predict": 8,
               "timings/predicted_n": 8})
        several = server.get("/completion", {**PROMPT, "prompt": ["a", "b"],
                                             "response_fields": ["index"]})
        equal(several, [{"index": 0}, {"index": 1}])
        assert whole["prompt"].endswith(GREEDY["prompt"]), whole
        server.refuses(400, "response_fields", path="/completion",
                       body={**PROMPT, "response_fields": [1]})


def test_settings():
    with Server() as server:
        def biases(**more):
            answer = server.get("/completion", {**PROMPT, **more})
            return answer["generation_settings"]["logit_bias"]
        equal(biases(), [])
        equal(biases(logit_bias=[[5, 2.5], [6, False]]),
              [{"token": 5, "bias": 2.5}, {"token": 6, "bias": None}])
        assert {"token": 2, "bias": None} in biases(ignore_eos=True)


def test_probabilities_after_sampling():
    """Of the tokens that the filters leave, as llama-server names them; whole and in events."""
    with Server() as server:
        body = {**PROMPT, "temperature": 1, "top_k": 4, "top_p": 1, "min_p": 0, "seed": 3,
                "n_probs": 6, "post_sampling_probs": True}
        whole = server.get("/completion", body)
        equal(whole["generation_settings"]["post_sampling_probs"], True)
        listed = whole["completion_probabilities"]
        equal(len(listed), 8)
        for token in listed:
            equal(sorted(token), ["bytes", "id", "prob", "token", "top_probs"])
            equal(len(token["top_probs"]), 4)
            assert abs(sum(p["prob"] for p in token["top_probs"]) - 1) < 1e-5, token
            assert (token["id"], token["prob"]) in [(p["id"], p["prob"])
                                                    for p in token["top_probs"]], token
        assert any(token["prob"] < 0.9 for token in listed), listed
        equal([p for e in native_events(server, body)
               for p in e.get("completion_probabilities", [])], listed)
        only = server.get("/completion", {**body, "temperature": 0})["completion_probabilities"]
        equal([(t["prob"], [p["prob"] for p in t["top_probs"]]) for t in only], [(1, [1])] * 8)
        asked = server.get("/completion", {**body, "post_sampling_probs": False})
        equal(sorted(asked["completion_probabilities"][0]),
              ["bytes", "id", "logprob", "token", "top_logprobs"])
        chat = server.get(CHAT, {**USER, "logprobs": True, "top_logprobs": 3,
                                 "post_sampling_probs": True})
        for token in chat["choices"][0]["logprobs"]["content"]:
            equal((token["prob"], len(token["top_probs"])), (1, 1))
        server.refuses(400, "post_sampling_probs", path="/completion",
                       body={**body, "post_sampling_probs": 1})


def test_verbose():
    with Server() as server:
        shown = server.get(CHAT, {**USER, "verbose": True})
        equal(shown["__verbose"]["content"], text_of(shown))
        assert "Once upon a time" in shown["__verbose"]["prompt"], shown
        assert "__verbose" not in server.get(CHAT, USER)
    with Server("--verbose") as server:
        assert "__verbose" in server.get(CHAT, USER)


def test_counts():
    with Server() as server:
        for path in ("/chat/completions/input_tokens", "/v1/chat/completions/input_tokens"):
            equal(server.get(path, USER),
                  {"input_tokens": server.get(CHAT, USER)["usage"]["prompt_tokens"]})


def native_events(server, body):
    connection = server.connect()
    connection.request("POST", "/completion", json.dumps({**body, "stream": True}))
    events = connection.getresponse().read().decode()[:-2].split("\n\n")
    connection.close()
    return [json.loads(event[6:]) for event in events]


def test_tokens_of_streams():
    """Each part has its own."""
    body = {"prompt": "Once", "n_predict": 8, "temperature": 0, "return_tokens": True}
    with Server() as server:
        whole = server.get("/completion", body)["tokens"]
        parts = [event["tokens"] for event in native_events(server, body)]
        equal((len(whole), sum(parts, [])), (8, whole))
        assert sum(len(part) > 0 for part in parts) > 1, parts


def test_progress():
    """How much of a prompt was read, first what the cache had; in both kinds of streams."""
    words = " ".join(str(i) for i in range(60))
    for path in ("chat", "native"):
        with Server("--chunk", 64) as server:
            shown = {"return_progress": True, "timings_per_token": True, "temperature": 0}
            for is_again in (False, True):
                if path == "chat":
                    events = server.events(CHAT, {**shown, "max_tokens": 4, "messages": [
                        {"role": "user", "content": words}]})
                else:
                    events = native_events(server, {**shown, "n_predict": 4, "prompt": words})
                seen = [e["prompt_progress"] for e in events if "prompt_progress" in e]
                equal(seen[0]["processed"], seen[0]["cache"])
                equal(seen[-1]["processed"], seen[-1]["total"])
                equal(sorted({p["processed"] for p in seen}), [p["processed"] for p in seen])
                equal(seen[0]["cache"] > 0, is_again)
                assert len(seen) == 2 if is_again else len(seen) > 2, seen
                assert any("timings" in e for e in events), events


def test_first_chunk():
    """It says whose text it is; what follows does not, and has the timings that were asked for."""
    with Server() as server:
        events = server.events(CHAT, {**USER, "timings_per_token": True, "logprobs": True})
        choices = [e["choices"][0] for e in events]
        equal(choices[0]["delta"], {"role": "assistant", "content": None})
        assert "timings" not in events[0], events[0]
        assert all("role" not in c["delta"] and c["logprobs"] for c in choices[1:-1]), choices
        equal(events[-2]["timings"]["predicted_n"], 16)
        tokens = [t["token"] for c in choices[1:-1] for t in c["logprobs"]["content"]]
        equal("".join(tokens), "".join(c["delta"]["content"] for c in choices[1:-1]))


def test_vectors_of_tokens():
    with Server("--pooling", "none") as server:
        ids = server.get("/tokenize", {"content": "One day", "add_special": True})["tokens"]
        for path in ("/embedding", "/embeddings"):
            first, second = server.get(path, {"input": ["One day", ids[:2]]})
            equal((len(first["embedding"]), len(second["embedding"])), (len(ids), 2))
            equal(first["embedding"][:2], second["embedding"])
        server.refuses(400, "no pooling", path="/v1/embeddings", body={"input": "One day"})
        server.refuses(400, "8192", path="/embedding", body={"input": [[1] * 1000] * 9})
    with Server() as server:
        one, = server.get("/embedding", {"input": "One day"})
        equal(one["embedding"][0],
              server.get("/embeddings", {"input": "One day"})["data"][0]["embedding"])


def test_metrics():
    with Server("--metrics") as server:
        server.get(CHAT, USER)
        text = server.get("/metrics").decode()
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
        assert int(values["llamacpp:n_decode_total"]) >= 16, text
        assert 0 < float(values["llamacpp:n_busy_slots_per_decode"]) <= 4, text


def test_timings():
    """The first token comes with the end of the prompt: the rate is over the others."""
    with Server() as server:
        one = server.get("/completion", {**PROMPT, "n_predict": 1})["timings"]
        equal((one["predicted_n"], one["predicted_per_second"]), (1, 0))
        more = server.get("/completion", {**PROMPT, "n_predict": 16})["timings"]
        assert abs(more["predicted_per_second"] * more["predicted_ms"] / 15000 - 1) < 1e-6, more


if __name__ == "__main__":
    run(globals())
