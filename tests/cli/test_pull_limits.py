"""wick pull: nothing stays of a fetch that failed, servers that never end, room on the disk.

Needs a command that was built with libcurl. The environment is that of command.py."""

import contextlib
import os
import socket
import sys
import tempfile
import threading
from pathlib import Path

from command import MODEL, equal, fails, main, succeeds
from model_server import Resource, Server

CONTENT = Path(MODEL).read_bytes()
for name in ("HF_ENDPOINT", "HF_TOKEN", "http_proxy", "all_proxy", "ALL_PROXY"):
    os.environ.pop(name, None)


@contextlib.contextmanager
def store():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WICK_HOME"] = f"{folder}/home"
        yield folder


def cannot_pull(url, *words, options=()):
    fails(1, *words, arguments=["pull", url, "--retries", 0, "-q", *options])


def test_no_empty_folders():
    cases = [("/a/none.gguf", []), ("/a/cut.gguf", []), ("/a/page.gguf", []),
             ("/a/b/m.gguf", ["--sha256", "0" * 64])]
    with store() as folder, Server() as server:
        server.resources["/a/cut.gguf"] = Resource(CONTENT, cut_after=0)
        server.resources["/a/page.gguf"] = Resource(b"<html>")
        server.resources["/a/b/m.gguf"] = Resource(CONTENT)
        for path, options in cases:
            cannot_pull(server.url(path), options=options)
            equal(os.listdir(folder), [])
        kept = Path(folder, "home/models")
        kept.mkdir(parents=True)
        for path, options in cases:
            cannot_pull(server.url(path), options=options)
            equal(list(kept.iterdir()), [])  # not ours to remove
        succeeds("pull", server.url("/a/b/m.gguf"), "-q")
        cannot_pull(server.url("/a/none.gguf"))
        equal(sorted(p.name for p in kept.rglob("*") if p.is_file()),
              ["m.gguf", "m.gguf.note"])


def test_a_body_that_trickles():
    with store() as folder, Server() as server:
        server.resources["/m.gguf"] = Resource(CONTENT, chunk=2, delay=0.1)
        fails(1, "less than 1024 bytes a second were received for 3 s",
              arguments=["pull", server.url("/m.gguf"), "--retries", 1, "--stall", 3, "-q"])
        equal(len(server.requests), 2)
        assert any(p.suffix == ".part" for p in Path(folder).rglob("*"))


@contextlib.contextmanager
def endless(beginning, more):
    """A server that answers with beginning, then more without end: its address."""
    def serve():
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client, contextlib.suppress(OSError):
                    client.recv(4096)
                    client.sendall(beginning)
                    while True:
                        client.sendall(more)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/m.gguf"


def test_headers_that_never_end():
    for beginning, more in ((b"HTTP/1.1 200 OK\r\n", b"X-Header: of no use\r\n" * 100),
                            (b"HTTP/1.1 200 OK\r\nX-Header: ", b"x" * 4096)):
        with store() as folder, endless(beginning, more) as url:
            cannot_pull(url, "the header of the server's answer has no end")
            equal(os.listdir(folder), [])


def test_a_reserve_stays_free():
    with store() as folder, Server() as server:
        disk = os.statvfs(folder)
        free, unit = disk.f_bavail * disk.f_frsize, disk.f_frsize
        reserve = min(disk.f_blocks * unit // 100, 1 << 30)
        if free < 3 * reserve:
            return "the disk of the temporary folder is nearly full"
        for length, word in ((free - reserve // 2, "not enough room"), (free - 2 * reserve, "cut")):
            server.resources["/m.gguf"] = Resource(CONTENT[:1000], length=length)
            cannot_pull(server.url("/m.gguf"), word)
    return None


if __name__ == "__main__":
    sys.exit(main(globals()))
