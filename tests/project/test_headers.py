"""Every public header compiles alone, twice in one unit, as C11 and as C++17."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
C = [os.environ.get("CC", "cc"), "-x", "c", "-std=c11", "-Wstrict-prototypes"]
CXX = next(([tool, "-x", "c++", "-std=c++17"] for tool in ("c++", "g++", "clang++", "clang++-19")
            if shutil.which(tool)), None)


def compiles(compiler, header):
    command = compiler + WARNINGS + ["-Iinclude", "-fsyntax-only", "-"]
    program = f"#include <wick/{header}>\n" * 2
    return subprocess.run(command, input=program, text=True).returncode == 0


failed, number = 0, 0
for header in sorted(path.name for path in Path("include/wick").glob("*.h")):
    for language, compiler in (("C11", C), ("C++17", CXX)):
        number += 1
        if compiler is None:
            print(f"ok {number} - {header} as {language} # SKIP no C++ compiler was found")
            continue
        right = compiles(compiler, header)
        failed += not right
        print(f"{'ok' if right else 'not ok'} {number} - {header} as {language}", flush=True)
sys.exit(1 if failed else 0)
