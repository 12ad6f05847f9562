"""The official clients of OpenAI (and langchain over it), Anthropic and ollama against wick serve,
with strict validation where they have it. They are installed into an environment of their own,
where that is possible."""

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_serve import Server, USER, equal, main  # noqa: E402

PACKAGES = ["openai", "anthropic", "ollama", "langchain-openai"]
PARAMETERS = {"type": "object", "required": ["days"], "additionalProperties": False,
              "properties": {"days": {"type": "integer", "minimum": 1, "maximum": 9}}}
WORDS = {"messages": USER["messages"], "model": "any"}


def openai_client(server):
    import openai
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none",
                         max_retries=0, _strict_response_validation=True)


def anthropic_client(server):
    import anthropic
    return anthropic.Anthropic(base_url=f"http://127.0.0.1:{server.port}", api_key="none",
                               max_retries=0, _strict_response_validation=True)


def test_openai_models():
    import openai
    with Server() as server, openai_client(server) as client:
        equal([model.id for model in client.models.list().data], ["tales"])
        equal(client.models.retrieve("tales").id, "tales")
        try:
            client.models.retrieve("other")
            raise AssertionError("there is no such model")
        except openai.NotFoundError as e:
            assert "no model" in str(e), e


def test_openai_chat():
    import openai
    with Server() as server, openai_client(server) as client:
        chat = client.chat.completions
        answer = chat.create(**WORDS, max_tokens=12, n=2, seed=1, logprobs=True, top_logprobs=3)
        equal(len(answer.choices), 2)
        equal(len(answer.choices[0].logprobs.content), 12)
        text = chat.create(**WORDS, max_tokens=12, temperature=0).choices[0].message.content
        stream = list(chat.create(**WORDS, max_tokens=12, temperature=0, stream=True,
                                  stream_options={"include_usage": True}))
        equal("".join(c.choices[0].delta.content or "" for c in stream if c.choices), text)
        equal(stream[-1].usage.completion_tokens, 12)
        try:
            chat.create(model="any", messages=[])
            raise AssertionError("there are no messages")
        except openai.BadRequestError as e:
            assert "messages" in str(e), e


def test_openai_tools():
    tools = [{"type": "function", "function": {"name": "rain", "parameters": PARAMETERS}}]
    with Server() as server, openai_client(server) as client:
        chat = client.chat.completions
        answer = chat.create(**WORDS, tools=tools, tool_choice="required", max_tokens=100)
        message = answer.choices[0].message
        assert 1 <= json.loads(message.tool_calls[0].function.arguments)["days"] <= 9
        messages = [*USER["messages"], message,
                    {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "no"}]
        assert chat.create(model="any", messages=messages, tools=tools, max_tokens=5).choices
        chunks = list(chat.create(**WORDS, tools=tools, max_tokens=100, stream=True, tool_choice={
            "type": "function", "function": {"name": "rain"}}))
        calls = [c for k in chunks for c in k.choices[0].delta.tool_calls or []]
        equal([c.function.name for c in calls], ["rain"])
        schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": PARAMETERS}}
        answer = chat.create(**WORDS, response_format=schema, max_tokens=100)
        assert 1 <= json.loads(answer.choices[0].message.content)["days"] <= 9


def test_openai_completions():
    with Server() as server, openai_client(server) as client:
        answer = client.completions.create(model="any", prompt=["One day", "Once"], max_tokens=4)
        equal(len(answer.choices), 2)


def test_openai_embeddings():
    with Server() as server, openai_client(server) as client:
        # Without encoding_format the client asks for base64, which its own schema refuses.
        ask = {"model": "any", "encoding_format": "float"}
        two = client.embeddings.create(**ask, input=["One day", "Once"]).data
        one = client.embeddings.create(**ask, input="Once").data
        assert max(abs(a - b) for a, b in zip(two[1].embedding, one[0].embedding)) < 1e-6


