"""What is installed can be used: a small program is built through pkg-config, through CMake and
with the shared library; the command is there with its manual page, completion and WebGPU."""

import os
import re
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
COMPLETION = {"bash": "bash-completion/completions/wick.bash", "zsh": "zsh/site-functions/_wick",
              "fish": "fish/vendor_completions.d/wick.fish"}


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


def within_a_project(folder):
    """The library alone, and none of the targets that would fail to install where only it was
    built."""
    parent = folder / "parent"
    parent.mkdir()
    (parent / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES C)
add_subdirectory("{Path.cwd()}" wick)
if(NOT TARGET Wick::wick OR TARGET wick OR TARGET Wick::wick_shared OR TARGET test_status)
    message(FATAL_ERROR "not the library alone")
endif()
""")
    configure = ["cmake", "-S", parent, "-B", parent / "build", f"-DCMAKE_C_COMPILER={CC}"]
    return run(configure) is not None


def with_shared_library(folder, prefix):
    library = next(prefix.rglob("libwick.so")).parent
    program = folder / "shared"
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library))
    command = [CC, "-std=c11", folder / "consumer.c", "-I", prefix / "include", "-L", library,
               "-lwick", "-o", program]
    if run(command) is None or run([program], env=environment) is None:
        return False
    return run([program]) is None  # it is the shared one that it was linked to


def long_options(text):
    return set(re.findall(r"--[a-z][a-z-]+", text))


def texts_of_the_command(prefix):
    """The manual page and completion know every command and its options."""
    wick, share = prefix / "bin/wick", prefix / "share"
    page = (share / "man/man1/wick.1").read_text().replace("\\-", "-")
    shells = {shell: share / path for shell, path in COMPLETION.items()}
    overview = run([wick, "help"])
    commands = re.findall(r"^  ([a-z]+) ", overview.split("Options:")[0], re.MULTILINE)
    missing = [] if len(commands) > 10 else ["commands"]
    common = page.split(".SH OPTIONS OF EVERY COMMAND")[1]
    for command in commands:
        section = page.split(f".SS wick {command} ")[1].split(".SS")[0] + common
        listed = re.findall(r"^ .*?(--[a-z-]+)(?:, (--[a-z-]+))?", run([wick, "help", command]),
                            re.MULTILINE)
        options = {name for names in listed for name in names if name}
        missing += [(command, name) for name in options - long_options(section)]
        for shell, path in shells.items():
            text = path.read_text()
            known = text.replace(" -l ", " --") if shell == "fish" else text
            missing += [(shell, command)] if command not in text else []
            missing += [(shell, name) for name in options - long_options(known)]
    done = run(["bash", "-c", f"source {shells['bash']}; COMP_WORDS=(wick run --math e); "
                "COMP_CWORD=3; _wick; echo \"${COMPREPLY[*]}\""])
    missing += [] if done == "exact" else [f"bash completes --math e to {done}"]
    done = run(["bash", "-c", f"source {shells['bash']}; COMP_WORDS=(wick gguf s); "
                "COMP_CWORD=2; _wick; echo \"${COMPREPLY[*]}\""])
    missing += [] if done == "split" else [f"bash completes wick gguf s to {done}"]
    done = run(["bash", "-c", f"source {shells['bash']}; COMP_WORDS=(wick run --backend w); "
                "COMP_CWORD=3; _wick; echo \"${COMPREPLY[*]}\""])
    missing += [] if done == "webgpu" else [f"bash completes --backend w to {done}"]
    for what in missing[:10]:
        print(f"# missing: {what}")
    return not missing and (share / "doc/wick/LICENSE").is_file()


def is_read_by(shell, prefix):
    """The shell takes its file."""
    path = prefix / "share" / COMPLETION[shell]
    if run([shell, "-n", path]) is None:
        return False
    return shell != "fish" or run(["fish", "--no-config", "-c",
                                   f"source {path}; complete -C 'wick gguf s'"]) == "split"


def finds_webgpu(prefix):
    return str(prefix / "bin/../lib/wick/lib") in run([prefix / "bin/wick", "devices"])


def lacks(program):
    return "" if shutil.which(program) else f"{program} was not found"


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prefix = folder / "prefix"
        (folder / "consumer.c").write_text(PROGRAM)
        (folder / "CMakeLists.txt").write_text(PROJECT)
        if run(["cmake", "--install", BUILD, "--prefix", prefix]) is None:
            return 1
        unprinted = "" if Path(BUILD, "wick.1").exists() else "the command does not run here"
        cases = [  # (name, why it is skipped where that is not empty, test)
            ("through pkg-config", lacks("pkg-config"), lambda: with_pkg_config(folder, prefix)),
            ("through CMake", "", lambda: with_cmake(folder, prefix)),
            ("with the shared library",
             "" if Path(BUILD, "libwick.so").exists() else "libwick.so was not built",
             lambda: with_shared_library(folder, prefix)),
            ("manual page, completion, license", unprinted,
             lambda: texts_of_the_command(prefix)),
            *((f"completion in {shell}", unprinted or lacks(shell),
               lambda shell=shell: is_read_by(shell, prefix)) for shell in COMPLETION),
            ("WebGPU",
             "" if Path("deps/webgpu").is_dir() else "libraries of WebGPU were not fetched",
             lambda: finds_webgpu(prefix)),
            ("within another project", "", lambda: within_a_project(folder))]
        for i, (name, reason, test) in enumerate(cases, 1):
            right = reason != "" or test()
            failed += not right
            skip = f" # SKIP {reason}" if reason else ""
            print(f"{'ok' if right else 'not ok'} {i} - {name}{skip}", flush=True)
    return 1 if failed else 0


sys.exit(main())
