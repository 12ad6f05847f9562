"""The public headers as C11 and as C++17, by every C++ compiler that is here: each alone and twice
in one unit; with a WICK_API of the caller's; and every macro, whose value must be the one that C
has. docs/ownership.md says who owns each of their objects."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-Iinclude"]
C = [os.environ.get("CC", "cc"), "-x", "c", "-std=c11", "-Wstrict-prototypes"]
COMPILERS = [next((tool for tool in tools if shutil.which(tool)), None)
             for tools in (("g++", "c++"), ("clang++", "clang++-19"))]
CXX = {tool: [tool, "-x", "c++", "-std=c++17"] for tool in COMPILERS if tool}

HEADERS = sorted(path.name for path in Path("include/wick").glob("*.h"))
ALL = "".join(f"#include <wick/{header}>\n" for header in HEADERS)
TEXT = "".join(Path("include/wick", header).read_text() for header in HEADERS)

# Statements for macros that are not plain numbers, in C and in C++; each shows what it got.
USES = {
    "WICK_API": [],
    "WICK_OLLAMA_VERSION": ["puts(WICK_OLLAMA_VERSION);"],
    "WICK_SCALAR": ["show_shape(WICK_SCALAR);"],
    "WICK_SHAPE": [
        "show_shape(WICK_SHAPE(2, 3));",
        "show_shape(WICK_SHAPE(small, n, size, fixed, byte, wide));",
        "show_shape(WICK_SHAPE(size));",
        "show_shape(n > 1 ? WICK_SHAPE(n++) : WICK_SHAPE(1, 2));",
        "const wick_shape nested = WICK_SHAPE(WICK_SHAPE(n, 9).extent[1], (int64_t)-1);\n"
        "show_shape(nested);",
        "show_shape(WICK_SHAPE(WICK_MAX_RANK, WICK_VALUE_F64, n == 3, 'a'));",
    ],
    "WICK_STATUS_LIST": [
        "#define SHOW(name, value, text) printf(\"%d %d %s\\n\", (int)WICK_##name, value, text);\n"
        "WICK_STATUS_LIST(SHOW)\n"
        "#undef SHOW",
    ],
}

PROGRAM = """
#include <stdio.h>

/* In place of the library's. */
wick_shape wick_shape_of(int rank, const int64_t *extent) {
    wick_shape shape = WICK_EMPTY;
    shape.rank = rank;
    for (int i = 0; i < rank; i++) shape.extent[i] = extent[i];
    return shape;
}

static void show_shape(wick_shape shape) {
    printf("%d:", shape.rank);
    for (int i = 0; i < WICK_MAX_RANK; i++) printf(" %lld", (long long)shape.extent[i]);
    printf("\\n");
}

int main(void) {
    int small = 2;
    long n = 3;
    size_t size = 4;
    const int64_t fixed = 5;
    unsigned char byte = 6;
    uint64_t wide = 7;
USES
    show_shape(WICK_SHAPE(small, n, size, fixed, byte, wide));
    return 0;
}
"""

number, failed = 0, 0


def report(right, what):
    global number, failed
    number += 1
    failed += not right
    print(f"{'ok' if right else 'not ok'} {number} - {what}", flush=True)


def compiles(compiler, program, *more):
    command = compiler + WARNINGS + ["-fsyntax-only", *more, "-"]
    return subprocess.run(command, input=program, text=True).returncode == 0


def check_api(name, compiler):
    """No declaration escapes a WICK_API of the caller's, be it empty or a word."""
    n_declared = len(re.findall(r"^WICK_API\b", TEXT, re.M))
    report(compiles(compiler, ALL, "-DWICK_API="), f"an empty WICK_API, {name}")
    mine = subprocess.run(compiler + ["-Iinclude", "-E", "-P", "-DWICK_API=of_the_caller", "-"],
                          input=ALL, text=True, capture_output=True).stdout
    report(n_declared > 200 and mine.count("of_the_caller") == n_declared and
           "visibility" not in mine, f"a WICK_API of the caller's, {name}")


def macros():
    """Name and parameters of every macro that stays defined; include guards left out."""
    found = dict(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(WICK_\w+)(\([^)]*\))?", TEXT, re.M))
    gone = re.findall(r"^[ \t]*#[ \t]*undef[ \t]+(\w+)", TEXT, re.M)
    return {name: found[name] for name in sorted(found)
            if name not in gone and not name.endswith("_H")}


def macro_program(language):
    uses = []
    for name, parameters in macros().items():
        if name not in USES and parameters:
            sys.exit(f"{name} takes arguments: say in USES how it is used")
        uses += USES.get(name, [f'printf("{name} %lld\\n", (long long)({name}));'])
    empty = "{}" if language == "C++" else "{0}"
    return ALL + f"#define WICK_EMPTY {empty}" + PROGRAM.replace("USES", "\n".join(uses))


def output(compiler, language, folder):
    program = os.path.join(folder, "macros")
    command = compiler + WARNINGS + ["-Wno-sign-conversion", "-O1", "-", "-o", program]
    made = subprocess.run(command, input=macro_program(language), text=True)
    if made.returncode != 0:
        return None
    return subprocess.run([program], capture_output=True, text=True).stdout


for header in HEADERS:
    for name, compiler in (("C11", C), *((f"C++17 by {tool}", CXX[tool]) for tool in CXX)):
        report(compiles(compiler, f"#include <wick/{header}>\n" * 2), f"{header} as {name}")
check_api("C11", C)
with tempfile.TemporaryDirectory() as folder:
    want = output(C, "C", folder)
    report(want is not None and len(want.splitlines()) > 30, "macros as C11")
    for tool, compiler in CXX.items():
        check_api(tool, compiler)
        report(output(compiler, "C++", folder) == want, f"macros as C++17 by {tool}, as in C")
opaque = set(re.findall(r"^typedef struct (\w+) wick_\w+;", TEXT, re.M))
opaque = {name.replace("wk_", "wick_") for name in opaque}
owned = Path("docs/ownership.md").read_text()
unnamed = [name for name in sorted(opaque) if f"`{name}`" not in owned]
report(len(opaque) > 25 and not unnamed, f"docs/ownership.md names every object {unnamed or ''}")
if not CXX:
    print(f"ok {number + 1} - C++17 # SKIP no C++ compiler was found")
sys.exit(1 if failed else 0)
