"""wick gguf: splitting and merging keep every byte, and parts run like the whole."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from command import MODEL, WICK, equal, fails, main, succeeds, wick, without_free_memory

SHARED = os.environ.get("WICK_SHARED_DATA")
PROMPT = ["-p", "Once upon a time", "-n", 20, "--temp", 0, "-q"]


def split(folder, *limits):
    """Names of the parts."""
    succeeds("gguf", "split", MODEL, f"{folder}/m.gguf", *limits)
    parts = sorted(Path(folder).glob("m-*.gguf"))
    equal([p.name for p in parts],
          [f"m-{i + 1:05}-of-{len(parts):05}.gguf" for i in range(len(parts))])
    return parts


def test_split_and_merge():
    for limits in (["--max-size", "300K"], ["--max-tensors", 1], ["--max-tensors", 20],
                   ["--max-size", "1G"], ["--max-size", "200000", "--max-tensors", 7]):
        with tempfile.TemporaryDirectory() as folder:
            parts = split(folder, *limits)
            if limits[0] == "--max-size" and len(parts) > 1:
                most = 300 * 1024 if limits[1] == "300K" else 200000
                assert max(p.stat().st_size for p in parts) <= most, limits
            succeeds("gguf", "merge", parts[-1], f"{folder}/whole.gguf")
            equal(Path(f"{folder}/whole.gguf").read_bytes(), Path(MODEL).read_bytes())
            equal(len(os.listdir(folder)), len(parts) + 1)


def test_parts_run_like_the_whole():
    with tempfile.TemporaryDirectory() as folder:
        part = split(folder, "--max-size", "300K")[1]
        for more in ([], ["--no-map"], ["--math", "exact"]):
            equal(succeeds("run", part, *PROMPT, *more), succeeds("run", MODEL, *PROMPT, *more))
        told = [without_free_memory(succeeds("info", name)) for name in (part, MODEL)]
        equal(*(re.sub(rb"(?m)^file .*", b"", text) for text in told))
        text = ["--ids", "a b"]
        equal(succeeds("tokenize", part, *text), succeeds("tokenize", MODEL, *text))


def test_nothing_is_replaced_unasked():
    with tempfile.TemporaryDirectory() as folder:
        parts = split(folder, "--max-size", "300K")
        before = [part.read_bytes() for part in parts]
        fails(1, "is a file that is read", arguments=["gguf", "merge", parts[0], parts[1]])
        fails(1, "is there already", arguments=["gguf", "merge", MODEL, parts[1]])
        fails(1, "is there already",
              arguments=["gguf", "split", MODEL, f"{folder}/m.gguf", "--max-size", "300K"])
        equal([part.read_bytes() for part in parts], before)


def test_fixtures_round_trip():
    """Every fixture, byte for byte: ours are laid out as others lay them out."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    fixtures = sorted(Path(SHARED).glob("*/*.gguf"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.gguf"
        for fixture in fixtures:
            succeeds("gguf", "merge", fixture, out, "--force")
            assert out.read_bytes() == fixture.read_bytes(), fixture
    assert len(fixtures) > 50, len(fixtures)
    return None


def test_missing_and_mixed_parts():
    with tempfile.TemporaryDirectory() as folder:
        parts = split(folder, "--max-tensors", 20)
        third = parts[2].read_bytes()
        parts[2].rename(f"{folder}/third.gguf")
        for command in (["run", parts[0], *PROMPT], ["info", parts[0]]):
            fails(1, f"part 3 of {len(parts)} of the model is missing", parts[2].name,
                  arguments=command)
        fails(1, f"this is part 3 of {len(parts)} of a model",
              arguments=["run", f"{folder}/third.gguf", *PROMPT])
        parts[2].write_bytes(parts[1].read_bytes())
        fails(1, "stands where part 3 belongs, but it is part 2", arguments=["info", parts[0]])
        parts[2].write_bytes(third[:-100])
        fails(1, parts[2].name, "but the file has only", arguments=["info", parts[0]])
        parts[2].write_bytes(Path(MODEL).read_bytes())
        fails(1, "is not part of a split model", arguments=["info", parts[0]])


def test_what_was_written():
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/out"
        arguments = ["gguf", "split", MODEL, f"{out}.gguf", "--force", "--max-tensors"]
        done = wick(*arguments, 20)
        equal((done.returncode, done.stdout), (0, b""))
        assert re.fullmatch(re.escape(f"wrote 3 parts, {out}-00001-of-00003.gguf to {out}-00003-of-"
                                      "00003.gguf: ") + r"\d+ tensors, [\d.]+ [KM]iB\n",
                            done.stderr.decode()), done
        assert f"wrote 1 part, {out}-00001-of-00001.gguf: " in wick(*arguments, 99).stderr.decode()
        done = wick("gguf", "merge", f"{out}-00001-of-00003.gguf", f"{folder}/whole.gguf")
        assert f"wrote {folder}/whole.gguf: ".encode() in done.stderr, done
        for name in os.listdir(folder):
            assert "1-of-00001" in name or "00003" in name or name == "whole.gguf", name
        equal(wick(*arguments, 20, "-q").stderr, b"")


def test_wrong_use():
    fails(2, "split needs", arguments=["gguf", "split", MODEL, "x.gguf"])
    fails(2, "are for split", arguments=["gguf", "merge", MODEL, "x.gguf", "--max-size", "1M"])
    fails(2, "one of split|merge", arguments=["gguf", "show", MODEL, "x.gguf"])
    for size in ("0", "K", "-1", "1T", "99999999999G", "1.5G", ""):
        fails(2, "--max-size", arguments=["gguf", "split", MODEL, "x.gguf", "--max-size", size])
    with tempfile.TemporaryDirectory() as folder:
        for out in ("", folder + "/"):
            fails(2, "not the name of a file",
                  arguments=["gguf", "split", MODEL, out, "--max-size", "1M"])
        assert not os.listdir(folder)
    fails(1, "check the path", arguments=["gguf", "merge", "/nonexistent.gguf", "x.gguf"])
    fails(1, "another place",
          arguments=["gguf", "split", MODEL, "/nonexistent/x.gguf", "--max-size", "1M"])


def test_nothing_half_written():
    """A limit on file sizes stands for a full disk."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["sh", "-c", 'trap "" XFSZ; ulimit -f 400; exec "$@"', "sh", WICK,
                               "gguf", "merge", MODEL, f"{folder}/out.gguf"],
                              stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == 1 and b"cannot write" in done.stderr, done
        equal(os.listdir(folder), [])


if __name__ == "__main__":
    sys.exit(main(globals()))
