"""What is installed can be used: a small program is built through pkg-config and through CMake."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CC = os.environ.get("CC", "cc")
BUILD = os.environ["WICK_BUILD_DIR"]

PROGRAM = """#include <stdio.h>
#include <wick/wick.h>

int main(void) {
    wick_backend_status backends[16];
    const size_t n = wick_backends(backends, 16);
    printf("%s %d\\n", wick_version(), n > 0);
    return n > 0 ? 0 : 1;
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package(Wick 0.1 REQUIRED)
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE Wick::wick)
"""


def run(command, **options):
    """Its output, without the ends; None when it failed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)
    if done.returncode:
        print("# " + " ".join(map(str, command)) + "\n# " + done.stdout.replace("\n", "\n# "))
        return None
    return done.stdout.strip()


def with_pkg_config(folder, prefix):
    found = next(prefix.rglob("wick.pc")).parent
    environment = dict(os.environ, PKG_CONFIG_PATH=str(found), LD_LIBRARY_PATH=str(found.parent))
    flags = run(["pkg-config", "--cflags", "--libs", "wick"], env=environment)
    program = folder / "by_pkg_config"
    if flags is None:
        return False
    if run([CC, "-std=c11", folder / "consumer.c", "-o", program, *flags.split()]) is None:
        return False
    return run([program], env=environment) is not None


def with_cmake(folder, prefix):
    build = folder / "build"
    configure = ["cmake", "-S", folder, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
                 f"-DCMAKE_C_COMPILER={CC}"]
    return (run(configure) is not None and run(["cmake", "--build", build]) is not None
            and run([build / "consumer"]) is not None)


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prefix = folder / "prefix"
        (folder / "consumer.c").write_text(PROGRAM)
        (folder / "CMakeLists.txt").write_text(PROJECT)
        if run(["cmake", "--install", BUILD, "--prefix", prefix]) is None:
            return 1
        if not shutil.which("pkg-config"):
            print("ok 1 - through pkg-config # SKIP pkg-config was not found")
        else:
            right = with_pkg_config(folder, prefix)
            failed += not right
            print(f"{'ok' if right else 'not ok'} 1 - through pkg-config")
        right = with_cmake(folder, prefix)
        failed += not right
        print(f"{'ok' if right else 'not ok'} 2 - through CMake")
    return 1 if failed else 0


sys.exit(main())
