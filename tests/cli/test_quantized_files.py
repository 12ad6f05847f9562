"""wick quantize: files that run, options, and nothing half-written under the final name."""

import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from command import MODEL, WICK, equal, fails, main, succeeds, wait_for_bytes_in, wick

REAL = os.environ.get("WICK_REAL_MODEL", "")


def test_types_run():
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/out.gguf"
        for kind in ("F16", "Q8_0", "Q4_K_M", "iq4_nl"):
            succeeds("quantize", MODEL, out, kind, "--force")
            text = succeeds("run", out, "-p", "Once upon a time", "-n", 20, "--temp", 0, "-q")
            assert len(text) > 20, text
        equal(os.listdir(folder), ["out.gguf"])


def test_what_is_told():
    with tempfile.TemporaryDirectory() as folder:
        done = wick("quantize", MODEL, f"{folder}/out.gguf", "Q4_K_M", "--verbose")
        equal(done.returncode, 0)
        lines = done.stdout.decode().splitlines()
        row = next(line for line in lines if line.startswith("blk.0.attn_q.weight "))
        equal(row.split()[1:], ["f32", "->", "q5_0", "(fallback)"])
        assert b"tensors get another type than the one of Q4_K_M" in done.stderr, done.stderr
        assert f"wrote {folder}/out.gguf".encode() in done.stderr, done.stderr
        for kind in ("F16", "Q4_K_M"):
            equal(wick("quantize", MODEL, f"{folder}/{kind}", kind, "--quiet").stderr, b"")
        info = succeeds("info", f"{folder}/out.gguf", "--json")
        assert b'"general.file_type"' in info


def test_refusals():
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/out.gguf"
        fails(2, "cannot quantize to the type", "Q4_K_M", arguments=["quantize", MODEL, out, "Q9"])
        fails(2, arguments=["quantize", MODEL, out])
        fails(1, "is a file that is read",
              arguments=["quantize", MODEL, MODEL, "Q8_0", "--force"])
        fails(1, "cannot write ''", arguments=["quantize", MODEL, "", "Q8_0"])
        fails(1, "check the path", arguments=["quantize", f"{folder}/none", out, "Q8_0"])
        Path(out).write_bytes(b"mine")
        fails(1, "--force replaces it", arguments=["quantize", MODEL, out, "Q8_0"])
        equal(Path(out).read_bytes(), b"mine")


def test_a_model_in_parts():
    with tempfile.TemporaryDirectory() as folder:
        succeeds("gguf", "split", MODEL, f"{folder}/m.gguf", "--max-tensors", 24)
        one, two = (f"{folder}/m-0000{i}-of-00002.gguf" for i in (1, 2))
        before = Path(two).read_bytes()
        fails(1, "is a file that is read", arguments=["quantize", one, two, "Q8_0", "--force"])
        equal(Path(two).read_bytes(), before)
        succeeds("quantize", two, f"{folder}/a.gguf", "Q8_0")
        succeeds("quantize", MODEL, f"{folder}/b.gguf", "Q8_0")
        succeeds("compare", f"{folder}/a.gguf", f"{folder}/b.gguf")


def test_what_is_no_model():
    with tempfile.TemporaryDirectory() as folder:
        out, empty, pipe = (f"{folder}/{name}" for name in ("o.gguf", "empty", "pipe"))
        Path(empty).touch()
        os.mkfifo(pipe)
        for path, word in ((folder, "it is a directory"), (pipe, "not a regular file"),
                           ("/dev/zero", "not a regular file"), (empty, f"'{empty}': byte 0")):
            fails(1, word, arguments=["quantize", path, out, "Q8_0"])
        fails(1, f"'{empty}'", arguments=["quantize", MODEL, out, "Q8_0", "--imatrix", empty])
        fails(1, "it is a directory", arguments=["quantize", MODEL, folder, "Q8_0", "--force"])
        equal(sorted(os.listdir(folder)), ["empty", "pipe"])


def test_importance():
    with tempfile.TemporaryDirectory() as folder:
        text, matrix, out = (f"{folder}/{name}" for name in ("text", "i.gguf", "o.gguf"))
        Path(text).write_text("Once upon a time there was a girl. " * 50)
        arguments = ["imatrix", MODEL, "-f", text, "-o", matrix, "--length", 64]
        succeeds(*arguments)
        length = b"imatrix.chunk_size" + struct.pack("<II", 4, 64)  # a u32
        assert length in Path(matrix).read_bytes()
        fails(1, "is there already", "--force replaces it", arguments=arguments)
        fails(1, "cannot write", "--out",
              arguments=[*arguments[:5], f"{folder}/none/x", *arguments[6:]])
        said = wick("quantize", "-v", MODEL, out, "Q4_0", "--imatrix", matrix).stdout.decode()
        assert re.search(r"blk.0.attn_q.weight +f32 +-> q4_0 +\(importance\)", said), said


def test_hostile_names():
    with tempfile.TemporaryDirectory() as folder:
        nasty, out = f"{folder}/nasty.gguf", f"{folder}/out.gguf"
        content = Path(MODEL).read_bytes().replace(b"blk.0.attn_q.weight",
                                                   b"blk.0.at\x1b[2Jweight")
        Path(nasty).write_bytes(content)
        for arguments in (["quantize", "-v", nasty, out, "Q8_0"], ["compare", nasty, MODEL],
                          ["run", nasty, "-p", "a"], ["info", f"{folder}/\x1b[2J"]):
            done = wick(*arguments)
            said = done.stdout + done.stderr
            assert b"\x1b" not in said, said


def test_full_disk():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["sh", "-c", 'trap "" XFSZ; ulimit -f 100; exec "$@"', "sh", WICK,
                               "quantize", MODEL, f"{folder}/out.gguf", "Q8_0"],
                              capture_output=True, check=False)
        equal(done.returncode, 1)
        assert b"cannot write" in done.stderr, done.stderr
        equal(os.listdir(folder), [])


def test_interrupt():
    if not os.path.exists(REAL):
        return "no model that takes long enough: WICK_REAL_MODEL"
    with tempfile.TemporaryDirectory() as folder:
        job = subprocess.Popen([WICK, "quantize", REAL, f"{folder}/out.gguf", "Q5_K_M"],
                               stderr=subprocess.PIPE)
        wait_for_bytes_in(folder, job)
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=60)
        equal(job.returncode, 130)
        equal(os.listdir(folder), [])
    return None


if __name__ == "__main__":
    sys.exit(main(globals()))
