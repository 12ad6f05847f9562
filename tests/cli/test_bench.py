"""`wick bench` and bench/vs_llama_cpp: what they print, not how fast anything is.

A script stands for llama-bench. The environment is that of command.py."""

import csv
import io
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from command import MODEL, ROOT, TIMEOUT, WICK, equal, fails, main, strict_json, succeeds

SHORT = ["-p", 8, "-n", 4, "-r", 2]


def rows_of(*arguments):
    return strict_json(succeeds("bench", MODEL, *arguments, "--json"))


def test_json():
    row, = rows_of(*SHORT, "-t", 1)
    equal((row["model"], row["architecture"], row["types"]), (MODEL, "llama", "f32 47"))
    equal((row["n_parameters"], row["n_prompt"], row["n_generated"]), (260032, 8, 4))
    equal((row["backend"], row["threads"], row["math"], row["n_repetitions"]),
          ("cpu", 1, "fast", 2))
    for test in ("prefill", "decode"):
        least, most = row[f"{test}_least"], row[f"{test}_most"]
        assert 0 < least <= row[f"{test}_tokens_per_second"] <= most, row
    assert row["peak_memory_bytes"] > 1e6 and row["load_seconds"] >= 0, row
    assert 1e8 < row["read_bytes_per_second"] < 1e13, row
    assert row["bytes_per_token"] > row["weight_bytes"], row
    for count in ("dispatches_per_token", "submits_per_token", "reads_per_token",
                  "encode_us_on_critical_path"):
        equal(row[count], None)  # the CPU dispatches nothing


def test_shares_of_the_limits():
    for math, arithmetic in (("fast", "integer"), ("exact", "f32")):
        row, = rows_of(*SHORT, "--math", math)
        equal((row["math"], row["prefill_arithmetic"]), (math, arithmetic))
        peak = row[f"{arithmetic}_ops_per_second"]
        if peak is None:  # --isa ref
            equal((row["isa"], row["prefill_share_of_peak"]), ("ref", None))
            continue
        assert peak > 1e8, row
        vocabulary = 512 * 64
        operations = 2 * (260032 - vocabulary + vocabulary / 8)
        used = row["prefill_tokens_per_second"] * operations / peak
        assert abs(used / row["prefill_share_of_peak"] - 1) < 1e-6, row
        assert row["decode_share_of_bandwidth"] > 0, row


def test_plain_loops_have_no_peak():
    row, = rows_of(*SHORT, "--isa", "ref")
    equal((row["integer_ops_per_second"], row["prefill_share_of_peak"]), (None, None))


def test_kernels_are_those_of_a_gpu():
    fails(1, "--kernels is for GPUs", arguments=["bench", "--kernels", "--backend", "cpu"])
    fails(2, "belong to --kernels", arguments=["bench", "--store"])
    fails(2, "belong to --kernels", arguments=["bench", "--only", "linear*"])


def test_several_values():
    rows = rows_of("-p", "4,8", "-n", "2,3", "-t", "1,2", "-r", 1)
    got = [(row["threads"], row["n_prompt"], row["n_generated"]) for row in rows]
    equal(got, [(t, p, n) for t in (1, 2) for p in (4, 8) for n in (2, 3)])


def test_tests_left_out():
    row, = rows_of("-p", 0, "-n", 4, "-r", 1)
    assert row["prefill_tokens_per_second"] is None and row["decode_tokens_per_second"] > 0, row
    row, = rows_of("-p", 8, "-n", 0, "-r", 1)
    assert row["decode_tokens_per_second"] is None and row["prefill_tokens_per_second"] > 0, row
    assert row["decode_share_of_bandwidth"] is None, row


def test_csv():
    printed = succeeds("bench", MODEL, *SHORT, "--csv").decode()
    row, = csv.DictReader(io.StringIO(printed))
    equal(set(row), set(rows_of(*SHORT)[0]))
    equal((row["types"], row["n_parameters"]), ("f32 47", "260032"))
    assert float(row["decode_tokens_per_second"]) > 0


