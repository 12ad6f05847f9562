"""A build for another processor, under an emulator, against one for this processor: every kernel
that both have a fast form of, and the logits of a small model on each instruction set, must be the
same bits (TAP)."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

EMULATOR = shlex.split(os.environ["WICK_EMULATOR"])
OTHER = Path(os.environ["WICK_BIN"])
NATIVE = Path(os.environ["WICK_NATIVE_BIN"])
ISAS = os.environ["WICK_ISAS"].split()
MODEL = Path(os.environ["WICK_TEST_DATA"]) / "stories260K.gguf"
CASES = os.environ.get("WICK_KERNEL_CASES", "20")
TOKENS = "1 403 407 261 378 432 264 285 300 268 351 266 403 434 369 410 361 384 396 261"

n_tests, n_failed = 0, 0


def check(is_right, what):
    global n_tests, n_failed
    n_tests += 1
    n_failed += not is_right
    print(f"{'ok' if is_right else 'not ok'} {n_tests} - {what}")


def output(command):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        print(f"# {' '.join(map(str, command))}: {done.returncode}\n# {done.stderr.strip()}")
    return done.stdout


def digests(prefix, program):
    """{kernel without its instruction set: {instruction set: digest}}"""
    found = {}
    for line in output([*prefix, program, f"--cases={CASES}"]).splitlines():
        match = re.match(r"ok \d+ - (\w+)_([a-z0-9]+): .* digest ([0-9a-f]{16})$", line)
        if match and match.group(2) != "ref":
            found.setdefault(match.group(1), {})[match.group(2)] = match.group(3)
    return found


def check_kernels():
    native = digests([], NATIVE.parent / "kernel_check")
    other = digests(EMULATOR, OTHER.parent / "kernel_check")
    check(bool(other), "kernels are there")
    for kernel, by_isa in sorted(other.items()):
        for isa, digest in by_isa.items():
            for native_isa, native_digest in native.get(kernel, {}).items():
                check(digest == native_digest, f"{kernel}: {isa} as {native_isa}")


def logits(prefix, wick, isa, math, folder):
    out = Path(folder) / "logits.npy"
    out.unlink(missing_ok=True)
    output([*prefix, wick, "logits", MODEL, "--tokens", TOKENS, "--isa", isa, "--math", math,
            "--out", out])
    return out.read_bytes() if out.exists() else b""


def check_logits():
    with tempfile.TemporaryDirectory() as folder:
        for math in ("exact", "fast"):
            expected = logits([], NATIVE, "auto", math, folder)
            check(bool(expected), f"logits, {math} math")
            for isa in ISAS:
                if isa != "ref":  # its sums are float64
                    got = logits(EMULATOR, OTHER, isa, math, folder)
                    check(got == expected, f"logits, {math} math: {isa}")


if not (NATIVE.parent / "kernel_check").is_file() or not NATIVE.is_file():
    print(f"skipped: there is no build for this processor at {NATIVE.parent} to compare with")
    sys.exit(77)
if "avx2" not in output([NATIVE.parent / "kernel_check", "--list"]):
    print("skipped: this processor has no instruction set with kernels to compare with")
    sys.exit(77)
check_kernels()
check_logits()
print(f"1..{n_tests}")
sys.exit(n_failed > 0)