def test_openai_responses():
    tools = [{"type": "function", "name": "rain", "strict": True, "parameters": PARAMETERS}]
    asked = {"model": "any", "input": "Rain?", "max_output_tokens": 100, "temperature": 0}
    with Server() as server, openai_client(server) as client:
        answer = client.responses.create(**asked, instructions="Be brief")
        assert answer.output_text
        called = client.responses.create(**asked, tools=tools, tool_choice="required").output[0]
        equal(called.name, "rain")
        items = [{"role": "user", "content": "Rain?"}, called.model_dump(),
                 {"type": "function_call_output", "call_id": called.call_id, "output": "no"}]
        assert client.responses.create(**{**asked, "input": items}, tools=tools).output
        plain = client.responses.create(**asked)
        events = list(client.responses.create(**asked, stream=True))
        equal(events[-1].response.output_text, plain.output_text)
        with client.responses.stream(**asked, tools=tools, tool_choice="required") as stream:
            for _ in stream:
                pass
            equal(stream.get_final_response().output[0].name, "rain")
        assert client.responses.input_tokens.count(model="any", input="Rain?").input_tokens > 0


def test_anthropic():
    import anthropic
    tools = [{"name": "rain", "input_schema": PARAMETERS}]
    asked = {**WORDS, "max_tokens": 100}
    with Server() as server, anthropic_client(server) as client:
        assert client.messages.create(**asked, system="Be brief").content[0].text
        called = client.messages.create(**asked, tools=tools, tool_choice={"type": "any"})
        equal(called.stop_reason, "tool_use")
        use = called.content[0]
        messages = [*USER["messages"],
                    {"role": "assistant", "content": [b.model_dump() for b in called.content]},
                    {"role": "user", "content": [{"type": "tool_result", "content": "no",
                                                  "tool_use_id": use.id}]}]
        assert client.messages.create(**{**asked, "messages": messages}, tools=tools).content
        with client.messages.stream(**asked) as stream:
            text = "".join(stream.text_stream)
            equal(stream.get_final_message().content[0].text, text)
        with client.messages.stream(**asked, tools=tools, tool_choice={
                "type": "tool", "name": "rain"}) as stream:
            assert 1 <= stream.get_final_message().content[0].input["days"] <= 9
        assert client.messages.count_tokens(**WORDS).input_tokens > 0
        try:
            client.messages.create(model="any", messages=[], max_tokens=1)
            raise AssertionError("there are no messages")
        except anthropic.BadRequestError as e:
            assert "messages" in str(e), e


def test_ollama():
    import ollama
    with Server() as server:
        client = ollama.Client(host=f"http://127.0.0.1:{server.port}")
        options = {"num_predict": 12, "temperature": 0}
        text = client.chat("any", USER["messages"], options=options).message.content
        parts = client.chat("any", USER["messages"], options=options, stream=True)
        equal("".join(part.message.content for part in parts), text)
        assert client.generate("any", "Once", options=options).response
        equal(len(client.embed("any", ["One day", "Once"]).embeddings), 2)
        equal([model.model for model in client.list().models], ["tales"])
        equal(client.show("any").details.family, "llama")


def test_langchain():
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings
    with Server() as server:
        place = {"base_url": f"http://127.0.0.1:{server.port}/v1", "api_key": "none"}
        chat = ChatOpenAI(model="any", max_tokens=12, temperature=0, **place)
        text = chat.invoke("Once upon a time").content
        equal("".join(chunk.content for chunk in chat.stream("Once upon a time")), text)
        tool = {"type": "function", "function": {"name": "rain", "parameters": PARAMETERS}}
        bound = ChatOpenAI(model="any", max_tokens=100, **place).bind_tools(
            [tool], tool_choice="required")
        equal(bound.invoke("Rain?").tool_calls[0]["name"], "rain")
        vectors = OpenAIEmbeddings(model="any", check_embedding_ctx_length=False, **place)
        equal(len(vectors.embed_documents(["One day", "Once"])), 2)


PIXEL = ("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8A"
         "AQUBAScY42YAAAAASUVORK5CYII=")


def refuses(error, word, call):
    try:
        call()
    except error as e:
        assert word in str(e), e
        return
    raise AssertionError("it is not refused")


