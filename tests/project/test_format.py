"""Every C file lies as .clang-format says."""

import shutil
import subprocess
import sys
from pathlib import Path

TOOL = "clang-format-19"
FOLDERS = ["include", "src", "cli", "web/libc", "web/glue", "tests", "examples"]

if not shutil.which(TOOL):
    print(f"{TOOL} was not found")
    sys.exit(77)
files = sorted(str(path) for folder in FOLDERS for path in Path(folder).rglob("*")
               if path.suffix in (".c", ".h", ".def") and "node_modules" not in path.parts)
done = subprocess.run([TOOL, "--dry-run", "--Werror", *files], capture_output=True, text=True)
wrong = sorted({line.split(":")[0] for line in done.stderr.splitlines() if ": error:" in line})
for number, file in enumerate(files, 1):
    print(f"{'not ok' if file in wrong else 'ok'} {number} - {file}")
if done.returncode:
    print("# `make format` mends this")
sys.exit(done.returncode)
