#!/usr/bin/env python3
"""tools/gpu_report on one adapter, from a folder that holds nothing but what it needs (TAP).

usage: gpu_report.py [--minutes N] --backend webgpu --webgpu-lib PATH"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

BUILD = Path(os.environ.get("WICK_BUILD_DIR", "build"))
PROGRAMS = ("gpu_report", "gpu_bench", "wick")
TYPES = ("q4_0", "q8_0", "q4_k", "q6_k", "f16", "attention")


def report(folder, *arguments):
    """The exit status, what was said, and the report."""
    done = subprocess.run([folder / "gpu_report", "--out", folder / "out", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, check=False)
    path = folder / "out/gpu_report.json"
    text = path.read_text() if path.exists() else ""
    return done.returncode, done.stdout.decode(errors="replace"), text


def check_sections(data):
    adapter, = data["adapters"]
    assert data["is_complete"] and adapter["name"] and adapter["limits"]["binding_bytes"], adapter
    assert data["troubles"] == [], data["troubles"]
    verified, = data["verify"]
    assert len(verified["kernels"]) >= 3, verified
    assert set(verified["kernels"].values()) == {"right"} and verified["text"] == "right", verified
    limits, = data["limits"]
    for key in ("read_64_mib_bytes_per_second", "f32_ops_per_second", "submit_seconds",
                "thousand_dependent_dispatches_seconds", "host_seconds_per_dispatch",
                "thousand_independent_dispatches_seconds"):
        assert limits[key] > 0, (key, limits)
    kernels, = data["kernels"]
    for kind in TYPES:
        assert any(row["is_fastest"] and row["seconds"] > 0 for row in kernels[kind]), kind
    models, = data["models"]
    built_in = models["decode"][0]
    # More submits where the driver is slow: what is recorded is cut.
    assert built_in["reads_per_token"] == 1 <= built_in["submits_per_token"], built_in
    assert built_in["dispatches_per_token"] > 10, built_in
    assert built_in["encode_us_on_critical_path"] > 0, built_in
    for test in ("decode", "prefill"):
        assert all(row["tokens_per_second"] > 0 for row in models[test]) and models[test], models


def check_page(folder):
    page = (folder / "out/gpu_report.md").read_text()
    assert "kernels right" in page and "ratio" in page, page[:500]
    plots = [line[line.index("(") + 1:-1] for line in page.splitlines() if line.startswith("![")]
    assert len(plots) == 3, plots
    for name in plots:
        assert (folder / "out" / name).read_text().startswith("<svg"), name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", default="0.1")
    parser.add_argument("--backend")
    parser.add_argument("--webgpu-lib")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        for name in PROGRAMS:
            shutil.copy(BUILD / name, folder)
        library = ["--webgpu-lib", str(Path(given.webgpu_lib).resolve())]

        status, said, text = report(folder, "--minutes", given.minutes, *library)
        assert status == 0, said
        first = json.loads(text)
        check_sections(first)
        print("ok 1 - the report is complete", flush=True)

        for secret in (path, str(Path.cwd()), os.path.expanduser("~") + "/", platform.node()):
            assert len(secret) < 3 or secret not in text, f"the report holds '{secret}'"
        print("ok 2 - it holds no paths and no host", flush=True)

        check_page(folder)
        shutil.copy(folder / "out/gpu_report.json", folder / "first.json")
        status, said, text = report(folder, "--minutes", given.minutes, "--parts", "verify",
                                    "--baseline", str(folder / "first.json"), *library)
        assert status == 0, said
        assert json.loads(text)["verify"] == first["verify"], said
        print("ok 3 - the verdicts are the same twice", flush=True)

        status, said, text = report(folder, "--webgpu-lib", str(folder / "none.so"))
        assert status == 1 and "no adapter of WebGPU can be used" in said, (status, said)
        assert not json.loads(text)["is_complete"], text
        print("ok 4 - without an adapter it says so", flush=True)
    print("1..4")


if __name__ == "__main__":
    main()
