"""How tests call the wick command, and how they report. Needs nothing but Python.

WICK_BIN is the command, WICK_TEST_DATA the folder of stories260K. Every case reports a TAP line."""

import contextlib
import json
import os
import re
import struct
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WICK = os.environ.get("WICK_BIN", str(ROOT / "build/wick"))
DATA = Path(os.environ.get("WICK_TEST_DATA", ROOT / "tests/data"))
MODEL = str(DATA / "stories260K.gguf")
GREEDY = json.loads((DATA / "stories260K.greedy.json").read_text())
CONTINUATION = GREEDY["text"][len(GREEDY["prompt"]):]
TIMEOUT = 60  # seconds


def wick(*arguments, stdin=b"", stdout=subprocess.PIPE):
    if isinstance(stdin, str):
        stdin = stdin.encode()
    return subprocess.run([WICK, *map(str, arguments)], input=stdin, stdout=stdout,
                          stderr=subprocess.PIPE, timeout=TIMEOUT)


def start(*arguments, stderr=subprocess.PIPE, **options):
    return subprocess.Popen([WICK, *map(str, arguments)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=stderr, **options)


def wait_for_bytes_in(folder, process):
    """Until the process has written something to a file of the folder, which may lack a name."""
    folder = os.path.realpath(folder) + "/"
    end = time.monotonic() + TIMEOUT
    while process.poll() is None:
        assert time.monotonic() < end, "nothing is written"
        with contextlib.suppress(OSError):  # a file that is closed meanwhile
            for number in os.listdir(f"/proc/{process.pid}/fd"):
                file = f"/proc/{process.pid}/fd/{number}"
                if os.readlink(file).startswith(folder) and os.stat(file).st_size > 0:
                    return
        time.sleep(0.01)


def succeeds(*arguments, **options):
    done = wick(*arguments, **options)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr.decode(errors='replace')}"
    return done.stdout


def fails(code, *words, arguments, **options):
    """Exit code, one `wick: ` sentence that holds words, nothing on standard output."""
    done = wick(*arguments, **options)
    said = done.stderr.decode(errors="replace")
    assert done.returncode == code, f"exit {done.returncode}: {said}"
    assert said.startswith("wick: "), said
    assert len(said.splitlines()) == (2 if code == 2 else 1), said
    assert not done.stdout, done.stdout[:200]
    for word in words:
        assert word in said, f"{word!r} is not in {said!r}"


def equal(got, expected):
    assert got == expected, f"{got!r}\n# expected {expected!r}"


def strict_json(text):
    def refuse(name):
        raise ValueError(f"{name} is not JSON")
    return json.loads(text.decode("utf-8"), parse_constant=refuse)


def without_free_memory(text):
    """What a command says, without the memory that was free at that moment."""
    text, n = re.subn(rb"[\d.]+ \w+(?= available|: all \d+ layers)", b"?", text)
    assert n > 0, text
    return text


def greedy(*more, n=len(GREEDY["tokens"])):
    return ["run", MODEL, "-p", GREEDY["prompt"], "-n", n, "--temp", 0, *more]


def with_template(template, model=MODEL):
    """The bytes of a GGUF file that has this chat template as its first key. A comment fills it up,
    so that the tensors stay aligned."""
    content = Path(model).read_bytes()
    version, n_tensors, n_keys = struct.unpack_from("<IQQ", content, 4)
    key = b"tokenizer.chat_template"
    size = len(key) + len(template.encode()) + 20  # with two lengths and the type
    text = template.encode() + b"{#" + b" " * ((-size - 4) % 32) + b"#}"
    entry = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(text)) + text
    return content[:4] + struct.pack("<IQQ", version, n_tensors, n_keys + 1) + entry + content[24:]


def main(names):
    tests = [(n[5:], f) for n, f in names.items() if n.startswith("test_") and callable(f)]
    wanted = sys.argv[1:]
    n_passed = n_failed = 0
    for number, (name, test) in enumerate(tests, 1):
        if wanted and name not in wanted:
            continue
        try:
            skipped = test()
        except Exception as e:  # a case that breaks is a case that failed
            n_failed += 1
            why = f"{type(e).__name__}: {e}".replace("\n", "\n# ")
            print(f"not ok {number} - {name}\n# {why}")
            continue
        n_passed += not skipped
        print(f"ok {number} - {name}" + (f" # SKIP {skipped}" if skipped else ""), flush=True)
    print(f"{n_passed} passed, {n_failed} failed")
    return 1 if n_failed or not n_passed else 0