def test_openai_helpers():
    """The helpers that parse and stream by themselves, and what a request may ask besides."""
    import openai
    import pydantic

    class Rain(pydantic.BaseModel):
        days: int
        heavy: bool

    with Server() as server, openai_client(server) as client:
        chat = client.chat.completions
        parsed = chat.parse(**WORDS, response_format=Rain, max_tokens=100)
        assert isinstance(parsed.choices[0].message.parsed, Rain), parsed
        tool = openai.pydantic_function_tool(Rain)
        called = chat.parse(**WORDS, tools=[tool], tool_choice="required", max_tokens=100)
        call = called.choices[0].message.tool_calls[0].function
        assert isinstance(call.parsed_arguments, Rain), call
        with chat.stream(**WORDS, response_format=Rain, max_tokens=100, logprobs=True) as stream:
            kinds = {event.type for event in stream}
            assert isinstance(stream.get_final_completion().choices[0].message.parsed, Rain)
        assert {"chunk", "content.delta", "content.done", "logprobs.content.delta"} <= kinds, kinds
        with client.responses.stream(model="any", input="Rain?", text_format=Rain,
                                     max_output_tokens=100) as stream:
            assert {event.type for event in stream} >= {"response.completed"}
            assert isinstance(stream.get_final_response().output_parsed, Rain)
        seeded = [chat.create(**WORDS, max_completion_tokens=8, seed=5, temperature=1.5)
                  .choices[0].message.content for _ in range(2)]
        equal(*seeded)
        stopped = chat.create(**WORDS, stop=[seeded[0][3:6]], seed=5, temperature=1.5)
        equal((stopped.choices[0].finish_reason, stopped.choices[0].message.content),
              ("stop", seeded[0][:seeded[0].index(seeded[0][3:6])]))
        image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}]
        refuses(openai.BadRequestError, "this model cannot read images",
                lambda: chat.create(model="any", messages=image))
        image[0]["content"] = [{"type": "input_image", "image_url": PIXEL, "detail": "low"}]
        refuses(openai.BadRequestError, "this model cannot read images",
                lambda: client.responses.create(model="any", input=image))
        refuses(openai.BadRequestError, "context", lambda: chat.create(
            model="any", messages=[{"role": "user", "content": "word " * 100000}]))
        refuses(openai.NotFoundError, "nothing", lambda: client.images.generate(
            model="any", prompt="x"))


def test_openai_async():
    """Many streams at once, some of them left."""
    import asyncio
    import openai

    async def one(client, i):
        stream = await client.chat.completions.create(
            model="any", messages=USER["messages"], temperature=0, max_tokens=4 + i, stream=True)
        text = ""
        async for chunk in stream:
            text += chunk.choices[0].delta.content or ""
            if i % 3 == 2:
                await stream.close()
                return None
        return text

    async def run(server):
        async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{server.port}/v1",
                                      api_key="none", _strict_response_validation=True) as client:
            return await asyncio.gather(*(one(client, i) for i in range(12)))
    with Server() as server:
        texts = [text for text in asyncio.run(run(server)) if text is not None]
        equal(len(texts), 8)
        longest = max(texts, key=len)
        assert all(longest.startswith(text.rstrip("\ufffd")) for text in texts), texts


def test_anthropic_more():
    import anthropic
    # The client's own types have no temperature any more.
    asked = {**WORDS, "max_tokens": 40, "extra_body": {"temperature": 0}}
    with Server() as server, anthropic_client(server) as client:
        text = client.messages.create(**asked).content[0].text
        word = text.split()[3]
        stopped = client.messages.create(**asked, stop_sequences=[word])
        equal((stopped.stop_reason, stopped.stop_sequence), ("stop_sequence", word))
        begun = [*USER["messages"], {"role": "assistant", "content": "Once upon a"}]
        more = client.messages.create(**{**asked, "messages": begun}).content[0].text
        assert more and not more.startswith("Once"), more
        blocks = [{"type": "text", "text": "Be brief", "cache_control": {"type": "ephemeral"}}]
        assert client.messages.create(**asked, system=blocks).usage.input_tokens > 0
        image = [{"role": "user", "content": [{"type": "image", "source": {
            "type": "base64", "media_type": "image/png", "data": PIXEL.split(",")[1]}}]}]
        refuses(anthropic.BadRequestError, "this model cannot read images",
                lambda: client.messages.create(**{**asked, "messages": image}))


