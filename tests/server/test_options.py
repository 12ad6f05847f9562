"""Switches of wick serve: TLS, several addresses, adapters, guesses, a cache that is kept.

The environment is that of ../cli/command.py."""

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
from pathlib import Path

from test_serve import (CHAT, DATA, GREEDY, LONG, MODEL, TEXT, TIMEOUT, USER, Server, equal,
                        reading, run, succeeds, text_of, wait_until, wick)

PROMPT = {"prompt": GREEDY["prompt"], "temperature": 0, "max_tokens": 24}


def text_after(server, **more):
    return server.get(TEXT, {**PROMPT, **more})["choices"][0]["text"]


# ---- TLS ----

class SecureServer(Server):
    scheme = "https"

    def __init__(self, certificate, key, *options):
        self.context = ssl.create_default_context(cafile=certificate)
        super().__init__("--tls-cert", certificate, "--tls-key", key, *options)

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=TIMEOUT,
                                           context=self.context)


def with_certificate(test):
    """test(certificate, key), of files that openssl makes."""
    def run_test():
        if shutil.which("openssl") is None:
            return "openssl is not installed"
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = f"{folder}/cert.pem", f"{folder}/key.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
                            "-days", "2", "-keyout", key, "-out", certificate, "-subj", "/CN=wick",
                            "-addext", "subjectAltName=IP:127.0.0.1"],
                           check=True, capture_output=True)
            return test(certificate, key)
    return run_test


@with_certificate
def test_tls(certificate, key):
    with SecureServer(certificate, key, "--parallel", 2) as server:
        whole = text_of(server.get(CHAT, USER))
        events = server.events(CHAT, USER)
        equal("".join(e["choices"][0]["delta"].get("content") or "" for e in events), whole)
        connection = server.connect()  # several requests on one
        for _ in range(3):
            connection.request("POST", CHAT, json.dumps(USER))
            equal(text_of(json.loads(connection.getresponse().read())), whole)
        connection.close()
        large = {**USER, "messages": [{"role": "user", "content": "word " * 100000}]}
        equal(server.refuses(400, "context", body=large)["type"], "exceed_context_size_error")
        server.refuses(404, "nothing", path="/none")


@with_certificate
def test_tls_clients_that_go_away(certificate, key):
    """In the middle of the handshake, of the request and of the answer; and one without TLS."""
    with SecureServer(certificate, key, "--parallel", 1, "--timeout", 2) as server:
        plain = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT)
        plain.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        while plain.recv(4096):
            pass
        plain.close()
        silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
        for _ in range(3):
            with reading(server, {**LONG, "max_tokens": 2000}):
                equal([s["is_processing"] for s in server.get("/slots")], [True])
            wait_until(lambda: not server.get("/slots")[0]["is_processing"])
        for connection in silent:
            connection.close()
        with reading(server) as answer:
            server.process.send_signal(signal.SIGTERM)
            assert b"shutting down" in answer.read()
            equal(server.process.wait(TIMEOUT), 0)


@with_certificate
def test_tls_files(certificate, key):
    for files, word in ((["--tls-cert", certificate], "belong together"),
                        (["--tls-cert", key, "--tls-key", certificate], "certificate"),
                        (["--tls-cert", "/nowhere", "--tls-key", key], "/nowhere")):
        done = wick("serve", MODEL, "--port", 0, *files)
        assert done.returncode != 0 and word.encode() in done.stderr, done.stderr


# ---- Addresses ----

def test_several_addresses():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return "this machine has no ::1"
    with Server("--host", "127.0.0.1,::1", "--api-key", "x") as server:
        for host in ("127.0.0.1", "::1"):
            connection = http.client.HTTPConnection(host, server.port, timeout=TIMEOUT)
            for headers, status in (({}, 401), ({"x-api-key": "x"}, 200)):
                connection.request("POST", CHAT, json.dumps(USER), headers)
                answer = connection.getresponse()
                answer.read()
                equal(answer.status, status)
            connection.close()
        server.process.send_signal(signal.SIGTERM)
        equal(server.process.wait(TIMEOUT), 0)
    for host, why in (("127.0.0.1,256.0.0.1", b"not known"), (",127.0.0.1", b"not known"),
                      ("", b"no address"), (300 * "h", b"too long"),
                      (",".join(f"127.0.0.{i}" for i in range(1, 100)), b"too many")):
        done = wick("serve", MODEL, "--host", host, "--port", 0)
        equal((done.returncode, len(done.stderr.splitlines())), (1, 1))
        assert b"cannot listen" in done.stderr and why in done.stderr, done.stderr


