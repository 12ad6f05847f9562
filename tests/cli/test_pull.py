"""wick pull, models and rm against a server on this machine that cuts, lies and stalls.

Needs a command that was built with libcurl. The environment is that of command.py."""

import contextlib
import gzip
import hashlib
import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from command import MODEL, TIMEOUT, WICK, equal, fails, main, succeeds, wick
from model_server import Resource, Server

CONTENT = Path(MODEL).read_bytes()
DIGEST = hashlib.sha256(CONTENT).hexdigest()
SIZE = len(CONTENT)
RUN = ["-p", "Once upon a time", "-n", 5, "--temp", 0, "-q"]
ONCE = ["--retries", 0]

for name in ("HF_ENDPOINT", "HF_TOKEN", "SSL_CERT_FILE", "http_proxy", "https_proxy", "all_proxy",
             "HTTPS_PROXY", "ALL_PROXY"):
    os.environ.pop(name, None)


@contextlib.contextmanager
def places(**files):
    """A server and an empty store."""
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        os.environ["WICK_HOME"] = folder
        for name, content in files.items():
            server.resources[f"/{name}.gguf"] = content
        yield server, Path(folder) / "models"


@contextlib.contextmanager
def variables(**values):
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]


def stored(models):
    """Names of files, without the folder of the server's host."""
    return sorted(p.relative_to(models).as_posix().split("/", 1)[1]
                  for p in models.rglob("*") if p.is_file())


def pull(server, path="/m.gguf", *options):
    return succeeds("pull", server.url(path), *options).decode().strip()


def cannot_pull(server, *words, path="/m.gguf", options=ONCE):
    fails(1, *words, arguments=["pull", server.url(path), *options, "-q"])


def hub(server, name, *options):
    return wick("pull", f"hf:{name}", "--mirror", server.url("/"), *ONCE, *options)


def hub_path(server, name, *options):
    done = hub(server, name, *options)
    assert done.returncode == 0, done.stderr.decode()
    return Path(done.stdout.decode().strip())


def pieces():
    """The model in two parts: name -> content."""
    with tempfile.TemporaryDirectory() as folder:
        succeeds("gguf", "split", MODEL, f"{folder}/m.gguf", "--max-tensors", 24)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


# ---- What goes well ----

def test_an_address():
    with places(m=Resource(CONTENT)) as (server, models):
        done = wick("pull", server.url("/m.gguf?download=true"))
        path = Path(done.stdout.decode().strip())
        equal(path, models / f"127.0.0.1:{server.server_port}" / "m.gguf")
        equal(path.read_bytes(), CONTENT)
        equal(stored(models), ["m.gguf", "m.gguf.note"])
        assert "fetching" in done.stderr.decode() and "licence: mit" in done.stderr.decode()
        assert DIGEST in Path(f"{path}.note").read_text()
        equal(len(server.requests), 1)
        again = wick("pull", server.url("/m.gguf?download=true"))
        equal((again.returncode, again.stdout), (0, done.stdout))
        assert b"is here" in again.stderr
        equal(len(server.requests), 1)
        equal(pull(server, "/m.gguf?download=true", "-q", "--offline"), str(path))
        equal(wick("pull", "-q", server.url("/m.gguf?download=true")).stderr, b"")


def test_progress_on_a_terminal():
    with places(m=Resource(CONTENT, chunk=100000, delay=0.15)) as (server, _):
        said = on_terminal(["pull", server.url("/m.gguf")])
        assert re.search(r"\d+ %  [\d.]+ KiB of 1\.0 MiB, .*/s, 0:0\d left", said), said
        assert "%" not in wick("pull", server.url("/m.gguf")).stderr.decode()