def test_ollama_more():
    import ollama
    with Server() as server:
        client = ollama.Client(host=f"http://127.0.0.1:{server.port}")
        said = client.chat("any", USER["messages"], format=PARAMETERS,
                           options={"num_predict": 100}).message.content
        assert 1 <= json.loads(said)["days"] <= 9, said
        parts = list(client.generate("any", "Once", stream=True, options={"num_predict": 5}))
        equal((parts[-1].done, parts[-1].eval_count), (True, 5))
        said = client.generate("any", "Once", logprobs=True, top_logprobs=2,
                               options={"num_predict": 5})
        equal([len(t.top_logprobs) for t in said.logprobs], [2] * 5)
        equal(client.chat("any", []).done_reason, "load")
        running = client.ps().models[0]
        equal((running.model, running.details.family), ("tales", "llama"))
        assert running.size_vram > 0 and running.expires_at, running
        shown = client.show("any")
        equal(shown.modelinfo["llama.context_length"], 512)
        assert "tools" in shown.capabilities, shown
        equal(client.embeddings("any", "One day").embedding,
              client.embed("any", "One day").embeddings[0])
        tool = {"type": "function", "function": {"name": "rain", "parameters": PARAMETERS}}
        call = {"function": {"name": "rain", "arguments": {"days": 2}}}
        told = client.chat("any", [*USER["messages"], {"role": "assistant", "tool_calls": [call]},
                                   {"role": "tool", "tool_name": "rain", "content": "no"}],
                           tools=[tool], think="low", options={"num_predict": 5})
        equal(told.eval_count, 5)
        refuses(ollama.ResponseError, "num_predict",
                lambda: client.chat("any", USER["messages"], options={"num_predict": -3}))


def test_openai_settings():
    """What requests say of tools and reasoning, and responses repeat."""
    import openai
    flat = [{"type": "function", "name": name, "strict": True, "parameters": PARAMETERS}
            for name in ("rain", "snow")]
    tools = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}}
             for name in ("rain", "snow")]
    allowed = {"mode": "required", "tools": [{"type": "function", "name": "snow"}]}
    with Server() as server, openai_client(server) as client:
        said = client.responses.create(
            model="any", input="Rain?", instructions="Be brief", metadata={"k": "v"}, tools=flat,
            tool_choice={"type": "allowed_tools", **allowed}, parallel_tool_calls=False,
            truncation="auto", max_output_tokens=100, reasoning={"effort": "low"}, top_p=0.5)
        equal((said.instructions, said.metadata, said.parallel_tool_calls, said.truncation,
               said.max_output_tokens, said.reasoning.effort, said.top_p),
              ("Be brief", {"k": "v"}, False, "auto", 100, "low", 0.5))
        equal((said.status, said.output[0].name, said.tool_choice.mode),
              ("completed", "snow", "required"))
        cut = client.responses.create(model="any", input="Once", max_output_tokens=4,
                                      include=["message.output_text.logprobs"], top_logprobs=2)
        equal([len(t.top_logprobs) for t in cut.output[0].content[0].logprobs], [2] * 4)
        equal((cut.status, cut.output[0].status), ("incomplete", "incomplete"))
        chosen = client.chat.completions.create(
            **WORDS, tools=tools, max_tokens=100, parallel_tool_calls=False,
            reasoning_effort="low", tool_choice={"type": "allowed_tools", "allowed_tools": {
                "mode": "required", "tools": [tools[1]]}}).choices[0].message
        equal(chosen.tool_calls[0].function.name, "snow")
        # Codex offers such tools beside its functions.
        other = [{"type": "web_search"}, {"type": "custom", "name": "hail"}, flat[0]]
        equal(client.responses.create(
            model="any", input="a", tools=other, tool_choice="required", temperature=0,
            max_output_tokens=100).output[0].type, "function_call")
        refuses(openai.BadRequestError, "no such tool", lambda: client.responses.create(
            model="any", input="a", tools=other, tool_choice={"type": "custom", "name": "hail"}))
        refuses(openai.BadRequestError, "functions", lambda: client.chat.completions.create(
            **WORDS, functions=[{"name": "rain"}]))
        refuses(openai.BadRequestError, "mark a gap", lambda: client.completions.create(
            model="any", prompt="a", suffix="b"))


