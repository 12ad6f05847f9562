"""`wick embed`: texts and ids, JSON and arrays, and what it refuses. The environment is that of
command.py."""

import json
import struct
import sys
import tempfile
from pathlib import Path

from command import MODEL, equal, fails, main, succeeds, wick

WIDTH = 64
LONG = "Once upon a time there was"  # 7 tokens


def vectors(*arguments, key="embedding"):
    return [json.loads(line)[key] for line in succeeds("embed", MODEL, *arguments).splitlines()]


def as_f32(values):
    return struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}f", *values))


def array_of(*arguments):
    """The rows that --out writes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "x.npy"
        equal(succeeds("embed", MODEL, *arguments, "--out", out), b"")
        data = out.read_bytes()
    size = struct.unpack_from("<H", data, 8)[0]
    values = struct.unpack(f"<{len(data) // 4 - (10 + size) // 4}f", data[10 + size:])
    rows = [values[i:i + WIDTH] for i in range(0, len(values), WIDTH)]
    assert f"'shape': ({len(rows)}, {WIDTH})".encode() in data[:10 + size], data[:10 + size]
    return rows


def test_ids():
    ids = succeeds("tokenize", MODEL, "--ids", "One day").decode()
    text, = vectors("One day")
    equal(vectors("--tokens", ids), [text])
    line = json.loads(succeeds("embed", MODEL, "--tokens", ids))
    equal(list(line), ["embedding"])  # ids have no text
    assert vectors("--tokens", ids + " 403") != [text]


def test_arrays():
    texts = ["One day", "a cat"]
    equal(array_of(*texts), [as_f32(row) for row in vectors(*texts)])
    # More texts than are embedded at once.
    many = [f"{i} cats" for i in range(130)]
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        lines.write_text("\n".join(many))
        rows = array_of("--file", lines)
    equal(len(rows), 130)
    equal(rows[126:], [as_f32(row) for row in vectors(*many[126:])])


def test_without_pooling():
    ids = "1 403 407"
    rows, = vectors("--tokens", ids, "--pooling", "none", key="embeddings")
    equal(len(rows), 3)
    equal(array_of("--tokens", ids, "--pooling", "none"), [as_f32(row) for row in rows])
    equal(vectors("--tokens", ids, "--pooling", "last", "--raw"), [rows[-1]])
    equal(len(vectors("a", "b", "--pooling", "none", key="embeddings")), 2)
    with tempfile.TemporaryDirectory() as folder:
        fails(2, "without pooling, --out takes one text",
              arguments=["embed", MODEL, "--pooling", "none", "-o", f"{folder}/x.npy", "a", "b"])


def test_a_text_that_fails():
    """Those before it have vectors all the same, but not an array."""
    done = wick("embed", MODEL, "-c", 6, "a", "b", LONG, "c")
    equal(done.returncode, 1)
    equal([json.loads(line)["text"] for line in done.stdout.splitlines()], ["a", "b"])
    equal(done.stderr.splitlines()[-1], b"wick: that was text 3 of 4")
    equal(len(vectors("-c", 7, "a", LONG)), 2)
    with tempfile.TemporaryDirectory() as folder:
        equal(wick("embed", MODEL, "-c", 6, "a", LONG, "-o", f"{folder}/x.npy").returncode, 1)
        equal(list(Path(folder).iterdir()), [])
    # Alone it needs no number.
    fails(1, "7 tokens", arguments=["embed", MODEL, "-c", 6, LONG])


def test_refusals():
    for words, arguments in (("nothing to embed: give TEXT, --file or --tokens", []),
                             ("exclude each other", ["--tokens", "1", "a"]),
                             ("exclude each other", ["--tokens", "1", "--file", "x"]),
                             ("exclude each other", ["--file", "x", "a"]),
                             ("'-' is not a file", ["--out", "-", "a"])):
        fails(2, words, arguments=["embed", MODEL, *arguments])
    fails(1, "--tokens is empty", arguments=["embed", MODEL, "--tokens", " "])
    fails(1, "512", arguments=["embed", MODEL, "--tokens", "1 512"])
    with tempfile.TemporaryDirectory() as folder:
        fails(1, "choose another place with --out",
              arguments=["embed", MODEL, "a", "--out", f"{folder}/no/x.npy"])
    if Path("/dev/full").exists():
        fails(1, "No space left", arguments=["embed", MODEL, "a", "--out", "/dev/full"])


if __name__ == "__main__":
    sys.exit(main(globals()))
