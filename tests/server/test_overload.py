"""wick serve under load: more requests than it admits, clients that stall, go away or send garbage.

Each case takes a few seconds, with WICK_TEST_ALL=1 a minute. The environment is that of
../cli/command.py. How fast it was is printed; limits of time are far above it, for other programs
may run on the machine."""

import asyncio
import contextlib
import json
import os
import random
import resource
import signal
import socket
import statistics
import struct
import tempfile
import time

from test_serve import CHAT, GREEDY, LONG, TEXT, TIMEOUT, USER, Server, equal, run

SECONDS = 60 if os.environ.get("WICK_TEST_ALL") == "1" else 3
SEED = int(os.environ.get("WICK_TEST_SEED", random.randrange(1 << 32)))
MORE_MEMORY = 6 << 20  # bytes that a round may add at the end: what the allocator has in pieces
ROUNDS = 5  # after which memory must be at rest: a busy machine comes late to all sequences
CACHE = ("--cache-limit", "4M")
SOON = 10  # seconds; 0.1 and 0.2 on a machine that does nothing else


# ---- Clients ----

async def connect(server):
    return await asyncio.open_connection("127.0.0.1", server.port)


def bytes_of(path, body, *headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Connection: close",
             f"Content-Length: {len(content)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


async def answer_of(reader):
    """The status, the headers and the body of an answer after which the connection ends."""
    whole = await asyncio.wait_for(reader.read(), TIMEOUT)
    head, _, content = whole.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        content = unchunked(content)
    return int(first.split()[1]), headers, content


def unchunked(content):
    parts = []
    while True:
        size, _, content = content.partition(b"\r\n")
        n = int(size, 16)
        if n == 0:
            return b"".join(parts)
        parts.append(content[:n])
        equal(content[n:n + 2], b"\r\n")
        content = content[n + 2:]


async def ask(server, path, body):
    reader, writer = await connect(server)
    writer.write(bytes_of(path, body))
    got = await answer_of(reader)
    writer.close()
    return got


async def health(server):
    """The seconds until the answer."""
    since = time.monotonic()
    reader, writer = await connect(server)
    writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    status, _, content = await answer_of(reader)
    writer.close()
    equal((status, content), (200, b'{"status":"ok"}'))
    return time.monotonic() - since


def marked(number):
    """A request with an answer of its own, in one of the APIs, and how its text is found."""
    mark = f"{number:06d}"
    form = {"grammar": f'root ::= "{mark} {mark} {mark} {mark}"', "max_tokens": 100}
    chat, text = {**form, "messages": USER["messages"]}, {**form, "prompt": f"{mark} is"}
    words = " ".join([mark] * 4)
    schema = {"type": "object", "required": ["mark"], "properties": {"mark": {"const": words}}}
    tool = {"max_tokens": 200, "messages": USER["messages"], "tool_choice": {"type": "any"},
            "tools": [{"name": "tell", "input_schema": schema}]}
    kinds = [
        (CHAT, chat, lambda c: json.loads(c)["choices"][0]["message"]["content"]),
        (TEXT, text, lambda c: json.loads(c)["choices"][0]["text"]),
        ("/completion", text, lambda c: json.loads(c)["content"]),
        ("/v1/messages", tool, lambda c: json.loads(c)["content"][0]["input"]["mark"]),
        (CHAT, {**chat, "stream": True}, lambda c: "".join(
            choice["delta"].get("content") or "" for choice in choices_of(c))),
        (TEXT, {**text, "stream": True}, lambda c: "".join(
            choice["text"] for choice in choices_of(c))),
    ]
    return *kinds[number % len(kinds)], words


def choices_of(content):
    events = [event for event in content.decode().removesuffix("\n\n").split("\n\n")
              if event != ": waiting"]
    equal(events[-1], "data: [DONE]")
    return [choice for event in events[:-1] for choice in json.loads(event[6:])["choices"]]


# ---- The server ----

def memory(server):
    """Bytes of its resident memory."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS"))


def processor_seconds(server):
    with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def answers_rightly(server):
    """Nothing is left of what others asked for."""
    answer = server.get(TEXT, {"prompt": GREEDY["prompt"], "temperature": 0, "max_tokens": 8})
    text = answer["choices"][0]["text"]
    assert text and GREEDY["text"][len(GREEDY["prompt"]):].startswith(text), text
    equal([slot["is_processing"] for slot in server.get("/slots")],
          [False] * len(server.get("/slots")))


class Load:
    """Clients that do one thing again and again for some seconds; what was seen meanwhile."""

    def __init__(self, server, seconds=SECONDS):
        self.server, self.seconds = server, seconds
        self.random = random.Random(SEED)
        self.delays, self.number = [], 0

    def next_number(self):
        self.number += 1
        return self.number

    async def repeat(self, client, end):
        while time.monotonic() < end:
            await client(self)

    async def watch(self, end):
        while time.monotonic() < end:
            self.delays.append(await health(self.server))
            await asyncio.sleep(0.05)

    async def run_once(self, client, n):
        end = time.monotonic() + self.seconds / 2
        await asyncio.gather(self.watch(end), *(self.repeat(client, end) for _ in range(n)))

    def run(self, client, n):
        """Twice at least: the first round shows what memory the load takes."""
        asyncio.run(self.run_once(client, n))
        for _ in range(ROUNDS - 1):
            before = memory(self.server)
            asyncio.run(self.run_once(client, n))
            grown = memory(self.server) - before
            if grown < MORE_MEMORY:
                break
        median, longest = 1e3 * statistics.median(self.delays), 1e3 * max(self.delays)
        print(f"# {self.number} requests; /health: median {median:.1f} ms, longest {longest:.0f}"
              f" ms; memory {before >> 20} MiB {grown / (1 << 20):+.1f} MiB")
        assert grown < MORE_MEMORY, f"{grown} bytes more"
        assert statistics.median(self.delays) < SOON, self.delays


# ---- Cases ----

def test_more_than_it_admits():
    """Each request is answered with its own text, or refused with when to come again."""
    counts = {200: 0, 503: 0}

    async def client(load):
        path, body, text_of, expected = marked(load.next_number())
        status, headers, content = await ask(load.server, path, body)
        counts[status] += 1
        if status == 200:
            equal(text_of(content), expected)
        else:
            equal(headers["retry-after"], "1")
            assert "queue" in content.decode(), content
            await asyncio.sleep(0.02)
    with Server("--parallel", 4, "--max-queue", 8, *CACHE) as server:
        load = Load(server)
        load.run(client, 120)
        print(f"# {counts[200]} were answered, {counts[503]} refused")
        assert min(counts.values()) > 0, counts
        equal(sum(counts.values()), load.number)
        answers_rightly(server)


HALVES = [b"", b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n",
          b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"content\":"]


def test_half_open_connections():
    """600 of them; a request beside them is answered, and they end by themselves."""
    async def run(server):
        await asyncio.gather(*(open_half(server, HALVES[i % 3]) for i in range(600)))
        since = time.monotonic()
        equal((await ask(server, CHAT, USER))[0], 200)
        print(f"# answered after {time.monotonic() - since:.2f} s")
        for reader, writer in halves:
            with contextlib.suppress(ConnectionError):
                await asyncio.wait_for(reader.read(), TIMEOUT)
            writer.close()

    async def open_half(server, half):
        reader, writer = await connect(server)
        writer.write(half)
        halves.append((reader, writer))
    halves = []
    with Server("--timeout", 3) as server:
        asyncio.run(run(server))
        equal(len(halves), 600)
        answers_rightly(server)


def test_readers_that_read_nothing():
    """Their texts wait, others go on; they lose their places."""
    large = {"logprobs": True, "top_logprobs": 20}  # events, which fill what the system keeps
    body = bytes_of(CHAT, {**LONG, **large, "max_tokens": -1})
    with Server("--parallel", 52, "--context-shift", "--timeout", 2) as server, \
            contextlib.ExitStack() as open_ones:
        for _ in range(50):
            reader = socket.socket()
            open_ones.callback(reader.close)
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", server.port))
            reader.sendall(body)
        equal(server.get(CHAT, USER)["choices"][0]["finish_reason"], "length")
        end = time.monotonic() + 2 * TIMEOUT
        largest = 0
        while any(slot["is_processing"] for slot in server.get("/slots")):
            assert time.monotonic() < end, "they keep their places"
            largest = max(largest, memory(server))
            time.sleep(0.2)
        print(f"# at most {largest >> 20} MiB")
        answers_rightly(server)


def test_clients_that_go_away():
    """At random moments, with and without a reset, in the request and in the answer."""
    async def client(load):
        number = load.next_number()
        choose = load.random
        path, body, text_of, expected = marked(number)
        if choose.random() < 0.3:
            status, _, content = await ask(load.server, path, body)
            if status == 200:
                equal(text_of(content), expected)
            return
        request = bytes_of(path, choose.choice([body, {**LONG, "prompt": "a", "max_tokens": 300}]))
        with contextlib.suppress(ConnectionError):
            reader, writer = await connect(load.server)
            if choose.random() < 0.5:  # a reset
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.write(request[:choose.randrange(1, len(request) + 1)
                                 if choose.random() < 0.3 else None])
            await asyncio.sleep(choose.random() * 0.1)
            if choose.random() < 0.5:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(choose.randrange(1, 2000)), 0.2)
            writer.close()
    with Server("--parallel", 8, *CACHE) as server:
        Load(server).run(client, 40)
        answers_rightly(server)


def test_a_place_is_free_soon():
    """After its client went away, whether the text has begun or is being read."""
    delays = []
    prompts = [USER["messages"], [{"role": "user", "content": "word " * 400}]]
    with Server("--parallel", 1, "--context-shift", "-c", 1024) as server:
        for messages in prompts * 5:
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT)
            connection.sendall(bytes_of(CHAT, {**LONG, "messages": messages, "max_tokens": -1}))
            while not server.get("/slots")[0]["is_processing"]:
                pass
            connection.close()
            since = time.monotonic()
            while server.get("/slots")[0]["is_processing"]:
                assert time.monotonic() - since < TIMEOUT, "it is not free"
            delays.append(time.monotonic() - since)
    print(f"# after {1e3 * statistics.median(delays):.0f} ms, at most {1e3 * max(delays):.0f}")
    assert statistics.median(delays) < SOON, delays


def garbage(choose):
    """A request that makes no sense, or little."""
    path = choose.choice([CHAT, TEXT, "/completion", "/v1/messages", "/v1/responses", "/api/chat",
                          "/v1/embeddings", "/tokenize", "/infill", "/slots/0", "/lora-adapters"])
    body = bytearray(json.dumps({
        **USER, "prompt": "a", "input": "b", "max_tokens": 4, "stop": ["x"], "logit_bias": {"5": 1},
        "response_format": {"type": "json_object"}, "tools": [], "stream": False}).encode())
    for _ in range(choose.randrange(1, 8)):
        at = choose.randrange(len(body))
        body[at:at + choose.randrange(8)] = choose.choice([
            bytes([choose.randrange(256)]), b"null", b"1e999", b"[" * choose.randrange(300),
            b"\"\\ud800\"", b"{\"a\":", b"", b"-1", b"\x00", b",,", b"99999999999999999999"])
    headers = choose.choice([
        [], ["X: " + "a" * choose.randrange(40000)], ["Content-Type: \x01"],
        ["Transfer-Encoding: chunked"], ["Content-Length: 5"], ["Expect: 100-continue"],
        ["A" * 3000], [f"H{i}: {i}" for i in range(choose.randrange(400))], ["Range: bytes=0-"]])
    return bytes_of(path, bytes(body), *headers)


def test_garbage():
    """Bodies and headers that make no sense are refused, and harm no other client."""
    statuses = {}

    async def client(load):
        number = load.next_number()
        if number % 4 == 0:
            path, body, text_of, expected = marked(number)
            status, _, content = await ask(load.server, path, body)
            equal((status, text_of(content)), (200, expected))
            return
        request = garbage(load.random)
        if load.random.random() < 0.2:
            request = load.random.randbytes(load.random.randrange(1, 2000)) + b"\r\n\r\n"
        with contextlib.suppress(OSError):  # reset before all of it was sent
            reader, writer = await connect(load.server)
            writer.write(request)
            if load.random.random() < 0.5:
                writer.write_eof()
            first = await asyncio.wait_for(reader.read(12), TIMEOUT)
            statuses[first[9:12]] = statuses.get(first[9:12], 0) + 1
            writer.close()
    with Server("--parallel", 8, "--max-queue", 1000, "--timeout", 2, *CACHE) as server:
        Load(server).run(client, 20)
        print(f"# {({k.decode(): n for k, n in sorted(statuses.items())})}")
        assert not any(status.startswith(b"5") for status in statuses
                       if status != b"501"), statuses
        answers_rightly(server)


def test_kill_and_restart():
    """One that was killed while it answered leaves nothing that stands in the way of the next."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--prefix-cache", folder, "--slot-save-path", folder]
        with Server(*options) as first:
            port = first.port
            answers_rightly(first)
            streams = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
            for stream in streams:
                stream.sendall(bytes_of(CHAT, LONG))
            for stream in streams[:4]:
                stream.recv(100)
            first.process.send_signal(signal.SIGKILL)
            first.process.wait(TIMEOUT)
            for stream in streams:
                stream.close()
        for _ in range(2):
            with Server(*options, "--port", port) as again:
                equal(again.port, port)
                answers_rightly(again)
                again.process.send_signal(signal.SIGTERM)
                equal(again.process.wait(TIMEOUT), 0)


