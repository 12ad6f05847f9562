"""Which test executes which line of the C code, for tools/mutants: a copy of the files that git
tracks in build-mutants/tree, its builds and tests, and what gcc's counters say of each test."""

import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / "build-mutants"
TREE, RESULT = SCRATCH / "tree", SCRATCH / "coverage.json"
COUNTING, MUTATED, SANITIZED = TREE / "build-coverage", TREE / "build", TREE / "build-asan"
CODE, LINKS = ("src/", "cli/"), ("models", "deps", "web/node_modules")
# A mutant may ask for memory or fill a disk without end. A test has a file of 5 GiB, all holes.
LIMITS = {resource.RLIMIT_DATA: 8 << 30, resource.RLIMIT_FSIZE: 16 << 30}
SKIPPED = 77
# Counters are written when a program ends. Scripts end servers by Popen.kill(), so the build for
# counting has a signal that writes them first, which kill() sends through Python's sitecustomize.
ENDING = SCRATCH / "ending"
WRITE_AND_END = """#include <signal.h>
#include <unistd.h>
void __gcov_dump(void);
static void end(int number) { __gcov_dump(); _exit(128 + number); }
__attribute__((constructor)) static void begin(void) { signal(SIGRTMAX - 1, end); }
"""
KILL = """import signal, subprocess
killed = subprocess.Popen.kill
def kill(self):
    try:
        self.send_signal(signal.SIGRTMAX - 1)
        self.wait(10)
    except subprocess.TimeoutExpired:
        killed(self)
subprocess.Popen.kill = kill
"""
# What tests compile themselves is linked to libraries that count.
COMPILE = """#!/bin/sh
exec gcc "$@" -lgcov
"""
CASES = {"WICK_FUZZ_SECONDS": "1", "WICK_BROWSERS": "chromium"}


def say(text):
    print(text, flush=True)


