"""`wick logits`, and what it refuses. The environment is that of command.py."""

import math
import os
import re
import struct
import sys
import tempfile
from pathlib import Path

from command import GREEDY, MODEL, equal, fails, greedy, main, succeeds, wick


def read_npy(path):
    data = Path(path).read_bytes()
    equal(data[:8], b"\x93NUMPY\x01\x00")
    size = struct.unpack_from("<H", data, 8)[0]
    head = data[10:10 + size].decode()
    equal((10 + size) % 64, 0)
    shape = re.search(r"'shape': \((\d+), (\d+)\)", head)
    assert "'descr': '<f4', 'fortran_order': False" in head, head
    rows, columns = int(shape.group(1)), int(shape.group(2))
    values = struct.unpack(f"<{rows * columns}f", data[10 + size:])
    return [values[i * columns:(i + 1) * columns] for i in range(rows)]


def test_logits():
    ids = GREEDY["prompt_tokens"] + GREEDY["tokens"]
    text = " ".join(map(str, ids))
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/x.npy"
        equal(succeeds("logits", MODEL, "--tokens", text, "--out", out), b"")
        rows = read_npy(out)
        equal((len(rows), len(rows[0])), (len(ids), 512))
        likeliest = [max(range(512), key=row.__getitem__) for row in rows]
        begin = len(GREEDY["prompt_tokens"])
        equal(likeliest[begin - 1:-1], GREEDY["tokens"])
        whole = Path(out).read_bytes()
        succeeds("logits", MODEL, "--tokens", text.replace(" ", ",\n"), "-o", out, "--chunk", 1)
        equal(Path(out).read_bytes(), whole)
        equal(os.listdir(folder), ["x.npy"])


def test_logits_that_cannot_be_written():
    base = ["logits", MODEL, "--tokens", "1 403", "--out"]
    with tempfile.TemporaryDirectory() as folder:
        fails(1, "--out", arguments=[*base, f"{folder}/no/x.npy"])
        fails(1, "directory", arguments=[*base, folder])
        os.chmod(folder, 0o500)
        if os.geteuid() != 0:
            fails(1, "--out", arguments=[*base, f"{folder}/x.npy"])
        os.chmod(folder, 0o700)
        equal(os.listdir(folder), [])
    if Path("/dev/full").exists():
        fails(1, "No space left", arguments=[*base, "/dev/full"])


def test_logits_that_are_not_finite():
    """The rows of the embeddings are those of the output."""
    for row in (0, 511):
        with tempfile.TemporaryDirectory() as folder:
            damaged = f"{folder}/x.gguf"
            data = bytearray(Path(MODEL).read_bytes())
            at = int(re.search(r"token_embd.weight .* at (\d+)",
                               succeeds("info", MODEL, "--tensors").decode()).group(1))
            struct.pack_into("<f", data, at + 4 * 64 * row, math.nan)
            Path(damaged).write_bytes(data)
            fails(1, "not all finite",
                  arguments=["logits", damaged, "--tokens", "1 403", "--out", f"{folder}/x.npy"])


def test_bad_token_ids():
    for ids, word in (("1 512", "512"), ("1 x", "'x'"), ("-1", "'-1'"), ("1.5", "'1.5'"), ("", ""),
                      ("4294967295", "4294967295"), ("99999999999999999999", "9999")):
        fails(1, word, arguments=["logits", MODEL, "--tokens", ids, "--out", "/dev/null"])
        fails(1, word, arguments=["run", MODEL, "--tokens", ids])


def test_context_that_the_model_was_not_made_for():
    warning = b"warning: the model was made for 512 tokens; in a context of 513"
    assert warning in wick(*greedy("--context", 513, n=5)).stderr
    assert b"warning" not in wick(*greedy("--context", 512, n=5)).stderr
    with tempfile.TemporaryDirectory() as folder:
        done = wick("logits", MODEL, "--tokens", "1 " * 513, "-o", f"{folder}/x.npy")
        assert done.returncode == 0 and warning in done.stderr, done.stderr


def test_prompt_file_that_cannot_be_read():
    with tempfile.TemporaryDirectory() as folder:
        fails(1, f"cannot read '{folder}'", "check the path",
              arguments=["run", MODEL, "--file", folder])
        fails(1, f"cannot open '{folder}/x'", "check the path",
              arguments=["run", MODEL, "--file", f"{folder}/x"])


if __name__ == "__main__":
    sys.exit(main(globals()))
