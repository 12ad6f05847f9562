"""bench/operations: what it reads, which kernels it takes and what it calls slower (TAP). Made-up
figures; nothing is timed."""

import importlib.machinery
import importlib.util
import json
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # no bench/__pycache__
LOADER = importlib.machinery.SourceFileLoader("operations", "bench/operations")
operations = importlib.util.module_from_spec(importlib.util.spec_from_loader("operations", LOADER))
LOADER.exec_module(operations)

PRINTED = """\
norm_avx512                  0.2 us   34.56 GB/s    2.88 GFLOP/s    23.6 x ref  norm y f32[1, 576]
norm_avx512                 57.2 us   41.28 GB/s    5.16 GFLOP/s    46.4 x ref  norm y f32[512, 576]
"""


def row(kernel, shape, rate):
    return {"kernel": kernel, "shape": shape, "microseconds": 100 / rate, "gb_per_second": rate,
            "gflop_per_second": rate / 4, "times_ref": rate}


def written(folder, name, rows):
    """The results of a file, as bench/operations loads them."""
    path = Path(folder) / name
    path.write_text(json.dumps({"about": {"processor": "none"}, "results": rows}))
    return operations.load(path)[0]


def compare(new_rates, again_rates=()):
    """What is found slower where the baseline has 10 GB/s for a, b and c, with later runs."""
    with tempfile.TemporaryDirectory() as folder:
        old = written(folder, "old.json", [row("x_avx2", shape, 10) for shape in "abc"])
        new = written(folder, "new.json", [row("x_avx2", *item) for item in new_rates.items()])
    later = iter(again_rates)
    asked = []

    def again(names):
        asked.append(names)
        rates = next(later)
        return {("x_avx2", shape): row("x_avx2", shape, rates[shape]) for shape in rates}

    found = operations.confirm(new, old, 0.8, 1 + len(again_rates), again)
    ratios = {shape: round(ratio, 3) for (_, shape), ratio in found.items()}
    return ratios, asked, operations.verdict(new, old, found, 0.8)


def test_reading():
    rows = operations.parse(PRINTED)
    assert list(rows) == [("norm_avx512", "norm y f32[1, 576]"),
                          ("norm_avx512", "norm y f32[512, 576]")]
    assert rows["norm_avx512", "norm y f32[512, 576]"] == {
        "microseconds": 57.2, "gb_per_second": 41.28, "gflop_per_second": 5.16, "times_ref": 46.4}
    try:
        operations.parse("kernel_check: no kernel")
    except ValueError:
        return
    raise AssertionError("taken for a result")


def test_choice_of_kernels():
    names = ["a_avx2", "a_avx512", "a_ref", "b_avx2", "c_ref"]
    assert operations.best_kernels(names, ["avx512", "avx2"]) == ["a_avx512", "b_avx2"]
    assert operations.best_kernels(names, ["avx2"]) == ["a_avx2", "b_avx2"]


def test_as_fast():
    ratios, asked, lines = compare({"a": 8.1, "b": 10, "c": 30}, [{}])
    assert (ratios, asked) == ({}, []) and lines == ["3 compared, 0 below 0.8 of the baseline; "
                                                     "0 are not in it"]


def test_noise_is_measured_again():
    ratios, asked, _ = compare({"a": 5, "b": 10}, [{"a": 9, "b": 2}, {"a": 10, "b": 2}])
    assert ratios == {} and asked == [["x_avx2"]] * 2


def test_slower():
    ratios, _, lines = compare({"a": 5, "b": 2, "d": 1}, [{"a": 6, "b": 2}, {"a": 4, "b": 3}])
    assert ratios == {"a": 0.5, "b": 0.2}
    assert lines == ["x_avx2: 0.20 times as fast as it was, b",
                     "x_avx2: 0.50 times as fast as it was, a",
                     "2 compared, 2 below 0.8 of the baseline; 1 are not in it"]


def test_table():
    report = {"about": operations.describe("avx2", 0.1), "results": [row("x_avx2", "a", 10)]}
    assert operations.markdown(report).endswith("| x_avx2 | a | 10.0 | 10.00 | 2.50 | 10.0 |\n")


def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    n_failed = 0
    for number, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {name}")
        except AssertionError as error:
            n_failed += 1
            line = error.__traceback__.tb_next.tb_lineno
            print(f"not ok {number} - {name}\n# line {line}: {error}")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