def jobs():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def must(*command):
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, errors="replace")
    if done.returncode:
        sys.exit(f"mutants: {' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


# ---- The copy, its builds and tests ----

def copy_tree():
    """Files that are the same keep their times, so that only what changed is compiled again."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True,
                           text=True).stdout.split("\0")
    names = [name for name in names if name and (ROOT / name).is_file()]
    for name in names:
        source, copy = ROOT / name, TREE / name
        if not copy.is_file() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    known = set(names)
    for folder in ("src", "include", "cli", "cmake", "tests", "tools", "web"):
        for path in list((TREE / folder).rglob("*")):
            is_known = path.is_symlink() or str(path.relative_to(TREE)) in known
            if path.is_file() and not is_known:
                path.unlink()
    for name in LINKS:
        if (ROOT / name).exists() and not (TREE / name).is_symlink():
            (TREE / name).symlink_to(ROOT / name)


def digest(paths):
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(str(path).encode() + path.read_bytes())
    return found.hexdigest()


def configure(folder, *options):
    must("cmake", "-G", "Ninja", "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release",
         "-DWICK_WERROR=OFF", *options)


def build(folder, targets=()):
    named = ["--target", *targets] if targets else []
    return subprocess.run(["cmake", "--build", str(folder), "-j", str(jobs()), *named], cwd=TREE,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Test:
    def __init__(self, entry, folder):
        properties = {item["name"]: item["value"] for item in entry.get("properties", [])}
        self.name, self.command, self.folder = entry["name"], entry["command"], folder
        self.labels, self.limit = properties["LABELS"], properties["TIMEOUT"]
        self.environment = dict(line.split("=", 1) for line in properties.get("ENVIRONMENT", []))
        inside = [Path(word).stem for word in self.command if word.startswith(f"{folder}/")]
        # What scripts use besides: tests/CMakeLists.txt.
        scripted = any(re.search(r"\.(py|sh)$", word) for word in self.command)
        more = ["wick", "op_cases", "kernel_check", "gpu_bench"] if scripted and not inside else []
        self.targets = [*inside, *more]

    def sources(self):
        stems = {Path(word).stem for word in self.command}
        return [path for path in (TREE / "tests").glob("*/*")
                if path.stem in stems and path.suffix in (".c", ".py", ".sh")]

    def run(self, limit, environment=None, stop=None):
        """The exit status, or "too long" or "stopped"."""
        def limits():
            for kind, amount in LIMITS.items():
                if kind == resource.RLIMIT_DATA and self.folder == SANITIZED:
                    continue  # whose shadow memory takes terabytes of addresses
                most = resource.getrlimit(kind)[1]
                resource.setrlimit(kind, (min(amount, most) if most > 0 else amount, most))
            # Tests interrupt programs, which nohup and a shell's & would have ignore it.
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
        with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as place:
            process = subprocess.Popen(
                self.command, cwd=TREE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=limits,
                env={**os.environ, **CASES, **self.environment, "TMPDIR": place,
                     **(environment or {})})
            begin, why = time.monotonic(), None
            while why is None:
                try:
                    why = process.wait(0.2)
                except subprocess.TimeoutExpired:
                    if time.monotonic() - begin > limit:
                        why = "too long"
                    elif stop and stop.is_set():
                        why = "stopped"
            try:
                os.killpg(process.pid, signal.SIGKILL)  # and what it has left behind
            except ProcessLookupError:
                pass
            process.wait()
            return why


def native_tests(folder):
    listed = json.loads(must("ctest", "--test-dir", str(folder), "--show-only=json-v1"))
    tests = [Test(entry, folder) for entry in listed["tests"] if "command" in entry]
    return {test.name: test for test in tests if "all" not in test.labels}


def sanitized_tests():
    """What `make test` runs under the address and undefined behaviour sanitizers, of tests in C."""
    if not shutil.which("clang-19"):
        say("clang-19 was not found: no test runs under sanitizers")
        return {}
    must("cmake", "-G", "Ninja", "--preset", "asan")
    if not build(SANITIZED, ["tests_unit", "tests_fault"]):  # as in coverage()
        sys.exit(f"mutants: {SANITIZED.relative_to(ROOT)} could not be built")
    return {name: test for name, test in native_tests(SANITIZED).items()
            if {"unit", "fault"} & set(test.labels)}


# ---- Which test executes which line ----

def has_counts(path):
    """gcda files hold the greatest count of each object in their first record but one."""
    with open(path, "rb") as file:
        head = file.read(40)
    at = head.find(b"\0\0\0\xa1")
    return at < 0 or head[at + 12:at + 16] != bytes(4)


def gcov(paths):
    """(file, lines, functions) of each file of code that the objects hold."""
    for at in range(0, len(paths), 4):  # the time grows with the square
        said = subprocess.run(["gcov", "--json-format", "--stdout", *map(str, paths[at:at + 4])],
                              cwd=COUNTING, capture_output=True, text=True).stdout
        for report in said.splitlines():
            for file in json.loads(report)["files"] if report.startswith("{") else []:
                name = os.path.relpath(COUNTING / file["file"], TREE)
                if name.startswith(CODE):
                    yield name, file["lines"], file["functions"]


def executed(test):
    with tempfile.TemporaryDirectory(dir=SCRATCH, prefix="counts-") as counts:
        begin = time.monotonic()
        status = test.run(test.limit, {
            "GCOV_PREFIX": counts, "GCOV_PREFIX_STRIP": str(len(COUNTING.parts) - 1),
            "PYTHONPATH": str(ENDING), "CC": str(ENDING / "cc")})
        seconds, objects = time.monotonic() - begin, []
        for path in Path(counts).rglob("*.gcda"):
            notes = (COUNTING / path.relative_to(counts)).with_suffix(".gcno")
            if notes.is_file() and has_counts(path):
                path.with_suffix(".gcno").symlink_to(notes)
                objects.append(path)
        lines = {}
        for name, entries, _ in gcov(objects):
            lines.setdefault(name, set()).update(
                line["line_number"] for line in entries if line["count"])
    return {"status": status, "seconds": round(seconds, 2), "of": digest(test.sources()),
            "lines": {name: sorted(numbers) for name, numbers in lines.items()}}


def all_lines():
    """{file: {"of": ..., "lines": [...], "functions": [[first, last, name], ...]}} of what the
    build compiles."""
    files = {}
    for name, entries, functions in gcov(sorted(COUNTING.rglob("*.gcno"))):
        lines, found = files.setdefault(name, (set(), set()))
        lines.update(line["line_number"] for line in entries)
        found.update((function["start_line"], function["end_line"], function["name"])
                     for function in functions)
    return {name: {"of": digest([TREE / name]), "lines": sorted(lines), "functions": sorted(found)}
            for name, (lines, found) in sorted(files.items())}


def unchanged_files(known):
    files = {name: file for name, file in known["files"].items()
             if (TREE / name).is_file() and file["of"] == digest([TREE / name])}
    say(f"left out: {len(known['files']) - len(files)} files that have changed since lines were "
        f"counted")
    return files


def coverage(keep):
    """keep: what is known of files that are still the same is enough."""
    code = digest(path for folder in ("src", "include", "cli", "cmake")
                  for path in (TREE / folder).rglob("*") if path.is_file())
    known = json.loads(RESULT.read_text()) if RESULT.is_file() else {"code": None, "tests": {}}
    if keep and known["code"] not in (None, code):
        code, known["files"] = known["code"], unchanged_files(known)
    old = known["tests"] if known["code"] == code else {}
    ENDING.mkdir(exist_ok=True)
    (ENDING / "sitecustomize.py").write_text(KILL)
    (ENDING / "cc").write_text(COMPILE)
    (ENDING / "cc").chmod(0o755)
    (ENDING / "end.c").write_text(WRITE_AND_END)
    must("gcc", "-c", str(ENDING / "end.c"), "-o", str(ENDING / "end.o"))
    configure(COUNTING, "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG --coverage",
              "-DCMAKE_C_COMPILER_LAUNCHER=",
              f"-DCMAKE_EXE_LINKER_FLAGS=--coverage {ENDING / 'end.o'}")
    if not build(COUNTING):  # before CTest is asked, which does not tell commands that are missing
        sys.exit(f"mutants: {COUNTING.relative_to(ROOT)} could not be built")
    tests = native_tests(COUNTING)
    kept = {name: old[name] for name, test in tests.items()
            if name in old and old[name]["of"] == digest(test.sources())}
    wanted = [test for name, test in tests.items() if name not in kept]
    if not wanted and len(kept) == len(old):
        return known
    say(f"counting the lines that {len(wanted)} of {len(tests)} tests execute")
    known = {"code": code, "files": known["files"] if old else all_lines(), "tests": kept}
    pool = ThreadPoolExecutor(jobs())
    try:
        for test, entry in zip(wanted, pool.map(executed, wanted)):
            kept[test.name] = entry
    finally:  # so that another run goes on where this one was interrupted
        RESULT.write_text(json.dumps(known))
        pool.shutdown(cancel_futures=True)
    return known


def tests_of_lines(known):
    """{file: {line: [names of tests]}} of all lines that gcov knows."""
    lines = {name: {line: [] for line in file["lines"]} for name, file in known["files"].items()}
    for test, entry in known["tests"].items():
        for name in entry["lines"].keys() & lines.keys():
            for line in entry["lines"][name]:
                lines[name].setdefault(line, []).append(test)
    return lines


def unseen_folders():
    """Folders with files of C that the native build does not compile."""
    compiled = {entry["file"] for entry in json.loads(
        (COUNTING / "compile_commands.json").read_text())}
    return sorted({str(path.parent.relative_to(TREE)) for folder in (*CODE, "web/glue")
                   for path in (TREE / folder).rglob("*.c") if str(path) not in compiled})