def test_idle():
    """No processor time while there is no request, also with connections that wait."""
    with Server() as server, contextlib.ExitStack() as open_ones:
        answers_rightly(server)
        for half in HALVES:
            connection = socket.create_connection(("127.0.0.1", server.port))
            open_ones.callback(connection.close)
            connection.sendall(half)
        before = processor_seconds(server)
        time.sleep(3)
        spent = processor_seconds(server) - before
        print(f"# {100 * spent / 3:.1f} % of a core")
        assert spent < 0.03 * 3, spent


def test_ends_under_load():
    """SIGTERM: each stream gets its last event, what waits an answer, and the status is 0."""
    async def run(server):
        streams = [await connect(server) for _ in range(40)]
        for _, writer in streams:
            writer.write(bytes_of(CHAT, LONG))
        begun = [await reader.read(1) for reader, _ in streams[:8]]
        equal(begun, [b"H"] * 8)
        server.process.send_signal(signal.SIGTERM)
        since = time.monotonic()
        for index, (reader, writer) in enumerate(streams):
            first = b"H" if index < 8 else b""
            whole = first + await asyncio.wait_for(reader.read(), TIMEOUT)
            head, _, content = whole.partition(b"\r\n\r\n")
            writer.close()
            if b" 503 " in head[:20]:
                assert b"error" in content, content
                continue
            last = unchunked(content).decode().removesuffix("\n\n").rsplit("\n\n", 1)[1]
            assert last == "data: [DONE]" or "shutting down" in last, last
        equal(await asyncio.to_thread(server.process.wait, TIMEOUT), 0)
        print(f"# ended after {time.monotonic() - since:.2f} s")
    with Server("--parallel", 8, "--max-queue", 100) as server:
        asyncio.run(run(server))


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    print(f"# WICK_TEST_SEED={SEED}")
    run(globals())