def on_terminal(arguments, typed=b""):
    """What a command says where it stands in a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([WICK, *map(str, arguments)], stdin=theirs, stdout=theirs,
                               stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    os.write(ours, typed)
    said = b""
    with contextlib.suppress(OSError):  # Linux: that is how the end is reported
        while chunk := os.read(ours, 4096):
            said += chunk
    process.wait(TIMEOUT)
    os.close(ours)
    return said.decode()


def test_names():
    expected = succeeds("run", MODEL, *RUN)
    with places() as (server, _):
        server.add_repository("Some/Tiny-GGUF", {"tiny.Q8_0.gguf": CONTENT})
        path = hub_path(server, "Some/Tiny-GGUF")
        for name in ("hf:Some/Tiny-GGUF", "Some/Tiny-GGUF", "tiny.Q8_0", "TINY.q8_0.gguf",
                     "hf:Some/Tiny-GGUF:tiny.Q8_0.gguf", "Tiny-GGUF/tiny.Q8_0.gguf",
                     "Tiny-GGUF", "some", path):
            equal(succeeds("run", name, *RUN), expected)
        assert succeeds("info", "tiny.Q8_0") and succeeds("tokenize", "tiny.Q8_0", "Once")
        assert succeeds("embed", "tiny.Q8_0", "Once")
        assert succeeds("chat", "tiny.Q8_0", "-p", "Once", "-n", 2)
        for name in ("tiny", "Q8_0", "ome/Tiny-GGUF"):
            fails(1, name, "'wick models'", arguments=["info", name])
        fails(1, "'wick pull hf:Some/Other' fetches it", arguments=["info", "hf:Some/Other"])
        server.add_repository("Other/Tiny", {"tiny.Q8_0.gguf": CONTENT})
        hub_path(server, "Other/Tiny")
        for command in (["info"], ["rm", "--yes"]):
            said = wick(*command, "tiny.Q8_0")
            equal(said.returncode, 1)
            assert b"Some/Tiny-GGUF/tiny.Q8_0.gguf\n" in said.stderr, said.stderr
            assert b"Other/Tiny/tiny.Q8_0.gguf\n" in said.stderr, said.stderr


def test_fetched_on_the_spot():
    expected = succeeds("run", MODEL, *RUN)
    with places() as (server, models), variables(HF_ENDPOINT=server.url("")):
        server.add_repository("a/b", {"m.Q8_0.gguf": CONTENT})
        done = wick("run", "hf:a/b", *(word for word in RUN if word != "-q"))
        equal((done.returncode, done.stdout), (0, expected))
        assert b"fetching hf:a/b:m.Q8_0.gguf" in done.stderr, done.stderr
        assert b"licence: " in done.stderr
        equal(stored(models), ["b/m.Q8_0.gguf", "b/m.Q8_0.gguf.note"])
        n = len(server.requests)
        for name in ("hf:a/b", "a/b", "HF:a/b", "hf:a/b:q8_0", "hf:a/b:m.Q8_0"):
            equal(succeeds("run", name, *RUN), expected)
        equal(len(server.requests), n)  # what is here needs no server
        succeeds("rm", "a/b", "--yes")
        assert succeeds("chat", "hf:a/b", "-p", "Once", "-n", 2)
        assert stored(models)
        # A cut fetch goes on.
        succeeds("rm", "a/b", "--yes")
        file = server.resources["/a/b/resolve/c0ffee/m.Q8_0.gguf"]
        file.cut_after = 400000
        equal(hub(server, "a/b").returncode, 1)
        fails(1, "is not complete", arguments=["info", "hf:a/b"])
        del file.cut_after
        equal(succeeds("run", "hf:a/b", *RUN), expected)
        equal(server.ranges()[-1], "bytes=400000-")
        server.resources["/n.gguf"] = Resource(CONTENT)
        equal(succeeds("run", server.url("/n.gguf"), *RUN), expected)
        # What cannot be fetched, and commands that do not.
        done = wick("run", "hf:no/such", *RUN)
        equal((done.returncode, done.stdout), (1, b""))
        assert b"no repository no/such" in done.stderr, done.stderr
        n = len(server.requests)
        fails(1, "'wick pull hf:a/c' fetches it", arguments=["info", "hf:a/c"])
        fails(2, "exclude each other", arguments=["run", "hf:a/c", "x", "-p", "y"])
        equal(len(server.requests), n)  # the command line is read first


def test_a_repository_without_hf():
    with places() as (server, models):
        server.add_repository("Some/b.c-1", {"m.Q8_0.gguf": CONTENT, "m.f16.gguf": CONTENT})
        mirror = ["--mirror", server.url(""), *ONCE]
        expected = str(models / "Some/b.c-1/m.Q8_0.gguf")
        for name in ("Some/b.c-1:q8_0", "Some/b.c-1:m.Q8_0.gguf", "hf:Some/b.c-1:q8_0"):
            equal(succeeds("pull", name, *mirror).decode().strip(), expected)
        equal(succeeds("pull", "Some/b.c-1:q8_0", "--offline").decode().strip(), expected)
        equal(len(succeeds("pull", "Some/b.c-1", "--list", *mirror).splitlines()), 2)
        for wrong in ("b", "/b", "Some/", "Some/b/c", "a:b/c", "./x/m.gguf"):
            fails(2, "OWNER/REPO", arguments=["pull", wrong, *mirror])


def test_choice_of_a_file():
    files = {f"m-{kind}.gguf": CONTENT for kind in ("Q4_K_M", "Q4_K_S", "Q8_0", "IQ4_XS")}
    with places() as (server, models):
        server.add_repository("a/b", {**files, "mmproj-f16.gguf": CONTENT, "x/deep.gguf": CONTENT})
        equal(hub_path(server, "a/b"), models / "a/b/m-Q4_K_M.gguf")
        for wanted, name in (("q8_0", "m-Q8_0.gguf"), ("m-Q4_K_S.gguf", "m-Q4_K_S.gguf"),
                             ("m-IQ4_XS", "m-IQ4_XS.gguf"), ("mmproj", "mmproj-f16.gguf"),
                             ("x/deep.gguf", "x/deep.gguf")):
            equal(hub_path(server, f"a/b:{wanted}"), models / "a/b" / name)
        for wanted in ("Q4_K", "m", "Q2_K"):
            done = hub(server, f"a/b:{wanted}")
            equal((done.returncode, done.stdout), (1, b""))
            assert b"hf:a/b:m-Q8_0.gguf" in done.stderr, done.stderr
        listed = hub(server, "a/b", "--list").stdout.decode()
        equal(len(listed.splitlines()), 6)
        assert "1.0 MiB  hf:a/b:m-Q8_0.gguf" in listed, listed
        server.add_repository("a/two", {"m-Q5_0.gguf": CONTENT, "m-Q5_1.gguf": CONTENT})
        done = hub(server, "a/two")
        assert b"several models; choose one of" in done.stderr, done.stderr
        server.add_repository("a/one", {"any.gguf": CONTENT, "mmproj-any.gguf": CONTENT})
        equal(hub_path(server, "a/one").name, "any.gguf")
        for way in ("resolve", "blob"):  # as a browser shows it
            address = server.url(f"/a/b/{way}/main/m-Q8_0.gguf?download=true")
            mirror = ["--mirror", server.url("")]
            for more in ([], ["--offline"]):
                equal(succeeds("pull", address, *mirror, *more).decode().strip(),
                      str(models / "a/b/m-Q8_0.gguf"))
        named = ["--mirror", "http://localhost:x@hub.lan"]
        fails(1, "user name", arguments=["pull", "hf:a/b", *named])
        other = models / "hub.lan/a/b/m-Q8_0.gguf"
        other.parent.mkdir(parents=True)
        other.write_bytes(CONTENT)
        assert b"one of several" in wick("rm", "m-Q8_0.gguf", "-y").stderr
        succeeds("rm", "a/b/m-Q8_0.gguf", "-y")  # the whole name is one
        equal((other.exists(), (models / "a/b/m-Q8_0.gguf").exists()), (True, False))


def test_a_model_in_parts():
    parts = pieces()
    equal(len(parts), 2)
    first = sorted(parts)[0]
    with places() as (server, models):
        server.add_repository("a/b", parts)
        equal(hub_path(server, "a/b"), models / "a/b" / first)
        equal(succeeds("run", "a/b", *RUN), succeeds("run", MODEL, *RUN))
        listed = succeeds("models").decode().splitlines()
        equal(len(listed), 2)
        assert f"a/b/{first}" in listed[1] and "f32" in listed[1], listed
        succeeds("rm", "a/b", "--yes")
        equal(list(models.iterdir()), [])
        for name, content in parts.items():
            server.resources[f"/{name}"] = Resource(content)
        path = pull(server, f"/{sorted(parts)[1]}")
        equal(Path(path).name, first)
        succeeds("run", path, *RUN)
        cannot_pull(server, "has 2", path=f"/{first}", options=["--sha256", DIGEST])
        del server.resources[f"/a/b/resolve/c0ffee/{sorted(parts)[1]}"]
        equal(hub(server, "a/b").returncode, 1)
        fails(1, "is not complete", arguments=["info", "a/b"])
        assert "unfinished" in succeeds("models").decode()


def test_licence_and_revision():
    with places() as (server, _):
        for card, expected in (("apache-2.0", "apache-2.0"), (["mit", "cc0"], "mit"),
                               ("other", "other"),
                               (None, "mit")):  # the last one from the file itself
            server.add_repository("a/b", {"m.gguf": CONTENT}, licence=card)
            done = hub(server, "a/b")
            equal(done.returncode, 0)
            assert f"licence: {expected} ({server.url('/a/b')})" in done.stderr.decode()
            succeeds("rm", "a/b", "-y")
        assert "/a/b/resolve/c0ffee/m.gguf" in [path for path, _ in server.requests]
        hostile = "evil\n\x1b[2Jsha256 0"
        server.add_repository("a/b", {"m.gguf": CONTENT}, licence=hostile)
        assert b"\x1b" not in hub(server, "a/b").stderr
        assert "\x1b" not in succeeds("models").decode()
        equal(json.loads(succeeds("models", "--json"))[0]["sha256"], DIGEST)


def test_a_newer_version_replaces_an_old_one():
    newer = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    with places() as (server, models):
        for content in (CONTENT, newer):
            server.add_repository("a/b", {"m.gguf": content})
            equal(hub_path(server, "a/b").read_bytes(), content)
        equal(sorted(p.name for p in (models / "a/b").iterdir()), ["m.gguf", "m.gguf.note"])
        server.add_repository("a/b", {"m.gguf": CONTENT})
        server.resources["/a/b/resolve/c0ffee/m.gguf"].cut_after = 1000
        equal(hub(server, "a/b").returncode, 1)
        equal((models / "a/b/m.gguf").read_bytes(), newer)
        del server.resources["/a/b/resolve/c0ffee/m.gguf"].cut_after
        equal(hub_path(server, "a/b").read_bytes(), CONTENT)


def test_token():
    with places() as (server, _), Server() as other, variables(HF_TOKEN="hf_secret"):
        server.add_repository("a/b", {"m.gguf": CONTENT})
        server.resources["/a/b/resolve/c0ffee/m.gguf"] = \
            Resource(redirect=other.url("/m.gguf", "localhost"))
        other.resources["/m.gguf"] = Resource(CONTENT)
        hub_path(server, "a/b")
        equal([headers.get("Authorization") for _, headers in server.requests],
              ["Bearer hf_secret"] * 2)
        equal([headers.get("Authorization") for _, headers in other.requests], [None])
        pull(other)
        equal(other.requests[-1][1].get("Authorization"), None)
        done = wick("pull", "hf:a/b", "--mirror", "http://wick.invalid", *ONCE)
        equal(done.returncode, 1)
        assert b"HF_TOKEN is not sent" in done.stderr, done.stderr
        with variables(HF_ENDPOINT=server.url("")):
            succeeds("pull", "hf:a/b")
    with places() as (server, _), variables(HF_TOKEN="a\nHost: b"):
        fails(1, "HF_TOKEN", arguments=["pull", "hf:a/b", "--mirror", server.url("")])


# ---- Cuts and resuming ----

def test_a_cut_is_gone_on_with():
    with places(m=Resource(CONTENT, cut_after=400000)) as (server, models):
        equal(Path(pull(server, "/m.gguf", "--retries", 1)).read_bytes(), CONTENT)
        equal(server.ranges(), [None, "bytes=400000-", "bytes=800000-"])
        equal(server.requests[1][1]["If-Range"], '"one"')
        equal(stored(models), ["m.gguf", "m.gguf.note"])


def test_the_next_call_goes_on():
    with places(m=Resource(CONTENT, cut_after=400000)) as (server, models):
        cannot_pull(server, "the connection was cut", "390.6 KiB are kept", "continues from there")
        equal(stored(models), ["m.gguf.part", "m.gguf.part.note"])
        fails(1, "is not complete", arguments=["run", "m"])
        assert json.loads(succeeds("models", "--json"))[0]["complete"] is False
        server.resources["/m.gguf"].cut_after = None
        equal(Path(pull(server)).read_bytes(), CONTENT)
        equal(server.ranges(), [None, "bytes=400000-"])


def test_a_hash_that_is_known_needs_no_etag():
    with places() as (server, _):
        server.add_repository("a/b", {"m.gguf": CONTENT})
        server.resources["/a/b/resolve/c0ffee/m.gguf"].cut_after = 400000
        equal(hub(server, "a/b").returncode, 1)
        del server.resources["/a/b/resolve/c0ffee/m.gguf"].cut_after
        equal(hub_path(server, "a/b").read_bytes(), CONTENT)
        equal(server.ranges()[-1], "bytes=400000-")
        assert "If-Range" not in server.requests[-1][1]


def test_a_file_that_changed_begins_again():
    newer = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    for minds_if_range in (True, False):
        with places(m=Resource(CONTENT, cut_after=400000)) as (server, _):
            cannot_pull(server, "cut")
            server.resources["/m.gguf"] = Resource(newer, etag='"two"', if_range=minds_if_range)
            equal(Path(pull(server, "/m.gguf", *ONCE)).read_bytes(), newer)
    hashes = [{"X-Linked-ETag": f'"{hashlib.sha256(x).hexdigest()}"'} for x in (CONTENT, newer)]
    with places(m=Resource(CONTENT, cut_after=400000, headers=hashes[0])) as (server, _):
        cannot_pull(server, "cut")
        server.resources["/m.gguf"] = Resource(newer, etag='"two"', headers=hashes[1])
        equal(Path(pull(server, "/m.gguf", *ONCE)).read_bytes(), newer)


def test_servers_that_cannot_go_on():
    for cannot in (dict(ranges=False), dict(etag=""), dict(etag='W/"weak"')):
        with places(m=Resource(CONTENT, cut_after=400000, **cannot)) as (server, _):
            cannot_pull(server, "cut", "starts again" if "etag" in cannot else "are kept")
            server.resources["/m.gguf"].cut_after = None
            equal(Path(pull(server)).read_bytes(), CONTENT)
        with places(m=Resource(CONTENT, cut_after=400000, **cannot)) as (server, _):
            cannot_pull(server, "cut", options=["--retries", 1])  # does not try for ever
            equal(len(server.requests), 2)


def test_a_server_that_sends_another_range():
    with places(m=Resource(CONTENT, cut_after=400000)) as (server, _):
        cannot_pull(server, "cut")
        server.resources["/m.gguf"] = Resource(CONTENT, range_shift=7)
        cannot_pull(server, "from byte 400007, not from byte 400000")
        server.resources["/m.gguf"] = Resource(CONTENT, total=300000)
        cannot_pull(server, "now has only 300000 bytes, but 400000 are here already")
        server.resources["/m.gguf"] = Resource(CONTENT)
        equal(Path(pull(server)).read_bytes(), CONTENT)


def test_a_part_that_is_too_long():
    with places(m=Resource(CONTENT, cut_after=400000)) as (server, models):
        cannot_pull(server, "cut")
        part, = models.rglob("*.part")
        part.write_bytes(CONTENT + b"more")
        server.resources["/m.gguf"].cut_after = None
        equal(Path(pull(server)).read_bytes(), CONTENT)


def test_a_server_that_fails_for_a_while():
    with places(m=Resource(CONTENT, n_failures=1)) as (server, _):
        pull(server, "/m.gguf", "--retries", 1)
        server.resources["/n.gguf"] = Resource(CONTENT, n_failures=1)
        cannot_pull(server, "answered 503", path="/n.gguf")


def test_a_server_that_is_gone():
    with places(m=Resource(CONTENT, stall_after=400000)) as (server, models):
        process = subprocess.Popen([WICK, "pull", "-q", server.url("/m.gguf"), "--retries", "1"],
                                   stderr=subprocess.PIPE)
        wait_for(lambda: [p for p in models.rglob("*.part") if p.stat().st_size == 400000])
        server.shutdown()
        server.server_close()
        server.stop.set()  # cuts the answer that stalls
        _, said = process.communicate(timeout=TIMEOUT)
        equal(process.returncode, 1)
        assert b"390.6 KiB are kept" in said, said


def test_a_stall():
    with places(m=Resource(CONTENT, stall_after=400000)) as (server, models):
        cannot_pull(server, "nothing was received for 5 s", "are kept",
                    options=[*ONCE, "--stall", 5])
        equal(stored(models), ["m.gguf.part", "m.gguf.part.note"])
        cannot_pull(server, "nothing was received for 1 s", path="/m.gguf",
                    options=[*ONCE, "--stall", 1, "--sha256", DIGEST])


def test_interrupt():
    for number in (signal.SIGINT, signal.SIGTERM):
        with places(m=Resource(CONTENT, stall_after=400000)) as (server, models):
            process = subprocess.Popen([WICK, "pull", server.url("/m.gguf")],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_for(lambda: [p for p in models.rglob("*.part") if p.stat().st_size == 400000])
            process.send_signal(number)
            _, said = process.communicate(timeout=TIMEOUT)
            equal(process.returncode, 128 + number)
            assert b"390.6 KiB are kept" in said, said
            server.resources["/m.gguf"].stall_after = None
            equal(Path(pull(server)).read_bytes(), CONTENT)
            equal(server.ranges(), [None, "bytes=400000-"])


def wait_for(condition):
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def test_two_at_once():
    with places(m=Resource(CONTENT, stall_after=400000)) as (server, models):
        process = subprocess.Popen([WICK, "pull", "-q", server.url("/m.gguf")],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: [p for p in models.rglob("*.part") if p.stat().st_size == 400000])
        cannot_pull(server, "another wick is fetching")
        server.resources["/m.gguf"].stall_after = None
        server.stop.set()  # ends the answer that stalls; the first one goes on by itself
        path, said = process.communicate(timeout=TIMEOUT)
        equal((process.returncode, said), (0, b""))
        equal(Path(path.decode().strip()).read_bytes(), CONTENT)
        equal(server.ranges(), [None, "bytes=400000-"])


# ---- Lies ----

def test_wrong_lengths():
    with places(m=Resource(CONTENT, length=SIZE + 10)) as (server, _):
        cannot_pull(server, "the connection was cut")
    with places() as (server, models):
        server.add_repository("a/b", {"m.gguf": CONTENT})
        where = "/a/b/resolve/c0ffee/m.gguf"
        for content, word in ((CONTENT[:-8], b"were expected"),
                              (CONTENT + b"12345678", b"were expected")):
            server.resources[where] = Resource(content)
            done = hub(server, "a/b")
            equal(done.returncode, 1)
            assert word in done.stderr, done.stderr
        server.resources[where] = Resource(CONTENT + b"12345678", length=-1)
        said = hub(server, "a/b").stderr
        assert b"sent more than" in said, said
        server.resources[where] = Resource(CONTENT[:-8], length=-1, ranges=False)
        assert b"sent less than it announced" in hub(server, "a/b").stderr
        assert not (models / "a/b/m.gguf").exists()


def test_wrong_hashes():
    wrong = {"X-Linked-ETag": f'"{"0" * 64}"'}
    with places(m=Resource(CONTENT, headers=wrong)) as (server, models):
        cannot_pull(server, DIGEST, "was deleted")
        equal(stored(models), [])
        cannot_pull(server, "0" * 64, options=["--sha256", DIGEST])
        server.resources["/m.gguf"].headers = {"X-Linked-ETag": f'"{DIGEST}"'}
        cannot_pull(server, DIGEST, options=["--sha256", "1" * 64])
        server.resources["/m.gguf"].headers = {}
        cannot_pull(server, DIGEST, "1" * 64, "was deleted", options=["--sha256", "1" * 64])
        equal(stored(models), [])
        pull(server, "/m.gguf", "--sha256", DIGEST.upper())
    with places() as (server, models):
        server.add_repository("a/b", {"m.gguf": CONTENT})
        changed = bytearray(CONTENT)
        changed[SIZE // 2] ^= 1
        server.resources["/a/b/resolve/c0ffee/m.gguf"].content = bytes(changed)
        assert b"was deleted" in hub(server, "a/b").stderr
        equal(stored(models), [])
        assert b"given by --sha256" in hub(server, "a/b", "--sha256", "1" * 64).stderr


def test_what_is_no_model():
    page = b"<!doctype html>" * 1000
    with places(m=Resource(page), n=Resource(CONTENT[:500000], length=-1),
                o=Resource(CONTENT[:3]), p=Resource(b"")) as (server, models):
        cannot_pull(server, "is not a GGUF file", "browser")
        for name in "nop":
            cannot_pull(server, "not a valid GGUF file", path=f"/{name}.gguf")
        equal(stored(models), [])


def test_redirects():
    with places(m=Resource(redirect="/m.gguf"), n=Resource(redirect="file:///etc/passwd"),
                o=Resource(redirect="/p.gguf"), p=Resource(CONTENT)) as (server, _):
        cannot_pull(server, "redirects more than 10 times")
        cannot_pull(server, "only http and https", path="/n.gguf")
        pull(server, "/o.gguf")
        # The hub tells the hash where it redirects to the file's server, by a path alone.
        server.resources["/q.gguf"] = Resource(redirect="/p.gguf",
                                               headers={"X-Linked-ETag": f'"{"0" * 64}"'})
        cannot_pull(server, DIGEST, "was deleted", path="/q.gguf")
        server.resources["/q.gguf"].headers = {"X-Linked-ETag": f'"{DIGEST}"'}
        equal(Path(pull(server, "/q.gguf")).read_bytes(), CONTENT)


def test_forms_of_answers():
    forms = dict(is_chunked=True), dict(protocol="HTTP/1.0"), dict(protocol="HTTP/1.0", length=-1)
    for form in forms:
        with places(m=Resource(CONTENT, **form)) as (server, _):
            equal(Path(pull(server)).read_bytes(), CONTENT)
    # Its end is known by the chunks alone.
    with places(m=Resource(CONTENT, is_chunked=True, cut_after=400000)) as (server, _):
        cannot_pull(server, "390.6 KiB are kept")
        server.resources["/m.gguf"].cut_after = None
        equal(Path(pull(server)).read_bytes(), CONTENT)
        equal(server.ranges(), [None, "bytes=400000-"])
    # None was asked for.
    packed = Resource(gzip.compress(CONTENT), headers={"Content-Encoding": "gzip"})
    with places(m=packed) as (server, models):
        cannot_pull(server, "is not a GGUF file")
        equal(stored(models), [])


def test_encryption():
    if not shutil.which("openssl"):
        return "openssl was not found, which makes the certificate"
    with places(m=Resource(CONTENT)) as (server, models), tempfile.TemporaryDirectory() as folder:
        certificate = f"{folder}/both.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-keyout", f"{folder}/key.pem", "-out", f"{folder}/certificate.pem"],
                       check=True, capture_output=True)
        Path(certificate).write_bytes(Path(f"{folder}/key.pem").read_bytes() +
                                      Path(f"{folder}/certificate.pem").read_bytes())
        with Server(certificate) as secure:
            secure.resources["/m.gguf"] = Resource(redirect=server.url("/m.gguf"))
            secure.resources["/n.gguf"] = Resource(CONTENT)
            address = secure.url("/n.gguf", "localhost")
            fails(1, "certificate is not trusted", arguments=["pull", "-q", address])
            with variables(SSL_CERT_FILE=f"{folder}/certificate.pem"):
                succeeds("pull", address)
                fails(1, "from https to an address without encryption",
                      arguments=["pull", "-q", secure.url("/m.gguf", "localhost")])
        equal(len(server.requests), 0)


def test_statuses():
    with places() as (server, models):
        for status in (404, 403, 410):
            server.resources["/m.gguf"] = Resource(status=status)
            cannot_pull(server, f"answered {status}")
        server.resources["/m.gguf"] = Resource(status=204, length=0)
        cannot_pull(server, "answered 204")
        equal(stored(models), [])
        server.add_repository("a/b", {"m.gguf": CONTENT})
        for status in (401, 403):
            server.resources["/a/b/resolve/c0ffee/m.gguf"] = Resource(status=status)
            said = hub(server, "a/b").stderr.decode()
            assert f"accept terms at {server.url('/a/b')} (HF_TOKEN is not set)" in said, said
            with variables(HF_TOKEN="x"):
                assert b"HF_TOKEN does not give access" in hub(server, "a/b").stderr
            server.resources["/api/models/c/d"] = Resource(status=status)
            assert b"set HF_TOKEN" in hub(server, "c/d").stderr
        assert b"has no repository no/one" in hub(server, "no/one").stderr
        server.resources["/api/models/c/d"] = Resource(status=500)
        assert b"answered 500" in hub(server, "c/d").stderr
    fails(1, "127.0.0.1", arguments=["pull", "-q", server.url("/m.gguf"), *ONCE])  # is gone


def test_a_hostile_hub():
    with places() as (server, models):
        where = "/api/models/a/b"
        texts = (b"", b"{", b"<html>", b'{"siblings":[}', b'{"siblings":[]} x', b"[" * 100000,
                 b'{"a":"\\u12"}', b'{"a":"\x01"}', b'{"a":01}', b'{"a":1.}', b'{"a":tru}',
                 b'{"a":1,}', b'{"a" 1}', b'"', b'{"a":"\\')
        for text in texts:
            server.resources[where] = Resource(text)
            said = hub(server, "a/b").stderr
            assert b"is not JSON" in said, (text[:20], said)
        for text in (b"[]", b"1e5", b"null", b'{"siblings":{}}',
                     b'{"siblings":[1,{"rfilename":2}]}', b'{"siblings":[{"rfilename":"x.txt"}]}'):
            server.resources[where] = Resource(text)
            assert b"has no GGUF file" in hub(server, "a/b").stderr
        names = ["../../x.gguf", "/x.gguf", "a/../x.gguf", "a//x.gguf", ".x.gguf", "x\n.gguf",
                 "x\\y.gguf", "x\x9b2J.gguf", "x" * 300 + ".gguf",
                 "/".join(["y" * 200] * 6) + ".gguf"]
        server.resources[where] = Resource(json.dumps(
            {"siblings": [{"rfilename": name} for name in names]}).encode())
        assert b"has no GGUF file" in hub(server, "a/b").stderr
        server.resources[where] = Resource(b'{"x":"' + b"y" * (17 << 20) + b'"}')
        assert b"description of a/b is too long" in hub(server, "a/b").stderr
        name = "\u00e9 \u65e5#?%.gguf"
        quoted = "%C3%A9%20%E6%97%A5%23%3F%25.gguf"
        server.resources[where] = Resource(json.dumps(
            {"sha": "../..", "siblings": [{"rfilename": name, "size": 1.5, "lfs": 3}]}).encode())
        server.resources[f"/a/b/resolve/main/{quoted}"] = Resource(CONTENT)
        equal(hub_path(server, "a/b").name, name)
        missing = "m-00001-of-00002.gguf"
        server.resources[where] = Resource(json.dumps(
            {"siblings": [{"rfilename": missing}]}).encode())
        server.resources[f"/a/b/resolve/main/{missing}"] = Resource(CONTENT)
        assert b"the part m-00002-of-00002.gguf is missing" in hub(server, "a/b").stderr


# ---- The disk ----

def test_no_room():
    with places() as (server, models):
        server.resources["/m.gguf"] = Resource(CONTENT, length=1 << 60)
        cannot_pull(server, "not enough room", "1.0 EiB needed")
        equal(stored(models), [])
        parts = {f"m-0000{i}-of-00002.gguf": CONTENT for i in (1, 2)}
        server.add_repository("a/b", parts)
        answer = json.loads(server.resources["/api/models/a/b"].content)
        answer["siblings"][2]["size"] = 1 << 60
        server.resources["/api/models/a/b"].content = json.dumps(answer).encode()
        assert b"not enough room" in hub(server, "a/b").stderr
        equal(stored(models), [])


def test_a_disk_that_is_full():
    with places(m=Resource(CONTENT)) as (server, models):
        done = subprocess.run([WICK, "pull", "-q", server.url("/m.gguf")], capture_output=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                    (400000, 400000)))
        equal(done.returncode, 1)
        assert b"cannot write" in done.stderr and b"390.6 KiB are kept" in done.stderr, done.stderr
        equal(Path(pull(server)).read_bytes(), CONTENT)
        equal(server.ranges(), [None, "bytes=400000-"])


def test_folders_that_cannot_be():
    with places(m=Resource(CONTENT)) as (server, _), tempfile.NamedTemporaryFile() as file:
        for where, word in ((file.name, "Not a directory"), ("/proc/none", "cannot make")):
            os.environ["WICK_HOME"] = where
            cannot_pull(server, word)
        os.environ["WICK_HOME"] = "/tmp/" + "x" * 5000
        cannot_pull(server, "WICK_HOME")
        with tempfile.TemporaryDirectory() as folder, variables(XDG_CACHE_HOME=folder):
            del os.environ["WICK_HOME"]
            equal(Path(pull(server)).parent.parent, Path(folder) / "wick/models")
        with tempfile.TemporaryDirectory() as folder:
            home = os.environ.get("HOME", "/")
            os.environ["HOME"] = folder
            equal(Path(pull(server)).parent.parent, Path(folder) / ".cache/wick/models")
            os.environ["HOME"] = home


def test_files_that_cannot_be():
    """What stands where the part, the note or a new note would be is a folder."""
    with places(m=Resource(CONTENT)) as (server, models):
        folder = models / f"127.0.0.1:{server.server_port}"
        for name, word in (("m.gguf.part", "cannot open"), ("m.gguf.note", "cannot write"),
                           ("m.gguf.note.new", "cannot write")):
            (folder / name).mkdir(parents=True)
            cannot_pull(server, word, f"/{name}': Is a directory")
            assert not (folder / "m.gguf.note.new").is_file()
            (folder / name).rmdir()
            if word == "cannot write":
                succeeds("rm", "m", "-y")  # it is there, of no known source
            equal(Path(pull(server)).read_bytes(), CONTENT)
            succeeds("rm", "m", "-y")
        models.rmdir()
        models.write_bytes(b"")
        fails(1, "cannot read the folder", arguments=["models"])


def test_a_file_of_another_source():
    with places(m=Resource(CONTENT)) as (server, _):
        pull(server)
        cannot_pull(server, "from another source", path="/m.gguf?version=2")


# ---- Without a server ----

def test_offline():
    with places(m=Resource(CONTENT)) as (server, _):
        cannot_pull(server, "--offline uses no network", options=["--offline"])
        path = pull(server)
        equal(pull(server, "/m.gguf", "--offline"), path)
        fails(1, "is not here", arguments=["pull", "--offline", "hf:a/b"])
        equal(len(server.requests), 1)


def test_models_and_rm():
    with places(m=Resource(CONTENT), n=Resource(CONTENT)) as (server, models):
        equal(succeeds("models"), b"")
        equal(json.loads(succeeds("models", "--json")), [])
        path = pull(server)
        pull(server, "/n.gguf")
        first, _ = json.loads(succeeds("models", "--json"))
        equal(sorted(first), ["bytes", "complete", "date", "licence", "name", "path", "sha256",
                              "source", "type"])
        equal((first["path"], first["bytes"], first["type"], first["licence"], first["sha256"],
               first["source"], first["complete"]),
              (path, SIZE, "f32", "mit", DIGEST, server.url("/m.gguf"), True))
        line = succeeds("models").decode().splitlines()[1].split()
        equal(line, [first["name"], "1.0", "MiB", "f32", first["date"], "mit"])
        fails(1, "there is no model 'x'", arguments=["rm", "x", "--yes"])
        fails(1, "there is no one to ask", arguments=["rm", "m"])
        assert "it was kept" in on_terminal(["rm", "m"], b"n\n")
        assert Path(path).exists()
        assert "remove" in on_terminal(["rm", "m"], b"y\n")
        assert not Path(path).exists()
        equal(stored(models), ["n.gguf", "n.gguf.note"])
        (models / "damaged.gguf").write_bytes(b"GGUF")
        assert "unreadable" in succeeds("models").decode()
        succeeds("rm", "n", "-y")
        succeeds("rm", "damaged", "-y")
        equal(list(models.iterdir()), [])


def test_wrong_use():
    with places() as (server, _):
        for source in ("m.gguf", "ftp://x/m.gguf", "hf", ""):
            fails(2, "OWNER/REPO", arguments=["pull", source])
        for source in ("hf:", "hf:a", "hf:a/b/c", "hf:a/../b", "hf:a b/c", "hf:../b", "hf:a/b?x"):
            fails(1, "OWNER/REPO", arguments=["pull", source, "--mirror", server.url("")])
        for source in ("https://x/m.bin", "https://x.gguf", "https://x/m.gguf/"):
            fails(1, "ends with .gguf", arguments=["pull", source])
        fails(1, "cannot be the name", arguments=["pull", "https://x/../m.gguf"])
        fails(1, "user name", arguments=["pull", "https://me:secret@x/m.gguf"])
        fails(2, "64 hexadecimal", arguments=["pull", "hf:a/b", "--sha256", "12"])
        fails(1, "cannot be a mirror", arguments=["pull", "hf:a/b", "--mirror", "x"])
        fails(2, "--list", arguments=["pull", "https://x/m.gguf", "--list"])
        equal(len(server.requests), 0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as nowhere, variables(WICK_HOME=nowhere):
        built = wick("pull", "http://127.0.0.1:1/m.gguf", *ONCE)
    if b"without libcurl" in built.stderr:
        print("the command was built without libcurl (libcurl4-openssl-dev)")
        sys.exit(77)
    sys.exit(main(globals()))
