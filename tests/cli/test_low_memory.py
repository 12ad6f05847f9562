"""`--low-memory`: the same answers from the mapped file, without a copy of the weights."""

import json
import os
import re
import subprocess
import sys
import tempfile

from command import MODEL, TIMEOUT, WICK, equal, fails, main, succeeds, wick

REAL = os.environ.get("WICK_REAL_MODEL", "")
MIB = 1 << 20


def anonymous_peak(*arguments):
    """Bytes beside mapped files: what of VmRSS was RssAnon, at most."""
    child = subprocess.Popen([WICK, *map(str, arguments)], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = 0
    while child.poll() is None:
        try:
            with open(f"/proc/{child.pid}/status", encoding="utf-8") as file:
                found = re.search(r"RssAnon:\s+(\d+) kB", file.read())
        except OSError:
            break
        most = max(most, int(found.group(1)) * 1024 if found else 0)
    equal(child.wait(TIMEOUT), 0)
    return most


def test_same_logits():
    model = REAL if os.path.exists(REAL) else MODEL
    with tempfile.TemporaryDirectory() as folder:
        for math in ("exact", "fast"):
            found = []
            for more in ([], ["--low-memory"]):
                out = f"{folder}/logits"
                succeeds("logits", model, "--backend", "cpu", "--math", math, "--tokens",
                         "1,2,3,4,5,6,7,8,9,10,11", "--out", out, *more)
                with open(out, "rb") as file:
                    found.append(file.read())
            assert found[0] == found[1], math


def test_same_text():
    run = ["run", MODEL, "--backend", "cpu", "-p", "Once", "-n", 12, "--temp", 0, "-q"]
    equal(succeeds(*run, "--low-memory"), succeeds(*run))


def test_needs_a_mapping():
    fails(1, "low_memory", "no_map",
          arguments=["run", MODEL, "-p", "Once", "-n", 1, "--low-memory", "--no-map"])


def test_memory():
    if not os.path.exists(REAL):
        return "no model that is large enough: WICK_REAL_MODEL"
    run = ["run", REAL, "--backend", "cpu", "-p", "Once", "-n", 4, "-c", 512]
    forecast = json.loads(succeeds("info", REAL, "--json", "-c", 512, "--math",
                                   "fast"))["predicted_memory"]
    copied, mapped = anonymous_peak(*run), anonymous_peak(*run, "--low-memory")
    assert copied > forecast["weight_bytes"], copied / MIB
    assert mapped < copied - 0.95 * forecast["weight_bytes"], (copied / MIB, mapped / MIB)
    assert mapped <= forecast["low_memory_bytes"], (mapped / MIB, forecast)
    return None


def test_refusal_names_it():
    """Weights of which a copy does not fit, while the file can be mapped."""
    if not os.path.exists(REAL):
        return "no model that is large enough: WICK_REAL_MODEL"
    run = [WICK, "run", REAL, "--backend", "cpu", "-t", "1", "-p", "a", "-n", "1", "-c", "64"]
    def limited(*more):
        return subprocess.run(["sh", "-c", 'ulimit -v 180000; exec "$@"', "sh", *run, *more],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT,
                              check=False)
    done = limited()
    equal(done.returncode, 1)
    assert b"with --low-memory it runs in " in done.stderr, done.stderr
    done = limited("--low-memory")
    equal(done.returncode, 0)
    return None


if __name__ == "__main__":
    sys.exit(main(globals()))
