"""What commands say to do: where memory does not suffice, and where a word is misspelt."""

import json
import os
import re
import subprocess
import sys
import tempfile

from command import MODEL, TIMEOUT, WICK, equal, fails, main, succeeds, wick, without_free_memory

REAL = os.environ.get("WICK_REAL_MODEL", "")
SHARED = os.environ.get("WICK_SHARED_DATA")


def limited(*arguments):
    """A run that may take 2 GB, whatever else takes memory meanwhile."""
    return subprocess.run(["sh", "-c", 'ulimit -v 2000000; exec "$@"', "sh", WICK,
                           *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=TIMEOUT, check=False)


def refused(model, context):
    done = limited("run", model, "-p", "a", "--backend", "cpu", "-c", context)
    said = done.stderr.decode()
    equal(done.returncode, 1)
    assert re.search(r"context of \d+ tokens: [\d.]+ [MGTP]iB needed, [\d.]+ [MG]iB available; ",
                     said), said
    return said


def test_context_that_cannot_fit():
    said = refused(MODEL, 2000000000)
    assert "a context of 512 tokens fits" in said, said  # all that the model was made for


def test_smaller_cache_that_fits():
    if not os.path.exists(REAL):
        return "no model whose cache can be smaller: WICK_REAL_MODEL"
    context = 4096
    forecast = json.loads(limited("info", REAL, "--json", "--context", context, "--math",
                                  "fast").stdout)["predicted_memory"]
    per_token = forecast["cache_bytes"] / context
    there = forecast["available_bytes"]
    # The cache of f16 needs 1.4 times what is there, that of q8_0 0.74 times, of q4_0 0.4 times.
    assert "with --cache q8_0 it fits" in refused(REAL, int(1.4 * there / per_token))
    assert "with --cache q4_0 it fits" in refused(REAL, int(2.4 * there / per_token))
    assert "a context of" in refused(REAL, int(9 * there / per_token)).split(";")[1]
    return None


def test_short_context_of_longrope():
    """A longer context than the original one has to be asked for: it changes all answers."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    model = f"{SHARED}/families/phi3-longrope.gguf"  # made for 256 tokens, at first for 32
    for more, expected in (([], 32), (["--context", 33], 33), (["--context", 200], 200)):
        known = json.loads(succeeds("info", model, "--json", *more))
        equal(known["predicted_memory"]["context_length"], expected)
        said = wick("run", model, "--tokens", "1,2", "-n", 1, *more).stderr
        equal(said.count(b"the context is 32 tokens at most"), not more)
    assert b"at most" not in wick("run", model, "--tokens", "1,2", "-n", 1, "-q").stderr
    return None


def test_nearest_words():
    for arguments, meant in [
            (["run", "--quite"], "--quiet"), (["info", "--verbos"], "--verbose"),
            (["run", "--ng", 3], "--ngl"), (["run", "--math", "exat"], "'exact'"),
            (["run", "--backend", "webgup"], "'webgpu'"), (["gguf", "splt"], "'split'"),
            (["quantize", MODEL, "x", "q4_km"], "Q4_K_M"), (["quantise"], "'quantize'"),
            (["quantize", MODEL, "x", "q4km"], "mean Q4_K_M"),
            (["quantize", MODEL, "x", "q4m"], "mean Q4_K_M"), (["run", "--cache", "q8"], "'q8_0'"),
            (["run", "--cache", "Q4"], "'q4_0'"), (["serve", "--max_token"], "'--max-tokens'"),
            (["help", "perplexty"], "'perplexity'")]:
        fails(2, "did you mean", meant, arguments=arguments)
    done = wick("run", "--math", "zzzzzz")
    assert b"did you mean" not in done.stderr, done.stderr


def test_quiet_and_verbose_everywhere():
    commands = re.findall(r"^  (\w+) ", succeeds("help").decode().split("Options:")[0], re.M)
    assert len(commands) >= 19, commands
    for command in commands:
        text = succeeds("help", command).decode()
        assert re.search(r"^  -q, --quiet ", text, re.M), text
        assert re.search(r"^  -v, --verbose ", text, re.M), text
        assert "-f" not in re.findall(r"^  (-f), --(?!file)", text, re.M), text
    for word in ("-q", "--quiet"):
        equal(wick("run", MODEL, "-p", "Once", "-n", 2, word).stderr, b"")
    equal(without_free_memory(succeeds("devices", "-q", "-v")),
          without_free_memory(succeeds("devices")))


def test_options_without_effect():
    run = ["run", MODEL, "-p", "Once", "-n", 2, "-q", "--backend", "cpu"]
    equal(wick(*run, "--threads", 1, "--gpu-layers", "auto").stderr, b"")
    assert b"--threads 1024: this process may use" in wick(*run, "--threads", 1024).stderr
    assert b"--gpu-layers has no effect" in wick(*run, "--gpu-layers", 2).stderr


def test_no_word_about_webgpu():
    """On a machine without a GPU, unless asked."""
    plain = wick("run", MODEL, "-p", "Once", "-n", 2).stderr
    if b"backend cpu" not in plain or os.path.exists("/dev/dri"):
        return "this machine has a GPU"
    assert b"GPU" not in plain, plain
    assert b"on the CPU because there is no GPU" in wick("run", MODEL, "-p", "Once", "-n", 2,
                                                         "-v").stderr
    peaks = [float(re.search(rb"peak memory ([\d.]+) MiB",
                             wick("run", MODEL, "-p", "Once", "-n", 2, *more).stderr).group(1))
             for more in ([], ["--backend", "cpu"])]
    assert peaks[0] < peaks[1] + 2, peaks  # MiB; a library of WebGPU takes 9, with a driver 60
    return None


def test_blanks_are_no_question():
    with tempfile.TemporaryDirectory() as folder:
        template = f"{folder}/template"
        with open(template, "w", encoding="utf-8") as file:
            file.write("{% for m in messages %}{{ m.content }}\n{% endfor %}")
        chat = ["chat", MODEL, "--template", template, "-n", 1, "--temp", 0]
        for blank in ("", "  ", "\t \u00a0\u3000\u2003 "):
            fails(1, "there is no question", arguments=[*chat, "-p", blank])
        empty = ["chat", MODEL, "-p", "Once", "--template", "/dev/null"]
        fails(1, "'/dev/null' is empty", arguments=empty)
        saved = f"{folder}/saved"
        wick(*chat, stdin=f"\n   \n\t\u00a0\nOnce\n  \n/save {saved}\n")
        with open(saved, encoding="utf-8") as file:
            said = [m["content"] for m in json.load(file) if m["role"] == "user"]
        equal(said, ["Once"])


if __name__ == "__main__":
    sys.exit(main(globals()))
