#!/usr/bin/env python3
"""Every kernel as the compilers of real GPUs read it (TAP): naga translates its WGSL to SPIR-V,
MSL and HLSL, and the SPIR-V has no index of a local array or vector that depends on data, because
most GPUs keep such an array in memory. Not seen: counters of loops whose bound is not constant,
variables that get several constants, and arrays that are passed by pointer. The programs are those
that random operations need, chosen as for a GPU.

usage: translation.py --backend webgpu --webgpu-lib PATH [--print]"""

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WICK = Path(os.environ.get("WICK_BUILD_DIR", "build")) / "wick"
FORMATS = ("spv", "metal", "hlsl")

# SPIR-V 1.6, sections 3.7 and 3.49.
CONSTANTS, VARIABLE, LOAD, STORE, CHAINS, EXTRACT = (43, 44, 46), 59, 61, 62, (65, 66), 77
FUNCTION, PRIVATE = 7, 6
ARITHMETIC = (124, 128, 130, 132, 134, 135, 137, 138, 139, 194, 195, 196, 197, 199)


def instructions(path):
    """(operation, operands) of a module."""
    words = struct.unpack(f"<{path.stat().st_size // 4}I", path.read_bytes())
    at = 5
    while at < len(words):
        length, operation = words[at] >> 16, words[at] & 0xFFFF
        yield operation, words[at + 1:at + length]
        at += length


class Module:
    """What the indices of a translated program depend on."""

    def __init__(self, path):
        self.made, self.stored, self.indices, self.length = {}, {}, [], 0
        for operation, operands in instructions(path):
            self.length += 1
            if operation in (VARIABLE, LOAD, *CONSTANTS, *ARITHMETIC):
                self.made[operands[1]] = (operation, operands[2:])
            elif operation == STORE:
                self.stored.setdefault(operands[0], []).append(operands[1])
            elif operation in CHAINS and self.is_local(operands[2]):
                self.indices += operands[3:]
            elif operation == EXTRACT:  # of a vector in registers
                self.indices.append(operands[3])

    def is_local(self, value):
        operation, operands = self.made.get(value, (0, ()))
        return operation == VARIABLE and operands[0] in (FUNCTION, PRIVATE)

    def is_known(self, value, above=()):
        """It follows from constants and from variables that begin and go on with constants."""
        operation, operands = self.made.get(value, (0, ()))
        if operation in CONSTANTS or value in above:
            return True
        if operation == LOAD and self.is_local(operands[0]):
            return all(self.is_known(stored, (*above, value, operands[0]))
                       for stored in self.stored.get(operands[0], [])) or operands[0] in above
        return operation in ARITHMETIC and all(self.is_known(of, above) for of in operands)

    def count_computed_indices(self):
        """Of local arrays, and of vectors in registers."""
        return sum(not self.is_known(index) for index in self.indices)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def list_kernels(options):
    listed = run(WICK, "devices", *options, "--wgsl", "?").stderr
    return re.findall(r"^  (\w+)$", listed, re.M)


def programs_of(kernel, options):
    done = run(WICK, "devices", *options, "--wgsl", kernel)
    assert done.returncode == 0, done.stderr
    return re.split(r"^// program \d+ of \w+\n", done.stdout, flags=re.M)[1:]


def check_kernel(kernel, options, folder):
    """(indices that are computed in the program with most of them, instructions of the longest)."""
    most, longest = 0, 0
    for i, text in enumerate(programs_of(kernel, options)):
        source = folder / f"{kernel}_{i}.wgsl"
        source.write_text(text)
        targets = [source.with_suffix(f".{end}") for end in FORMATS]
        done = run("naga", "--metal-version", "2.4", source, *targets)
        assert done.returncode == 0, f"program {i + 1}: {done.stderr}"
        module = Module(targets[0])
        most = max(most, module.count_computed_indices())
        longest = max(longest, module.length)
    return most, longest


def main():
    options = ["--adapter", "software", "--as-gpu"]
    os.environ["PATH"] += os.pathsep + str(Path("deps/naga/bin").resolve())
    if "--webgpu-lib" in sys.argv:
        options += ["--webgpu-lib", sys.argv[sys.argv.index("--webgpu-lib") + 1]]
    if not shutil.which("naga"):
        print("skipped: naga was not found (cargo install naga-cli --root deps/naga)")
        return 77
    kernels = list_kernels(options)
    print(f"1..{len(kernels)}")
    n_right = 0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        checks = [pool.submit(check_kernel, kernel, options, Path(name)) for kernel in kernels]
        for i, (kernel, check) in enumerate(zip(kernels, checks), 1):
            try:
                n, length = check.result()
                assert n == 0, f"{n} indices that depend on data"
                if "--print" in sys.argv:
                    print(f"# {kernel}: {n} computed indices, {length} instructions")
                print(f"ok {i} - {kernel}")
                n_right += 1
            except AssertionError as error:
                print("\n".join(f"# {line}" for line in str(error).splitlines()))
                print(f"not ok {i} - {kernel}")
    return 0 if kernels and n_right == len(kernels) else 1


if __name__ == "__main__":
    sys.exit(main())
