#!/usr/bin/env python3
"""Every kernel as the compilers of real GPUs read it (TAP): naga translates its WGSL to SPIR-V,
MSL and HLSL, and the SPIR-V has no index of a local array or vector that depends on data, because
most GPUs keep such an array in memory. Known are constants, counters that are compared with what
is known, so that a compiler can unroll their loops, and parameters that are known in all calls.
The programs are those that random operations need, chosen as for a GPU.

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
BEGIN, PARAMETER, CALL, POINTER = 54, 55, 57, 32
FUNCTION, PRIVATE = 7, 6
ARITHMETIC = (124, 128, 130, 132, 134, 135, 137, 138, 139, 194, 195, 196, 197, 199)
COMPARISONS = range(170, 180)  # of integers


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
        self.compared, self.pointers, self.given = [], {}, {}
        parameters, calls = {}, []  # of each function
        for operation, operands in instructions(path):
            self.length += 1
            if operation in (VARIABLE, LOAD, *CONSTANTS, *ARITHMETIC):
                self.made[operands[1]] = (operation, operands[2:])
            elif operation == POINTER:
                self.pointers[operands[0]] = operands[1]
            elif operation == BEGIN:
                of_function = parameters.setdefault(operands[1], [])
            elif operation == PARAMETER:
                self.made[operands[1]] = (PARAMETER, (self.pointers.get(operands[0]),))
                of_function.append(operands[1])
            elif operation == CALL:
                calls.append(operands[2:])
            elif operation in COMPARISONS:
                self.compared.append(operands[2:])
            elif operation == STORE:
                self.stored.setdefault(operands[0], []).append(operands[1])
            elif operation in CHAINS and self.is_local(operands[2]):
                self.indices += operands[3:]
            elif operation == EXTRACT:  # of a vector in registers
                self.indices.append(operands[3])
        for function, *given in calls:
            for parameter, value in zip(parameters[function], given):
                self.given.setdefault(parameter, []).append(value)

    def is_local(self, value):
        operation, operands = self.made.get(value, (0, ()))
        return operation in (VARIABLE, PARAMETER) and operands[0] in (FUNCTION, PRIVATE)

    def reads(self, value, variable):
        """It is made of the variable."""
        operation, operands = self.made.get(value, (0, ()))
        if operation == LOAD:
            return operands[0] == variable
        return operation in ARITHMETIC and any(self.reads(of, variable) for of in operands)

    def is_bounded(self, variable, above):
        """A counter that is compared with what is known: a compiler can unroll its loop."""
        return any(self.reads(a, variable) and self.is_known(b, above) or
                   self.reads(b, variable) and self.is_known(a, above) for a, b in self.compared)

    def is_known(self, value, above=()):
        """It follows from constants, and from counters that go from one constant to another."""
        operation, operands = self.made.get(value, (0, ()))
        if operation in CONSTANTS or value in above:
            return True
        if operation == LOAD and self.is_local(operands[0]):
            variable, stored = operands[0], self.stored.get(operands[0], [])
            if variable in above:
                return True
            counts = [self.reads(by, variable) for by in stored]
            if any(counts) and not self.is_bounded(variable, (*above, variable)):
                return False
            begins = {by for by, is_count in zip(stored, counts) if not is_count}
            return len(begins) <= 1 and all(self.is_known(by, (*above, value, variable))
                                            for by in stored)
        of = self.given.get(value, ()) if operation == PARAMETER else operands
        return (operation in (PARAMETER, *ARITHMETIC) and
                all(self.is_known(x, (*above, value)) for x in of))

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
