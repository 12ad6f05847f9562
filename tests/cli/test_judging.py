"""wick perplexity and wick compare: figures, what is scored, exit codes, messages."""

import json
import math
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from command import MODEL, TIMEOUT, WICK, equal, fails, main, start, succeeds, wick
from reranker import write_reranker

REAL = os.environ.get("WICK_REAL_MODEL", "")
SHARED = os.environ.get("WICK_SHARED_DATA", "")
TEXT = "Once upon a time there was a little girl who liked to play in the park. " * 8


def judged(*arguments):
    return json.loads(succeeds("perplexity", *arguments, "--json"))


def text_file(folder, n=1):
    path = Path(folder) / "text.txt"
    path.write_text(n * TEXT)
    return path


def test_perplexity():
    with tempfile.TemporaryDirectory() as folder:
        text = text_file(folder)
        got = judged(MODEL, "-f", text, "--context", 32)
        equal(got["scored"], got["chunks"] * (32 - 17))
        assert abs(math.exp(got["nll"]) / got["perplexity"] - 1) < 1e-12
        assert 1 < got["perplexity"] < 20 and 0 < got["perplexity_error"] < got["perplexity"]
        equal(judged(MODEL, "-f", text, "--context", 32, "--skip", 1)["scored"],
              got["chunks"] * 31)
        said = succeeds("perplexity", MODEL, "-f", text, "--context", 32).decode()
        assert said.startswith("perplexity "), said
        assert f"{got['scored']} tokens scored in {got['chunks']} chunks of 32" in said, said
        ids = succeeds("tokenize", MODEL, "--ids", "--file", text).decode()
        equal(judged(MODEL, "--tokens", ids, "--context", 32), got)


def test_perplexity_of_parts():
    """A row with a bar for each tenth of the text; the means of all rows are that of the text."""
    with tempfile.TemporaryDirectory() as folder:
        text = text_file(folder, 4)
        got = judged(MODEL, "-f", text, "--context", 16)
        said = succeeds("perplexity", MODEL, "-f", text, "--context", 16).decode()
        rows = re.findall(r"\n  (\d+)-(\d+) +([\d.]+)  [\u2588-\u258f]+", said)
        equal((len(rows), int(rows[0][0]), int(rows[-1][1])), (10, 1, got["chunks"]))
        total = sum((int(last) - int(first) + 1) * math.log(float(value))
                    for first, last, value in rows)
        assert abs(total / got["chunks"] - got["nll"]) < 1e-4, said


def test_interrupted_perplexity():
    with tempfile.TemporaryDirectory() as folder:
        text = text_file(folder, 400)
        for more in ([], ["--json"]):
            ours, theirs = pty.openpty()
            with start("perplexity", MODEL, "-f", text, "--context", 64, "--isa", "ref",
                       *more, stderr=theirs, env={**os.environ, "TERM": "xterm"}) as process:
                os.close(theirs)
                shown = b""
                # The first progress lines have no rate yet.
                while b"perplexity " not in shown or b" left" not in shown:
                    shown += os.read(ours, 4096)
                process.send_signal(signal.SIGINT)
                said = process.stdout.read().decode()
                equal(process.wait(TIMEOUT), 130)
            os.close(ours)
            assert re.search(rb"reading .*\d+ of \d+ tokens, .*/s, .* left", shown), shown
            if more:
                got = json.loads(said)
                assert not got["complete"] and got["scored"] > 0 and got["perplexity"] > 1, got
            else:
                assert said.startswith("perplexity ") and "\nstopped: the estimate" in said, said


def test_progress_of_ranking():
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    with tempfile.TemporaryDirectory() as folder:
        model, texts = Path(folder, "model.gguf"), Path(folder, "texts.txt")
        write_reranker(f"{SHARED}/families/bert.gguf", model)
        texts.write_text("a long river of fire\n" * 300000)
        ours, theirs = pty.openpty()
        with start("rerank", model, "fire", "-f", texts, "--isa", "ref", stderr=theirs,
                   env={**os.environ, "TERM": "xterm"}) as process:
            os.close(theirs)
            shown = b""
            while not re.search(rb"reading .*\d+ of 300,?000 texts", shown):
                shown += os.read(ours, 4096)
            process.kill()
        os.close(ours)
    return None


def test_kl():
    with tempfile.TemporaryDirectory() as folder:
        text, small = text_file(folder), f"{folder}/small.gguf"
        succeeds("quantize", MODEL, small, "Q4_0")
        got = judged(small, "-f", text, "--context", 32, "--kl", MODEL)
        alone = judged(MODEL, "-f", text, "--context", 32)
        equal(got["base"]["perplexity"], alone["perplexity"])
        assert abs(got["log_ratio"] - (got["nll"] - alone["nll"])) < 1e-9
        kl = got["kl"]
        assert 0 < kl["median"] < kl["p99"] <= kl["max"] and 0 < kl["mean"] < kl["max"]
        assert 0.5 < got["same_top"] <= 1
        said = succeeds("perplexity", small, "-f", text, "--context", 32, "--kl", MODEL).decode()
        assert "KL divergence" in said and "same top token" in said, said
        same = judged(MODEL, "-f", text, "--context", 32, "--kl", MODEL)
        equal((same["kl"]["max"], same["same_top"], same["log_ratio"]), (0, 1, 0))