# ---- Adapters ----

def test_adapters():
    with tempfile.TemporaryDirectory() as folder:
        text, adapter = Path(folder, "text"), os.path.join(folder, "a.gguf")
        text.write_text("The moon is made of cheese. " * 200)
        succeeds("finetune", MODEL, "--data", text, "-o", adapter, "--steps", 12, "--context", 32,
                 "--batch", 2, "--rank", 4, "--rate", 0.02, "--held-out", 0, "-t", 1)
        with Server("--lora", adapter + "=0") as server:
            plain = text_after(server)
            assert GREEDY["text"][len(GREEDY["prompt"]):].startswith(plain), plain
            equal([(a["id"], a["scale"]) for a in server.get("/lora-adapters")], [(0, 0)])
            adapted = text_after(server, lora=[{"id": 0, "scale": 1}])
            assert adapted != plain, adapted
            equal(text_after(server), plain)
            equal(server.get("/lora-adapters", [{"id": 0, "scale": 1}]), {"success": True})
            equal(server.get("/lora-adapters")[0]["scale"], 1)
            equal(text_after(server), adapted)
            equal(text_after(server, lora=[]), plain)
            # Both in the same batches.
            with reading(server, {**LONG, "lora": [{"id": 0, "scale": 0.5}]}):
                equal(text_after(server, lora=[]), plain)
                equal(text_after(server), adapted)
            for wrong, word in (([{"id": 1, "scale": 1}], "id"), ([{"id": 0}], "scale"),
                                ("x", "array")):
                server.refuses(400, word, path=TEXT, body={**PROMPT, "lora": wrong})
            server.refuses(400, "array", path="/lora-adapters", body={})
        equal(wick("serve", MODEL, "--lora", str(text), "--port", 0).returncode, 1)


# ---- Guesses ----

def test_draft():
    """A draft model changes no text; the answer says how many guesses were right."""
    with Server() as server:
        plain = text_after(server, max_tokens=48)
    with Server("--draft", MODEL, "--speculate", "draft", "--metrics") as server:
        equal(text_after(server, max_tokens=48), plain)
        timings = server.get("/completion", {**PROMPT, "n_predict": 48})["timings"]
        assert 0 < timings["draft_n_accepted"] <= timings["draft_n"], timings
        text = server.get("/metrics").decode()
        assert "spec_decode_num_accepted_tokens_total 0" not in text, text
        schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"const": "yes"}}}
        equal(text_of(server.get(CHAT, {**USER, "response_format": schema})), '"yes"')
    equal(wick("serve", MODEL, "--draft", str(DATA / "none.gguf"), "--port", 0).returncode, 1)


# ---- What texts leave ----

