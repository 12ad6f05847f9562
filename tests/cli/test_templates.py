"""Every chat template of the shared fixtures, and the probes of their language, rendered by
`wick template` and compared character by character. Each file reports a TAP line."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WICK = os.environ.get("WICK_BIN", str(ROOT / "build/wick"))
SHARED = os.environ.get("WICK_SHARED_DATA")
TIMEOUT = 120  # seconds


def load(path):
    return json.loads(Path(path).read_bytes())


def render(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out.json")
        subprocess.run([WICK, "template", *map(str, arguments), "--out", out], check=True,
                       timeout=TIMEOUT)
        return load(out)


def is_right(expected, got):
    if got["name"] != expected["name"]:
        return False
    if "text" in expected:
        return got.get("text") == expected["text"]
    if got["outcome"] == "ok":  # what an engine may allow although the reference refuses it
        return "or_text" in expected and got["text"] == expected["or_text"]
    return not expected.get("message_required", True) or got["message"] == expected["message"]


def long_conversation():
    """2,000 messages of 1 MB in all, and 200 tools: more than a model reads, within the limits of a
    template."""
    words = ["Some <b>words</b> of a message, {braces} and \"quotes\"; é 漢字\n" * 8, "<think>\nHm.\n"
             "</think>\n\nAn answer of a few sentences. " * 5]
    messages = [{"role": ("user", "assistant")[i % 2], "content": f"{i}: {words[i % 2]}"}
                for i in range(2001)]
    parameters = {"type": "object", "required": ["p0"],
                  "properties": {f"p{k}": {"type": "string", "description": "what it is " * 5}
                                 for k in range(10)}}
    tools = [{"type": "function", "function": {"name": f"tool_{i}", "description": "does it " * 20,
                                               "parameters": parameters}} for i in range(200)]
    return [{"name": "long", "messages": messages, "tools": tools, "add_generation_prompt": True,
             "vars": {"bos_token": "<s>", "eos_token": "</s>"}, "now": "2026-01-15T12:34:56"}]


def is_within_limits(path):
    with tempfile.TemporaryDirectory() as folder:
        cases = Path(folder) / "cases.json"
        cases.write_text(json.dumps(long_conversation()))
        message = render(path, "--cases", cases)[0].get("message", "")
    if "the template takes more than" in message:
        print(f"# a long conversation: {message}")
    return "the template takes more than" not in message


def probe(row):
    """A row of jinja_language.json as an expectation."""
    return {**row, "text": row["expected"]} if "expected" in row else {**row, "message":
                                                                       row["error"]}


def report(number, name, expected, got):
    wrong = [e["name"] for e, g in zip(expected, got) if not is_right(e, g)]
    is_good = not wrong and len(expected) == len(got)
    print(f"{'ok' if is_good else 'not ok'} {number} - {name}: {len(expected)} cases", flush=True)
    if wrong:
        print(f"# wrong: {wrong}")
    return is_good


def main():
    folder = Path(SHARED or "") / "templates"
    if not SHARED or not folder.is_dir():
        print("WICK_SHARED_DATA holds no templates")
        return 77
    good, number = True, 0
    for number, path in enumerate(sorted(folder.glob("*.jinja")), 1):
        stem = str(path)[:-len(".jinja")]
        got = render(path, "--cases", stem + ".cases.json")
        good &= report(number, path.stem, load(stem + ".expected.json"), got)
        good &= is_within_limits(path)
    language = folder / "jinja_language.json"
    expected = [probe(row) for row in load(language)]
    good &= report(number + 1, "language", expected, render("--language", language))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