def test_markdown():
    lines = succeeds("bench", MODEL, "-p", 8, "-n", 4, "-t", 1, "-r", 1).decode().splitlines()
    table = [line for line in lines if line.startswith("|")]
    equal(len(table), 4)
    equal({line.count("|") for line in table}, {table[0].count("|")})
    assert "| prefill 8 | 1 | fast |" in table[2] and "| decode 4 |" in table[3], table
    shares = [re.search(r"\| ([\u2588-\u258f]*) *\| (\d+) %", row) for row in table[2:]]
    for bar, share in (found.groups() for found in shares):
        assert abs(len(bar) - min(10, int(share) / 10)) <= 1, table
    assert any(line.startswith("1 thread: reads ") for line in lines), lines


def test_without_a_model():
    assert b"decode 4" in succeeds("bench", *SHORT)


def test_wrong_values():
    for words in (["-p", "8,"], ["-p", ""], ["-p", "-1"], ["-t", "1;2"], ["-n", "99999999999999"],
                  ["-r", 0], ["-p", ",".join("1" * 17)], ["-t", 1025]):
        fails(2, "whole number", arguments=["bench", MODEL, *words])
    fails(2, "--csv", arguments=["bench", "--csv", "--json"])
    fails(2, "measures nothing", arguments=["bench", MODEL, "-p", 0, "-n", "0,0"])
    fails(1, "no/such", arguments=["bench", "no/such.gguf"])


# ---- bench/vs_llama_cpp ----

STAND_IN = """#!/usr/bin/env python3
import json, sys
value = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert value["-o"] == "json" and value["-r"] == "1", sys.argv
rows = [{"n_prompt": int(value["-p"]), "n_gen": 0, "avg_ts": 100.0, "build_commit": "abc"},
        {"n_prompt": 0, "n_gen": int(value["-n"]), "avg_ts": 50.0, "build_commit": "abc"}]
print(json.dumps([row for row in rows if row["n_prompt"] + row["n_gen"] > 0]))
"""


def versus(folder, *arguments, stand_in=STAND_IN):
    program = Path(folder) / "llama-bench"
    program.write_text(stand_in)
    program.chmod(0o755)
    command = [sys.executable, ROOT / "bench/vs_llama_cpp", "--llama-bench", program, "--wick",
               WICK, *arguments, MODEL]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=TIMEOUT,
                          check=False)


def test_comparison():
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        done = versus(folder, "-t", "1,2", "-p", 8, "-n", 4, "-r", 2, "--out", out)
        equal(done.returncode, 0)
        report = json.loads(out.read_text())
        equal([(r["threads"], r["test"]) for r in report["results"]],
              [(t, test) for t in (1, 2) for test in ("prefill 8", "decode 4")])
        for result in report["results"]:
            equal(len(result["wick_tokens_per_second"]), 2)
            expected = result["wick_median"] / (100 if "prefill" in result["test"] else 50)
            assert abs(result["ratio"] - expected) < 1e-9 * expected, result
        equal(report["about"]["llama.cpp"], "abc")
        assert folder not in done.stdout + out.read_text(), "places of this machine in the results"
        equal(done.stdout.count("| stories260K.gguf |"), 4)


def test_comparison_in_markdown_of_one_test():
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.md"
        done = versus(folder, "-t", 1, "-p", 0, "-n", 4, "-r", 1, "--out", out,
                      "--wick-arguments", "--math exact", "--llama-name", "of today")
        equal((done.returncode, done.stdout), (0, out.read_text()))
        assert "decode 4" in done.stdout and "prefill 0" not in done.stdout, done.stdout
        assert "exact math; llama.cpp of today" in done.stdout, done.stdout


def test_comparison_with_a_program_that_fails():
    with tempfile.TemporaryDirectory() as folder:
        done = versus(folder, stand_in="#!/bin/sh\necho broken >&2\nexit 3\n")
        equal((done.returncode, done.stdout), (1, ""))
        assert "ended with 3" in done.stderr and "broken" in done.stderr, done.stderr


if __name__ == "__main__":
    sys.exit(main(globals()))