def test_prefix_cache():
    """A later server goes on from what an earlier one has read, unless the file is damaged."""
    body = {**PROMPT, "prompt": "One day a girl went to the park to play with her dog. " * 8}

    def cached(folder):
        with Server("--prefix-cache", folder) as server:
            answer = server.get(TEXT, body)
            server.process.send_signal(signal.SIGTERM)
            equal(server.process.wait(TIMEOUT), 0)
            return (answer["choices"][0]["text"],
                    answer["usage"]["prompt_tokens_details"]["cached_tokens"])
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "cache")
        text, n = cached(folder)
        equal(n, 0)
        again, n = cached(folder)
        equal(again, text)
        assert n > 64, n
        file, = [path for path in Path(folder).iterdir() if path.is_file()]
        data = bytearray(file.read_bytes())
        data[len(data) // 2:] = b"\xff" * (len(data) - len(data) // 2)
        file.write_bytes(data)
        equal(cached(folder)[0], text)


# ---- The same of several models ----

def other_model(path):
    """The model with another name and another vocabulary: two of its tokens are renamed."""
    data = Path(MODEL).read_bytes()
    for token in ("▁time", "▁upon"):
        text = token.encode()
        renamed = text[:-1] + b"Q"
        entry = len(text).to_bytes(8, "little")
        equal(data.count(entry + text), 1)
        data = data.replace(entry + text, entry + renamed)
    Path(path).write_bytes(data)


class SeveralModels(Server):
    """Two models in a folder, `tales` and `other`."""

    def __init__(self, folder, *options):
        models = os.path.join(folder, "models")
        os.makedirs(models, exist_ok=True)
        if not os.path.exists(models + "/tales.gguf"):
            os.symlink(MODEL, models + "/tales.gguf")
            other_model(models + "/other.gguf")
        super().__init__("--models", models, *options, model=None)

    def said(self):
        """After its end."""
        self.process.send_signal(signal.SIGTERM)
        equal(self.process.wait(TIMEOUT), 0)
        return self.process.stderr.read().decode()


def test_adapters_of_several_models():
    """Each model has those that are for it, and a sentence says which are not."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text")
        fits, other = Path(folder, "fits.gguf"), Path(folder, "other.gguf")
        text.write_text("The moon is made of cheese. " * 20)
        succeeds("finetune", MODEL, "--data", text, "-o", fits, "--steps", 12, "--context", 32,
                 "--batch", 2, "--rank", 4, "--rate", 0.02, "--held-out", 0, "-t", 1)
        other.write_bytes(fits.read_bytes().replace(b"llama", b"qwen2"))
        with SeveralModels(folder, "--lora", f"{other}=0", "--lora", f"{fits}=0") as server:
            plain = text_after(server, model="tales")
            loras = server.get("/lora-adapters?model=tales")
            equal([(a["id"], a["path"], a["scale"]) for a in loras], [(0, str(fits), 0)])
            use = [{"id": 0, "scale": 1}]
            assert text_after(server, model="tales", lora=use) != plain
            said = server.said()
        assert f"'tales' is served without an adapter: '{other}'" in said, said
        assert "qwen2" in said and f"'{fits}'" not in said, said
        equal(wick("serve", "--models", folder + "/models", "--lora", folder + "/none",
                   "--port", 0).returncode, 1)


def test_models_that_were_fetched():
    """Without a file or a folder: those of the store that are whole."""
    before = os.environ.get("WICK_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WICK_HOME"] = folder
        try:
            done = wick("serve", "--port", 0)
            equal(done.returncode, 1)
            assert b"no model was fetched" in done.stderr, done.stderr
            store = Path(folder, "models", "a")
            store.mkdir(parents=True)
            for name in ("tales", "b", "half-00001-of-00002"):
                shutil.copy(MODEL, store / f"{name}.gguf")
            with Server(model=None) as server:
                models = server.get("/v1/models")["data"]
                assert all(m["display_name"] == m["id"] and m["created_at"] for m in models), models
                equal([model["id"] for model in models], ["a/b.gguf", "a/tales.gguf"])
                text = text_after(server, model="a/tales.gguf")
                assert text and GREEDY["text"].startswith(GREEDY["prompt"] + text), text
        finally:
            os.environ.pop("WICK_HOME")
            if before is not None:
                os.environ["WICK_HOME"] = before


def test_draft_of_several_models():
    """It guesses for the models of its vocabulary alone."""
    with tempfile.TemporaryDirectory() as folder:
        options = ("--draft", MODEL, "--speculate", "draft")
        with SeveralModels(folder, *options) as server:
            def guesses(model):
                body = {**PROMPT, "n_predict": 24, "model": model}
                return server.get("/completion", body)["timings"].get("draft_n_accepted", 0)
            assert guesses("tales") > 0
            text = text_after(server, model="tales")
            assert text and GREEDY["text"].startswith(GREEDY["prompt"] + text), text
            equal(guesses("other"), 0)
            said = server.said()
        assert "'other' is served without the draft model" in said, said
        assert "another vocabulary" in said and "'tales'" not in said, said


def test_prefix_cache_of_several_models():
    """A file for each in one folder, written when a model is closed or the server ends."""
    body = {**PROMPT, "prompt": "One day a girl went to the park to play with her dog. " * 8}
    with tempfile.TemporaryDirectory() as folder:
        kept = os.path.join(folder, "kept")

        def cached(server, model):
            answer = server.get(TEXT, {**body, "model": model})
            return answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        with SeveralModels(folder, "--prefix-cache", kept) as server:
            equal([cached(server, m) for m in ("tales", "other")], [0, 0])
            wait_until(lambda: server.ask("/models/unload", {"model": "other"})[0] == 200)
            equal(len(os.listdir(kept)), 1)
            assert cached(server, "other") > 64
            server.said()
        equal(len(os.listdir(kept)), 2)
        with SeveralModels(folder, "--prefix-cache", kept) as server:
            assert cached(server, "tales") > 64 and cached(server, "other") > 64


if __name__ == "__main__":
    run(globals())