def test_anthropic_outputs():
    import anthropic
    import pydantic

    class Rain(pydantic.BaseModel):
        days: int
        heavy: bool

    tools = [{"name": "rain", "input_schema": {
        "type": "object", "properties": {"place": {"$ref": "#/$defs/P"}}, "required": ["place"],
        "$defs": {"P": {"type": "string", "enum": ["Rome", "Oslo"]}}}}]
    asked = {**WORDS, "max_tokens": 100}
    with Server() as server, anthropic_client(server) as client:
        parsed = client.messages.parse(**asked, output_format=Rain)
        assert isinstance(parsed.parsed_output, Rain), parsed
        called = client.messages.create(**asked, tools=tools, tool_choice={
            "type": "any", "disable_parallel_tool_use": True})
        assert called.content[0].input["place"] in ("Rome", "Oslo"), called
        long = client.messages.count_tokens(model="any", messages=[
            {"role": "user", "content": "word " * 70000}]).input_tokens
        assert long > 70000, long
        refuses(anthropic.BadRequestError, "stop_sequences", lambda: client.messages.create(
            **asked, stop_sequences=[5]))


def test_anthropic_models():
    with Server() as server, anthropic_client(server) as client:
        model = client.models.list().data[0]
        equal((model.id, model.display_name, model.type), ("tales", "tales", "model"))
        equal(client.models.retrieve("tales"), model)


# It asks the server to keep the conversation, and sends all of it where that is refused.
def test_anthropic_tool_runner():
    import anthropic

    @anthropic.beta_tool
    def rain(place: str) -> str:
        """Rain at a place."""
        return "no"

    with Server() as server, anthropic_client(server) as client:
        runner = client.beta.messages.tool_runner(
            **WORDS, max_tokens=100, tools=[rain], max_iterations=2,
            tool_choice={"type": "tool", "name": "rain"})
        equal([message.stop_reason for message in runner], ["tool_use"] * 2)


def test_langchain_more():
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI
    with Server() as server:
        place = {"base_url": f"http://127.0.0.1:{server.port}/v1", "api_key": "none"}
        chat = ChatOpenAI(model="any", max_tokens=100, temperature=0, **place)
        schema = {"title": "rain", "description": "rain", **PARAMETERS}
        for method in ("json_schema", "function_calling"):
            made = chat.with_structured_output(schema, method=method).invoke("Rain?")
            assert 1 <= made["days"] <= 9, made
        tool = {"type": "function", "function": {"name": "rain", "parameters": PARAMETERS}}
        bound = chat.bind_tools([tool], tool_choice="rain")
        whole = None
        for chunk in bound.stream("Rain?"):
            whole = chunk if whole is None else whole + chunk
        call = whole.tool_calls[0]
        equal(call["name"], "rain")
        answer = chat.bind_tools([tool]).invoke([
            HumanMessage("Rain?"), AIMessage("", tool_calls=[call]),
            ToolMessage("no", tool_call_id=call["id"])])
        assert answer.content, answer
        equal(len(chat.batch(["Once", "One day", "Tom"])), 3)


def run_with_clients():
    """This program again, in an environment that has the clients; why not, or None."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            venv.create(folder, with_pip=True)
            python = str(Path(folder) / "bin" / "python")
            subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES],
                           check=True, capture_output=True, timeout=300)
        except (OSError, subprocess.SubprocessError):
            return "packages cannot be installed by pip: " + ", ".join(PACKAGES)
        sys.exit(subprocess.run([python, __file__, "--here", *sys.argv[1:]]).returncode)


if __name__ == "__main__":
    if "--here" in sys.argv:
        sys.argv.remove("--here")
        sys.exit(main({n: f for n, f in globals().items() if n.startswith("test_")}))
    print(run_with_clients())
    sys.exit(77)
