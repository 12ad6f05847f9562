"""The programs of examples/ compile and do what they say; the C code in the documents is theirs.

WICK_BUILD_DIR holds libwick.a, CC is the compiler, WICK_SHARED_DATA the folder of the fixtures.
Every case reports a TAP line. A program whose arguments name a missing file is only compiled."""

import json
import lzma
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from command import with_template

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("WICK_BUILD_DIR", ROOT / "build"))
DATA = Path(os.environ.get("WICK_TEST_DATA", ROOT / "tests/data"))
MODEL = DATA / "stories260K.gguf"
# Silero VAD (1.2 MB) and a recording for it: beside the repository, not in it.
REAL = Path(os.environ.get("WICK_SHARED_DATA", ROOT.parent / "shared/data")) / "real"
CC = os.environ.get("CC", "cc")
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]

ON_GPU = ["sh", ROOT / "tests/gpu/on_webgpu.sh", "dawn", "swiftshader"]


def check_digits(said):
    right = "357 of 360 images right (99.2 %); logits within "
    found = re.match(re.escape(right) + r"(\S+) of the stored ones\n", said)
    return found and float(found[1]) < 1e-4


def check_voice(said):
    """The probabilities of the original model, and the first and last stretch of speech."""
    known = json.loads((REAL / "silero_vad.json").read_text())["probability_per_512_samples"]
    found = [float(p) for p in re.findall(r"^ +\d+\.\d{3} s  (\S+)$", said, re.M)]
    return (len(found) == len(known) and all(abs(a - b) < 1e-4 for a, b in zip(found, known))
            and "\nspeech from 1.22 s to 1.34 s\n" in said
            and said.endswith("\nspeech from 5.70 s to 7.20 s\n"))