def test_refusals():
    fails(2, "--file or --tokens", arguments=["perplexity", MODEL])
    fails(1, "has 3 of the 512 tokens", arguments=["perplexity", MODEL, "--tokens", "1 2 3"])
    fails(1, "no token is scored", arguments=["perplexity", MODEL, "--tokens", "1 2 3",
                                              "--context", 2, "--skip", 2])
    fails(1, "check the path", arguments=["perplexity", MODEL, "-f", "/nonexistent"])
    fails(1, "512", arguments=["perplexity", MODEL, "--tokens", "1 999 3", "--context", 2])
    fails(1, "check the path", arguments=["perplexity", MODEL, "--tokens", "1 2", "--kl",
                                          "/nonexistent"])


def test_other_vocabulary():
    if not os.path.exists(REAL):
        return "no second vocabulary: WICK_REAL_MODEL"
    fails(1, "the vocabularies differ", arguments=["perplexity", MODEL, "--tokens", "1 2",
                                                   "--context", 2, "--kl", REAL])
    return None


def test_smollm2():
    path = Path(SHARED) / "real/smollm2-135m-instruct-q4_1.json"
    if not path.exists() or not os.path.exists(REAL):
        return "WICK_REAL_MODEL or the reference in WICK_SHARED_DATA is not here"
    nll = json.loads(path.read_text())["nll"]
    done = subprocess.run([WICK, "perplexity", REAL, "--tokens", " ".join(map(str, nll["tokens"])),
                           "--context", "768", "--skip", "1", "--json"],
                          capture_output=True, timeout=5 * TIMEOUT, check=True)
    got = json.loads(done.stdout)
    equal(got["scored"], 767)
    assert abs(got["perplexity"] / nll["perplexity"] - 1) < 1e-5, got
    return None


def npy(path, *numbers):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    header += " " * (117 - len(header)) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     struct.pack(f"<{len(numbers)}f", *numbers))


def test_compare_models():
    with tempfile.TemporaryDirectory() as folder:
        small = f"{folder}/small.gguf"
        succeeds("quantize", MODEL, small, "Q8_0")
        said = succeeds("compare", MODEL, MODEL).decode()
        assert said.startswith("0 of 47 tensors differ\n\n"), said
        done = wick("compare", MODEL, small)
        equal(done.returncode, 1)
        summary, rows = done.stdout.decode().split("\n\n")
        row = next(x for x in rows.splitlines() if "blk.0.attn_q.weight" in x)
        assert "f32[64,64] q8_0" in row and "differ, the first at" in row, row
        succeeds("compare", MODEL, small, "--tolerance", 1)
        done = wick("compare", MODEL, small, "--json")
        equal(done.returncode, 1)
        got = json.loads(done.stdout)
        equal((len(got["tensors"]), got["count"]), (47, 47))
        equal(got["different"], sum(not x["same"] for x in got["tensors"]))
        furthest = max(got["tensors"], key=lambda x: x["max"])
        assert summary.startswith(f"{got['different']} of 47 tensors differ\n"), summary
        assert re.search(rf"\nlargest difference \S+ in {furthest['name']}\n", summary), summary
        first = next(x for x in got["tensors"] if not x["same"])
        assert first["max"] >= first["rms"] > 0 and first["cosine"] > 0.99, first


def test_compare_arrays():
    with tempfile.TemporaryDirectory() as folder:
        a, b = Path(folder) / "a.npy", Path(folder) / "b.npy"
        npy(a, 1, 2, 3)
        npy(b, 1, 2.5, 3)
        done = wick("compare", a, b)
        equal(done.returncode, 1)
        assert b"max 0.5" in done.stdout and b"1 differ, the first at 1: 2 2.5" in done.stdout
        succeeds("compare", a, b, "--tolerance", 0.5)
        npy(b, 1, 2)
        assert b"shapes differ: f32[3] f32[2]" in wick("compare", a, b).stdout
        fails(1, "has no name", arguments=["compare", a, MODEL])
        fails(1, "check the path", arguments=["compare", a, f"{folder}/none"])
        fails(2, arguments=["compare", a])
        b.write_bytes(b"neither the one nor the other")
        fails(1, "b.npy", arguments=["compare", a, b])


if __name__ == "__main__":
    sys.exit(main(globals()))
