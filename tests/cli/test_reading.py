"""The progress line of a prompt that is read, of `wick bench` and of `wick logits`: on a terminal
alone.

The environment is that of command.py."""

import contextlib
import functools
import os
import pty
import re
import subprocess
import sys
import tempfile
import time

from command import MODEL, WICK, equal, main, wick

SLOW = ["--isa", "ref", "--math", "exact", "-t", 1, "--chunk", 64]
SENTENCE = "Once upon a time there was a big dog. "
LINE = re.compile(r"\rreading [^\r]*?(\d+) of (\d+) tokens, \d+/s, 0:\d\d left\x1b\[K")
ERASED = "\r\x1b[K"


def on_terminal(*arguments, stdin=b"", is_output=False):
    """What a command says on standard error, a terminal, and what on standard output, which may be
    the same terminal."""
    ours, theirs = pty.openpty()
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen([WICK, *map(str, arguments)], stdin=given,
                                   stdout=theirs if is_output else out, stderr=theirs,
                                   env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # Linux: that is how the end is reported
            while chunk := os.read(ours, 4096):
                said += chunk
        os.close(ours)
        equal(process.wait(), 0)
        out.seek(0)
        return said.decode(errors="replace"), out.read()


def run_of(n_sentences):
    """Arguments that read that many."""
    return ["run", MODEL, "-p", SENTENCE * n_sentences, "--raw", *SLOW, "-c", 20 * n_sentences,
            "-n", 4, "--temp", 0]


@functools.cache
def n_sentences():
    """As many as take more than a second: a line comes after half of one, and its rate later."""
    n = 50
    while True:
        begin = time.monotonic()
        wick(*run_of(n))
        if time.monotonic() - begin > 1.2:
            return n
        n = n * 3 // 2


def test_run():
    arguments = run_of(n_sentences())
    said, _ = on_terminal(*arguments, is_output=True)
    elsewhere = wick(*arguments)
    lines = LINE.findall(said)
    done = [int(n) for n, _ in lines]
    assert len(set(done)) >= 2 and done == sorted(done), said
    written = [part for part in said.split("\r") if part.startswith("reading")]
    assert all(a != b for a, b in zip(written, written[1:])), said  # only when it changes
    total, = {int(n) for _, n in lines}
    # What the text continues is shown before it, and not erased with the line.
    after = said.rsplit("\x1b[K", 1)[1].replace("\r\n", " ")
    assert SENTENCE in after and elsewhere.stdout.decode() in after, said
    assert f"prompt {total} tokens" in after, said
    assert b"reading" not in elsewhere.stderr, elsewhere.stderr


def test_chat():
    n = n_sentences()
    questions = SENTENCE * n + "\n" + SENTENCE * (n // 2) + "\n"
    said, _ = on_terminal("chat", MODEL, *SLOW, "-c", 50 * n, "-n", 4, "--temp", 0,
                          stdin=questions.encode(), is_output=True)
    totals = [int(total) for _, total in LINE.findall(said)]
    assert totals and ERASED in said[said.rindex("reading"):], said
    # The second line is of the second question alone: the session holds the first one.
    assert len(set(totals)) == 2 and totals[-1] < totals[0], said


def test_bench():
    n = 6 * n_sentences()  # tokens
    arguments = ["bench", MODEL, *SLOW, "-p", n, "-n", 0, "-r"]
    said, out = on_terminal(*arguments, 2)
    runs = re.findall(rf"\rprefill {n}, run (\d) of 2 [^\r]*? of {3 * n} tokens, \d+/s, 0:", said)
    assert len(set(runs)) == 2 and runs == sorted(runs), said
    assert said.endswith(ERASED), said
    assert f"| prefill {n} |" in out.decode(), out


def test_logits():
    ids = wick("tokenize", MODEL, "--ids", SENTENCE * n_sentences()).stdout.decode()
    with tempfile.TemporaryDirectory() as folder:
        said, _ = on_terminal("logits", MODEL, *SLOW, "--tokens", ids, "-o", f"{folder}/l.npy")
    n = len(ids.split())
    lines = re.findall(rf"\rcomputing [^\r]*?(\d+) of {n} tokens, \d+/s, 0:", said)
    done = [int(at) for at in lines]
    assert len(set(done)) >= 2 and done == sorted(done) and said.endswith(ERASED), said


if __name__ == "__main__":
    sys.exit(main(globals()))