def sobel(pixels, width, height, channels):
    def at(x, y, channel):
        x, y = min(max(x, 0), width - 1), min(max(y, 0), height - 1)
        return pixels[(y * width + x) * channels + channel]

    def value(x, y, channel):
        around = [at(x + i % 3 - 1, y + i // 3 - 1, channel) for i in range(9)]
        side = sum(v * w for v, w in zip(around, [-1, 0, 1, -2, 0, 2, -1, 0, 1]))
        below = sum(v * w for v, w in zip(around, [-1, -2, -1, 0, 0, 0, 1, 2, 1]))
        return min(round((side * side + below * below) ** 0.5), 255)

    return bytes(value(x, y, channel) for y in range(height) for x in range(width)
                 for channel in range(channels))


def check_filter(folder, kind, channels, runner=()):
    """Soft and hard edges; a width and height that no workgroup divides."""
    width, height = 37, 21
    head = b"%s\n%d %d\n255\n" % (kind, width, height)
    pixels = bytes(x * y * (c + 1) // 6 % 256 for y in range(height) for x in range(width)
                   for c in range(channels))
    picture, filtered = folder / "in.ppm", folder / "out.ppm"
    picture.write_bytes(head + pixels)
    filtered.write_bytes(b"")

    def is_right(said):
        return (filtered.read_bytes() == head + sobel(pixels, width, height, channels)
                and not (runner and said.startswith("by convolution")))

    return check_program(folder, "image_filter", [picture, filtered], is_right, runner)


# name, arguments, what must be printed or a function that accepts it, what runs it
PROGRAMS = [
    ("tensors", [], "\n [0.04692"),
    ("digits", [DATA / "real/digits_cnn.safetensors", DATA / "real/digits.safetensors"],
     check_digits),
    ("fit_line", [], "3.00 x + -2.00"),
    ("train_digits", [DATA / "real/digits.safetensors"],
     lambda said: float(re.search(r"([\d.]+) % of the test images", said)[1]) >= 98.5),
    ("train_stories", ["TALES", "60"],
     lambda said: float(re.search(r"step 60: loss ([\d.]+)", said)[1]) < 2.8
     and "\nDorothy lived in the midst of the great Kansas prairies" in said),
    ("voice_activity", [REAL / "silero_vad_16k.safetensors", REAL / "speech.wav"], check_voice),
    ("matmul", [], "[[ -2.3392"),
    ("tour", [], "\nrefused: matmul: [2, 3] and [2, 3] are not [.., m, k] and [.., k, n]\n"),
    ("generate", [MODEL, "Once upon a time"], ", there was a little girl named Lily."),
    ("stream", [MODEL, "Once upon a time", "."], "[stop string]"),
    ("chat", ["TEMPLATED"], ", there was a little girl named Lily."),
    ("answer", ["<think>The sky", " ...</th", "ink>Blue<", "br>"],
     "reasoning: The sky\nreasoning:  ...\nreasoning: \ncontent: Blue\ncontent: <br>\n"),
    ("embed", [MODEL, "Once upon a time", "Once upon a time", "Tom"],
     "1.000 Once upon a time\n0."),
    ("custom_kernel", [], "after 200 steps: 1000.00 of heat", ON_GPU),
]
SKIPPED = 77
# Public-domain tales: beside the repository, as above.
TALES = REAL.parent / "tales/tales.txt.xz"
# For a model that continues texts: a conversation is what its last message says.
TEMPLATE = "{{ messages[-1].content }}"


def run(command):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, cwd=ROOT,
                          input=b"Once upon a time\n")
    return done.returncode, done.stdout.decode(errors="replace")


def check_program(folder, name, arguments, expected, runner=()):
    program = folder / name
    templated = folder / "templated.gguf"
    templated.write_bytes(with_template(TEMPLATE))
    tales = folder / "tales.txt"
    if "TALES" in arguments and TALES.exists():
        tales.write_bytes(lzma.decompress(TALES.read_bytes())[:1000000])
    files = {"TEMPLATED": templated, "TALES": tales}
    arguments = [files.get(word, word) for word in arguments]
    code, said = run([CC, *FLAGS, "-I", ROOT / "include", ROOT / f"examples/{name}.c",
                      BUILD / "libwick.a", "-lm", "-lpthread", "-o", program])
    missing = [word for word in arguments if isinstance(word, Path) and not word.exists()]
    if code == 0 and missing:
        print(f"# {name}: compiled, not run: {missing[0]} is not there")
        return ""
    if code == 0:
        code, said = run([*runner, program, *arguments])
        if code == SKIPPED and runner:
            print(f"# {name}: {said.strip()}")
            return ""
    is_right = expected(said) if callable(expected) else expected in said
    return "" if code == 0 and is_right else f"exit {code}: {said}"


def check_all_listed():
    listed = {"image_filter", *(name for name, *_ in PROGRAMS)}
    return "".join(f"{path.name} is not tested\n" for path in (ROOT / "examples").glob("*.c")
                   if path.stem not in listed)


def check_quotes(document):
    sources = [path.read_text() for path in (ROOT / "examples").glob("*.c")]
    blocks = re.findall(r"^```c\n(.*?)^```", document.read_text(), re.M | re.S)
    return "".join(f"in no example:\n{block}" for block in blocks
                   if not any(block.strip() in source for source in sources))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = [(p[0], check_program(folder, *p)) for p in PROGRAMS]
        for kind, channels in ((b"P5", 1), (b"P6", 3)):
            for runner in ((), ON_GPU):
                cases.append((f"image_filter, {channels} channels{', on a GPU' if runner else ''}",
                              check_filter(folder, kind, channels, runner)))
    cases.append(("every example is tested", check_all_listed()))
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        cases.append((f"C code in {document.name}", check_quotes(document)))
    for number, (name, problem) in enumerate(cases, 1):
        print(f"not ok {number} - {name}\n# " + problem.replace("\n", "\n# ") if problem
              else f"ok {number} - {name}")
    n_failed = sum(1 for _, problem in cases if problem)
    print(f"{len(cases) - n_failed} passed, {n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
