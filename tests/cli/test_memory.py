"""Peak resident memory of `wick run` on the CPU against what `wick info` predicts, with the context
filled.

WICK_BIN is the command; models: WICK_REAL_MODEL, and the files that WICK_MEMORY_MODELS names (with
':' between them), for larger ones by hand. Prints TAP."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WICK = os.environ.get("WICK_BIN", str(ROOT / "build/wick"))
CONTEXT = 640
MIB = 1 << 20


def predicted(model):
    done = subprocess.run([WICK, "info", model, "--json", "--context", str(CONTEXT)],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["predicted_memory"]


def peak(model):
    """The child's high-water mark. It counts this script's before exec, some 15 MiB: far below that
    of any real model."""
    ids = " ".join(str(100 + i % 300) for i in range(CONTEXT - 8))
    child = subprocess.Popen([WICK, "run", model, "--backend", "cpu", "--tokens", ids, "-n", "8",
                              "--ignore-end", "--temp", "0", "--quiet", "--context", str(CONTEXT)],
                             stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, f"exit {child.returncode}"
    return usage.ru_maxrss * 1024


def check(model):
    forecast = predicted(model)
    found, total = peak(model), forecast["total_bytes"]
    allowed = 1.15 * os.path.getsize(model) + forecast["cache_bytes"] + 32 * MIB
    print(f"# {os.path.basename(model)}: peak {found / MIB:.1f} MiB, predicted {total / MIB:.1f} "
          f"({found / total:.3f}), at most {allowed / MIB:.1f} may be predicted")
    assert found <= 1.05 * total, "more memory than was predicted"
    assert total <= allowed, "more memory is predicted than the file and the cache explain"


def main():
    models = [os.environ.get("WICK_REAL_MODEL", "")]
    models += [path for path in os.environ.get("WICK_MEMORY_MODELS", "").split(":") if path]
    failures = 0
    for number, model in enumerate(models, 1):
        name = f"memory of {os.path.basename(model) or 'the real model'}"
        if not os.path.exists(model):
            print(f"ok {number} - {name} # SKIP the file is not there")
            continue
        try:
            check(model)
            print(f"ok {number} - {name}")
        except (AssertionError, subprocess.CalledProcessError) as failure:
            failures += 1
            print(f"not ok {number} - {name}\n# {failure}")
    print(f"1..{len(models)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
