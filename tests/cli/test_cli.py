"""The wick command as a user sees it: outputs, exit codes, messages. The environment is that of
command.py."""

import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from command import (CONTINUATION, DATA, GREEDY, MODEL, TIMEOUT, WICK, equal, fails, greedy, main,
                     strict_json, succeeds, wick, with_template, without_free_memory)
from reranker import write_reranker

SHARED = os.environ.get("WICK_SHARED_DATA")


def ids_of(output):
    return [int(word) for word in output.split()]


# ---- run ----

def test_greedy_text():
    equal(succeeds(*greedy("--math", "exact")).decode(), CONTINUATION)


def test_answer():
    """For what it leaks under sanitizers; test_answers.py has the rest."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model.gguf")
        model.write_bytes(with_template("{% for m in messages %}{{ m.content }}{% endfor %}"))
        assert succeeds("run", model, "Once upon a time", "-n", 5, "--temp", 0)
        assert succeeds("chat", model, "-n", 5, "--temp", 0, stdin="Once upon a time\n")


def instruction_sets():
    """Those of the kernels that this processor can run; the others are noted."""
    for isa in ("ref", "avx2", "avx512", "auto"):
        said = wick("run", MODEL, "--isa", isa, "-n", 0).stderr.decode()
        if " instructions" in said:
            print(f"# note: {isa} is not tried: {said.strip()}")
        else:
            yield isa


def test_greedy_text_in_every_way_to_compute():
    if "WICK_SANITIZED" in os.environ:
        return "no kernels of each instruction set under sanitizers: they are slow there"
    for isa in instruction_sets():
        for threads, chunk in ((1, 1), (2, 3), (1, 512)):
            more = ["--math", "exact", "--isa", isa, "--threads", threads, "--chunk", chunk]
            equal(succeeds(*greedy(*more)).decode(), CONTINUATION)
    return None


def test_print_ids():
    out = succeeds(*greedy("--math", "exact", "--print-ids"))
    equal(out, (" ".join(map(str, GREEDY["tokens"])) + "\n").encode())


def test_tokens_are_taken_as_given():
    out = succeeds("run", MODEL, "--tokens", " ".join(map(str, GREEDY["prompt_tokens"])), "-n",
                   20, "--temp", 0, "--print-ids")
    equal(ids_of(out), GREEDY["tokens"][:20])


def test_prompt_from_file_and_standard_input():
    expected = succeeds(*greedy(n=20))
    with tempfile.NamedTemporaryFile() as file:
        file.write(GREEDY["prompt"].encode())
        file.flush()
        equal(succeeds("run", MODEL, "--file", file.name, "-n", 20, "--temp", 0), expected)
    equal(succeeds("run", MODEL, "-n", 20, "--temp", 0, stdin=GREEDY["prompt"] + "\n"), expected)


def test_without_a_model():
    out = succeeds("run", "-n", len(GREEDY["tokens"]), "--temp", 0, "--math", "exact")
    equal(out.decode(), CONTINUATION)


def test_statistics():
    done = wick(*greedy(n=5))
    said = done.stderr.decode()
    for word in ("backend cpu", "threads" if "threads" in said else "thread", "fast math",
                 "prompt 5 tokens", "generation 5 tokens", "first token after", "peak memory"):
        assert word in said, f"{word!r} is not in {said!r}"
    equal(wick(*greedy("-q", n=5)).stderr, b"")
    assert b"exact math" in wick(*greedy("--math", "exact", n=5)).stderr
    for word in ("seed", "plain loops", "fell back"):
        assert word not in said, said


def test_statistics_say_what_was_measured():
    said = wick("run", MODEL, "--tokens", 1, "-n", 1, "--seed", 7).stderr.decode()
    assert re.search(r"prompt 1 token[,;]", said), said
    assert "generation 1 token; first token after" in said, said
    assert "; seed 7; " in said, said
    chosen = wick("run", MODEL, "-p", "Once", "-n", 40)
    seed = re.search(rb"; seed (\d+); ", chosen.stderr)
    assert seed, chosen.stderr
    again = succeeds("run", MODEL, "-p", "Once", "-n", 40, "--seed", int(seed[1]))
    equal((seed[1], again), (seed[1], chosen.stdout))


def test_text_and_statistics_in_one_file():
    done = subprocess.run([WICK, *map(str, greedy("--math", "exact", n=5))],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=TIMEOUT)
    text, rest = done.stdout.decode().split("\n", 1)
    assert CONTINUATION.startswith(text), text
    assert rest.startswith("backend cpu"), rest


def test_nothing_generated():
    done = wick("run", MODEL, "-p", GREEDY["prompt"], "--context", 5)
    equal((done.returncode, done.stdout), (0, b""))
    assert b"nothing generated" in done.stderr, done.stderr


def test_profile():
    done = wick(*greedy("--profile", "-q", n=5))
    assert done.stderr.startswith(b"\nkernel "), done.stderr
    assert b"attention" in done.stderr, done.stderr
    equal(done.stdout, wick(*greedy(n=5)).stdout)


def test_verify_and_strict():
    expected = succeeds(*greedy("--math", "exact", n=10))
    verified = wick(*greedy("--math", "exact", "--verify", n=10))
    equal((verified.returncode, verified.stdout), (0, expected))
    count = re.search(rb"verified: (\d+) operations agree", verified.stderr)
    assert count and int(count[1]) > 100, verified.stderr
    equal(succeeds(*greedy("--math", "exact", "--strict", n=10)), expected)


def test_seed():
    sample = ["run", MODEL, "-p", "Once", "-n", 50, "--seed"]
    one = succeeds(*sample, 1)
    equal(succeeds(*sample, 1), one)
    assert succeeds(*sample, 2) != one


def test_sampling_options():
    for option, value in (("--top-k", 1), ("--top-p", 0.000001), ("--min-p", 1)):
        out = succeeds("run", MODEL, "-p", GREEDY["prompt"], "-n", 20, "--math", "exact", "--temp",
                       1, "--top-k", 0, "--top-p", 1, option, value)
        assert CONTINUATION.startswith(out.decode()), f"{option}: {out}"
    plain, penalized = succeeds(*greedy(n=60)), succeeds(*greedy("--repeat-penalty", 1.5, n=60))
    assert plain != penalized


def test_penalties_and_biases():
    plain = succeeds(*greedy(n=150))
    for options in (("--frequency-penalty", 1), ("--presence-penalty", 2), ("--dry", 100)):
        assert succeeds(*greedy(*options, n=150)) != plain, options
    equal(succeeds(*greedy("--dry", 0, "--presence-penalty", 0, n=150)), plain)
    first = ids_of(succeeds(*greedy("--print-ids", n=1)))[0]
    banned = greedy("--print-ids", "--logit-bias", f"{first}=never", n=1)
    assert ids_of(succeeds(*banned)) != [first]
    equal(ids_of(succeeds(*greedy("--print-ids", "--logit-bias", "300=1e3", "--logit-bias=301=-2.5",
                                  n=2))), [300, 300])
    for bad in ("5", "5=", "=1", "-1=2", "5=x", "5=nan", "5=1e9", "99999999999=1", "5= 1"):
        fails(2, "--logit-bias", bad, arguments=greedy("--logit-bias", bad, n=1))
    fails(1, "512", arguments=greedy("--logit-bias", "512=1", n=1))


def test_sampling_that_cuts_both_ends():
    sample = ["run", MODEL, "-p", "Once", "-n", 50, "--seed", 1, "-q"]
    plain = succeeds(*sample)
    for options in (("--xtc", 1), ("--mirostat", 2), ("--typical-p", 0.5)):
        one = succeeds(*sample, *options)
        assert one != plain, options
        equal(succeeds(*sample, *options), one)


def test_logprobs():
    done = wick(*greedy("--logprobs", 3, "-q", n=5))
    lines = [strict_json(line) for line in done.stderr.splitlines()]
    equal(len(lines), 5)
    equal("".join(line["text"] for line in lines).encode(), done.stdout)
    for line in lines:
        equal(len(line["best"]), 3)
        equal((line["best"][0]["id"], line["best"][0]["logprob"]), (line["id"], line["logprob"]))
        assert 0 >= line["best"][0]["logprob"] >= line["best"][1]["logprob"], line


def test_stop():
    out = succeeds(*greedy("--math", "exact", "--stop", "Lily's", "--stop", "\nLily"))
    equal(out.decode(), CONTINUATION[:CONTINUATION.index("\nLily")])
    equal(succeeds(*greedy("--stop", ",")), b"")


def test_zero_tokens_mean_no_limit():
    done = wick("run", MODEL, "-p", "Once", "-n", 0, "--temp", 0, "--ctx", 32, "--ignore-end")
    equal(done.returncode, 0)
    assert b"context of 32 tokens is full" in done.stderr, done.stderr
    assert b"--context" in done.stderr, done.stderr


def test_context_is_full_to_the_last_token():
    out = succeeds("run", MODEL, "-p", GREEDY["prompt"], "--temp", 0, "--context", 16, "--math",
                   "exact", "--print-ids", "--ignore-end")
    equal(ids_of(out), GREEDY["tokens"][:16 - len(GREEDY["prompt_tokens"])])


def test_prompt_longer_than_context():
    fails(1, "the prompt has 5 tokens, the context holds 4", "--context",
          arguments=["run", MODEL, "-p", GREEDY["prompt"], "--context", 4])


def test_empty_prompt():
    out = succeeds("run", MODEL, "-p", "", "-n", 20, "--temp", 0)
    assert out
    equal(succeeds("run", MODEL, "--tokens", 1, "-n", 20, "--temp", 0), out)
    equal(succeeds("run", MODEL, "-n", 20, "--temp", 0), out)
    fails(1, "--tokens is empty", arguments=["run", MODEL, "--tokens", ""])
    fails(1, "no prediction heads; it runs without --speculate heads",
          arguments=["run", MODEL, "-p", "x", "--speculate", "heads"])
    fails(2, "--speculate heads is for a single model",
          arguments=["serve", "--models", ".", "--speculate", "heads"])


def test_zero_byte_in_prompt():
    fails(1, "zero byte at 4", arguments=["run", MODEL], stdin=b"Once\0upon")


def test_cache_types():
    for cache in ("auto", "f32", "f16"):
        assert succeeds(*greedy("--cache", cache, n=5))
    for cache in ("q8_0", "q4_0"):  # the model's heads have 8 channels
        fails(1, f"a cache of {cache} takes heads of a multiple of 32 channels",
              arguments=greedy("--cache", cache, n=5))


def test_sessions():
    with tempfile.TemporaryDirectory() as folder:
        path, later = Path(folder) / "a", Path(folder) / "b"
        for how in [("--temp", 0), ("--temp", 1, "--seed", 5, "--repeat-penalty", 1.3)]:
            whole = succeeds("run", MODEL, "-p", "Once", "-n", 40, "-q", *how)
            begin = ["run", MODEL, "-p", "Once", "-n", 15, "-q", *how]
            first = succeeds(*begin, "--save-session", path)
            how = how[:2] + how[4:]  # the seed is in the file
            then = ["run", MODEL, "--load-session", path, "-q", *how]
            rest = succeeds(*then, "-n", 25, "--save-session", later)
            equal(first + rest, whole)
            equal(succeeds(*then, "-n", 25, "--isa", "ref"), rest)
            again = ["run", MODEL, "--load-session", later, "-q", "-n", 5, *how]
            equal(succeeds(*again, "-p", " The"), succeeds(*again, stdin=" The"))
        equal(sorted(os.listdir(folder)), ["a", "b"])
        fails(1, "cache of f16, this one has f32", arguments=[*then, "--cache", "f32"])
        fails(1, "the context holds 10", arguments=[*then, "--context", 10])
        fails(1, "not/there", arguments=["run", MODEL, "--load-session", "not/there"])
        fails(1, "not a saved session", arguments=["run", MODEL, "--load-session", MODEL])
        data = path.read_bytes()
        path.write_bytes(data[:-100])
        fails(1, "bytes", arguments=then)
        path.write_bytes(data[:-100] + bytes([data[-100] ^ 1]) + data[-99:])
        fails(1, "its checksum differs", arguments=then)
        done = wick(*greedy("-q", "--save-session", Path(folder) / "no" / "c", n=3))
        assert done.returncode == 1 and b"no/c" in done.stderr, done.stderr


def test_lines_to_embed():
    lines = [json.loads(line) for line in
             succeeds("embed", MODEL, "-f", "-", stdin="a\n\nb\r\n").splitlines()]
    equal([line["text"] for line in lines], ["a", "", "b"])
    fails(1, "context", arguments=["embed", MODEL, "-c", 4, "Once upon a time there was"])


def test_rerank():
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    texts = ["a river", "a long river of fire", "water", "x"]
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/reranker.gguf"
        write_reranker(f"{SHARED}/families/bert.gguf", model)
        ranked = [json.loads(line) for line in
                  succeeds("rerank", model, "fire", *texts, "--json").splitlines()]
        equal(sorted(row["index"] for row in ranked), [0, 1, 2, 3])
        equal([row["text"] for row in ranked], [texts[row["index"]] for row in ranked])
        scores = [row["score"] for row in ranked]
        equal(scores, sorted(scores, reverse=True))
        assert scores[0] > scores[-1], scores
        lines = succeeds("rerank", model, "fire", "-f", "-", "--top", 2,
                         stdin="\n".join(texts)).splitlines()
        equal([line.decode() for line in lines],
              [f"{row['score']:9.4f}  {row['text']}" for row in ranked[:2]])
        fails(1, "text 2", arguments=["rerank", model, "fire", "x", "river " * 100])
        fails(2, "no texts", arguments=["rerank", model, "fire"])
    fails(1, "no classifier", arguments=["rerank", MODEL, "fire", "x"])
    return None


def test_results_that_are_not_finite():
    with tempfile.TemporaryDirectory() as folder:
        damaged = Path(folder, "model.gguf")
        damaged.write_bytes(Path(MODEL).read_bytes()[:-256] + b"\xff" * 256)
        fails(1, "not finite", arguments=["embed", damaged, "Once"])
        fails(1, "not all finite",
              arguments=["logits", damaged, "--tokens", "1 2", "--out", f"{folder}/x.npy"])
        equal(os.listdir(folder), ["model.gguf"])


# ---- wrong use ----

def test_usage_errors():
    usage = [
        (["run", "--tepm", "0"], "unknown option '--tepm'", "--temp"),
        (["run", "--max-token=3"], "--max-tokens"),
        (["run", "-n", "-5"], "nor -1 for no limit"),
        (["run", "-x"], "unknown option '-x'"),
        (["run", "--temp"], "--temp needs a value"),
        (["run", "--temp", "warm"], "'warm' is not a number from 0 to 100"),
        (["run", "--temp", "inf"], "'inf'"),
        (["run", "--temp", "nan"], "'nan'"),
        (["run", "--temp", "0x1"], "'0x1'"),
        (["run", "--temp", "1 "], "'1 '"),
        (["run", "--temp", "-1"], "'-1'"),
        (["run", "--temp="], "''"),
        (["run", "-n", "-2"], "'-2' is not a whole number"),
        (["run", "-no"], "'o' is not a whole number"),
        (["run", "-n", "5x"], "'5x'"),
        (["run", "-n", " 5"], "' 5'"),
        (["run", "-n", "4294967296"], "'4294967296'"),
        (["run", "--seed", "18446744073709551616"], "'18446744073709551616'"),
        (["run", "--threads", "1025"], "1024"),
        (["run", "--top-p", "1.5"], "from 0 to 1"),
        (["run", "--math", "exactly"], "one of exact|fast"),
        (["run", "--isa", ""], "one of auto|ref|avx2|avx512"),
        (["run", "--backend", "gpu9"], "one of auto|cpu|webgpu"),
        (["run", "--chunk", "8193"], "from 1 to 8192"),
        (["run", "--quiet=1"], "--quiet takes no value"),
        (["run", "--stop", ""], "at least one byte"),
        (["run", "--prefix-cache", ""], "--prefix-cache: '' is not a text of at least one byte"),
        (["serve", "--socket", ""], "--socket: '' is not a text of at least one byte"),
        (["serve", "--models", ""], "at least one byte"),
        (["run", MODEL, "more", "yet"], "'yet' is one argument too many: a text of several words"),
        (["info", MODEL, "more"], "'more' is one argument too many\n"),
        (["run", "--no-history"], "'--no-history' is an option of 'wick chat'"),
        (["tokenize", "-lora=x"], "'--lora' is an option of 'wick run'"),
        (["run", "-lora=x"], "unknown option '-lora=x', did you mean '--lora'?"),
        (["run", MODEL, "-p", "a", "--file", "b"], "exclude each other"),
        (["run", MODEL, "a", "--raw", "--keep", 2], "--context-shift"),
        (["run", MODEL, "--gpu-layers", "-1"], "auto, all or a number of layers"),
        (["run", MODEL, "--gpu-layers", "few"], "auto, all or a number of layers"),
        (["run", MODEL, "--gpu-memory", "0"], "a number of bytes"),
        (["logits", MODEL, "--out", "x.npy"], "--tokens is missing"),
        (["logits", MODEL, "--tokens", "1"], "--out is missing"),
        (["logits", MODEL, "--tokens", "1", "-o", "-"], "'-' would be standard output"),
        (["info"], "MODEL.gguf is missing"),
        (["tokenize"], "MODEL.gguf is missing"),
        (["tokenize", MODEL, "a", "--file", "b"], "exclude each other"),
        (["rnu"], "unknown command 'rnu'", "'run'"),
        (["help", "tokenise"], "'tokenize'"),
        (["--nonsense"], "'--nonsense'"),
        ([], "a command is missing"),
    ]
    for arguments, *words in usage:
        fails(2, "wick", *words, arguments=arguments)


def test_option_forms():
    expected = succeeds(*greedy(n=5))
    equal(succeeds(*greedy("-t", 1, "-c", 64, "-s", 7, "-ngl", 99, n=5)), expected)
    equal(succeeds(*greedy("-c", 32, n=-1)), succeeds(*greedy("-ctx", 32, n=0)))
    equal(succeeds("run", MODEL, "-f", "-", "-n", 5, "--temp", 0, stdin=GREEDY["prompt"]), expected)
    for form in (["--max-tokens=5"], ["-n5"], ["-n", "5"], ["--max-tokens", "5"]):
        equal(succeeds("run", *form, "--temperature=0", f"-p{GREEDY['prompt']}", "--", MODEL),
              expected)


def test_gpu_layers():
    """The CPU keeps all layers, however many a GPU would have kept, and a number is warned of."""
    expected = succeeds(*greedy(n=5))
    for value in ("auto", "all", "0", "3", "1000"):
        done = wick(*greedy("--backend", "cpu", "--gpu-layers", value, "--gpu-memory", "1M", n=5))
        equal(done.stdout, expected)
        assert (b"no effect" in done.stderr) == (value in ("all", "3", "1000")), done.stderr


# ---- models that are not there or broken ----

def test_bad_models():
    with tempfile.TemporaryDirectory() as folder:
        missing, empty, text = (f"{folder}/{name}" for name in ("missing", "empty", "text"))
        Path(empty).write_bytes(b"")
        Path(text).write_bytes(b"Not a model, although it is longer than a header. " * 20)
        for command in (["run", "-p", "x"], ["info"], ["tokenize", "--ids"],
                        ["logits", "--tokens", "1", "--out", f"{folder}/x.npy"]):
            fails(1, missing, "No such file", arguments=[*command, missing])
            fails(1, folder, "directory", arguments=[*command, folder])
            fails(1, "GGUF", arguments=[*command, empty])
            fails(1, "GGUF", arguments=[*command, text])


def test_truncated_model():
    whole = Path(MODEL).read_bytes()
    with tempfile.NamedTemporaryFile() as file:
        for size in (3, 4, 23, 24, 1000, 20000, len(whole) // 2, len(whole) - 1):
            Path(file.name).write_bytes(whole[:size])
            fails(1, arguments=["run", file.name, "-p", "x"])


def test_damaged_weights():
    whole = Path(MODEL).read_bytes()
    with tempfile.NamedTemporaryFile() as file:
        half = len(whole) // 2
        Path(file.name).write_bytes(whole[:half] + b"\xff" * (len(whole) - half))
        fails(1, "no finite number", "damaged", arguments=["run", file.name, "-p", "x", "-n", 5])


def test_vocabulary_alone():
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(gguf([
            gguf_string(b"general.architecture") + struct.pack("<I", 8) + gguf_string(b"llama"),
            gguf_string(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 0),
        ]))
        for command in (["run", "-p", "x"], ["logits", "--tokens", "1", "--out", "/dev/null"]):
            fails(1, file.name, "no weights", "wick tokenize", arguments=[*command, file.name])


# ---- tokenize ----

def test_tokenize():
    prompt = GREEDY["prompt"]
    expected = " ".join(map(str, GREEDY["prompt_tokens"])) + "\n"
    equal(succeeds("tokenize", MODEL, prompt, "--ids").decode(), expected)
    equal(ids_of(succeeds("tokenize", MODEL, "--ids", "--no-special", stdin=prompt)),
          GREEDY["prompt_tokens"][1:])
    lines = succeeds("tokenize", MODEL, prompt).decode().splitlines()
    equal(lines[:2], ["     1  <s>", "   403   Once"])
    equal(succeeds("tokenize", MODEL, "a\nb", "--no-special").decode().count("\n"),
          len(ids_of(succeeds("tokenize", MODEL, "a\nb", "--no-special", "--ids"))))
    equal(succeeds("tokenize", MODEL, "", "--ids", "--no-special"), b"\n")


def test_tokenize_vocabulary_alone():
    vocabulary = DATA / "vocab/unigram"
    texts = vocabulary.with_suffix(".inp").read_bytes().split(b"\n__ggml_vocab_test__\n")
    for text, line in zip(texts, vocabulary.with_suffix(".out").read_text().splitlines()):
        ids = succeeds("tokenize", str(vocabulary) + ".gguf", "--ids", "--no-special", stdin=text)
        equal(ids.decode().split(), line.split())


def test_special_tokens_in_text():
    equal(ids_of(succeeds("tokenize", MODEL, "</s>", "--ids"))[-1], 2)
    assert 2 not in ids_of(succeeds("tokenize", MODEL, "</s>", "--ids", "--no-special"))
    equal(succeeds("tokenize", MODEL, "--decode", "1 403 2"), b"Once")
    equal(succeeds("tokenize", MODEL, "--decode", "--special", "1 403 2"), b"<s>Once</s>")


def test_any_bytes():
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(b"a\0b\xff\xc3")
        ids = ids_of(succeeds("tokenize", MODEL, "--file", file.name, "--ids", "--no-special"))
        assert {3 + 0, 3 + 0xFF, 3 + 0xC3} <= set(ids), ids  # byte tokens begin at 3
        pieces = succeeds("tokenize", MODEL, "--file", file.name)
        for shown in (b"\\x00", b"\\xFF", b"\\xC3"):
            assert shown in pieces, pieces


def test_round_trip():
    for text in (GREEDY["text"], " two  blanks\n\ttab \\ ", "naïve café 東京 🙂 e\u0301", "\n", "x"):
        ids = succeeds("tokenize", MODEL, "--ids", stdin=text)
        equal(succeeds("tokenize", MODEL, "--decode", stdin=ids).decode(), text)


# ---- info ----

def test_info_json():
    info = strict_json(succeeds("info", MODEL, "--json"))
    equal((info["architecture"], info["name"]), ("llama", "stories260K"))
    equal((info["n_tensors"], info["n_parameters"]), (47, 260032))
    equal(info["file_bytes"], os.path.getsize(MODEL))
    equal(info["metadata"]["llama.context_length"], 512)
    equal(info["metadata"]["tokenizer.ggml.tokens"]["count"], 512)
    equal(info["tensor_types"]["f32"]["count"], 47)
    assert "tensors" not in info
    memory = info["predicted_memory"]
    assert memory["total_bytes"] >= memory["weight_bytes"] + memory["cache_bytes"], memory
    equal((memory["n_layers"], memory["device_layers"]), (5, 5))
    if memory["available_bytes"] > 0:
        equal(memory["whole_context_length"], 512)
    longer = strict_json(succeeds("info", MODEL, "--json", "--context", 2048))["predicted_memory"]
    equal(longer["cache_bytes"], 4 * memory["cache_bytes"])
    tensors = strict_json(succeeds("info", MODEL, "--json", "--tensors"))["tensors"]
    equal(sum(math.prod(t["shape"]) for t in tensors), 260032)


def test_info_text():
    text = succeeds("info", MODEL).decode()
    line = re.search(r"^memory .*: weights .*, cache .*, activations .*, vocabulary and .*$",
                     text, re.M)[0]
    total, *parts = (float(n) / (1024 if unit == "KiB" else 1)
                     for n, unit in re.findall(r"([\d.]+) ([KM]iB)", line))
    assert len(parts) == 4 and abs(sum(parts) - total) < 0.25, line
    assert re.match(r".*llama.*: 260\.0 thousand parameters, f32, 5 layers, made for 512 tokens\n"
                    r"It takes [\d.]+ MiB of memory with a context of 512 tokens\.\n\n", text), text
    for word in ("architecture  llama", "260032", "memory", "llama.block_count", "f32"):
        assert word in text, word
    assert "blk.0.attn_q.weight" not in text
    assert "blk.0.attn_q.weight" in succeeds("info", MODEL, "--tensors").decode()


def gguf_string(text):
    return struct.pack("<Q", len(text)) + text


def gguf(values):
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, len(values)) + b"".join(values)


def test_info_of_hostile_metadata():
    nasty = b"\x1b[2J\"\\\n\0\xff\xed\xa0\x80\xc2\x9b"
    values = [
        gguf_string(b"general.architecture") + struct.pack("<I", 8) + gguf_string(nasty),
        gguf_string(b"general.name") + struct.pack("<I", 8) + gguf_string(b"\xf0\x9f" * 50),
        gguf_string(b"key\x07") + struct.pack("<If", 6, math.nan),
        gguf_string(b"list") + struct.pack("<IIQ", 9, 12, 2) + struct.pack("<dd", math.inf, 0.1),
        gguf_string(b"flag") + struct.pack("<IB", 7, 1),
        gguf_string(b"least") + struct.pack("<Iq", 11, -2**63),
        gguf_string(b"most") + struct.pack("<IQ", 10, 2**64 - 1),
    ]
    # Arrays of numbers: their numbers in the format, their letters in struct, values.
    arrays = ((0, "B", [0, 255]), (1, "b", [-128, 127]), (2, "H", [0, 65535]),
              (3, "h", [-32768, 5]), (4, "I", [0, 2**32 - 1]), (5, "i", [-2**31, 5]),
              (6, "f", [0.5, -2]), (7, "?", [True, False]), (10, "Q", [0, 2**64 - 1]),
              (11, "q", [-2**63, 5]), (12, "d", [0.1, -2]))
    for kind, letter, numbers in arrays:
        values.append(gguf_string(b"of " + letter.encode())
                      + struct.pack("<IIQ", 9, kind, 2) + struct.pack("<2" + letter, *numbers))
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(gguf(values))
        info = strict_json(succeeds("info", file.name, "--json"))
        equal(info["architecture"][:4], "\x1b[2J")
        equal(info["metadata"]["list"], [None, 0.1])
        equal((info["metadata"]["least"], info["metadata"]["most"]), (-2**63, 2**64 - 1))
        equal(info["metadata"]["flag"], True)
        for _, letter, numbers in arrays:
            equal(info["metadata"]["of " + letter], numbers)
        assert "error" in info["predicted_memory"]
        text = succeeds("info", file.name)
        assert not set(text) & (set(range(32)) - {10}), "control characters reach the terminal"
        assert "not predicted" in text.decode()


# ---- devices, help, version ----

def test_devices():
    assert b"cpu" in succeeds("devices")
    equal(without_free_memory(succeeds("--list-backends")),
          without_free_memory(succeeds("devices")))
    cpu = [d for d in strict_json(succeeds("devices", "--json")) if d["backend"] == "cpu"][0]
    assert cpu["is_available"] and cpu["n_threads"] >= 1 and cpu["memory_total"] > 0, cpu


def test_missing_backend():
    known = strict_json(succeeds("devices", "--json"))
    absent = next(d["backend"] for d in known if not d["is_available"])
    fails(1, absent, "wick devices", arguments=["run", "--backend", absent, "-p", "x"])


def test_verify_kernels():
    options = ["--backend", "cpu", "--isa", "ref", "--cases", "3"]
    table = succeeds("verify", "r*_ref", *options).decode()
    assert re.search(r"^reduce_ref +3 .* right$", table, re.M), table
    assert re.search(r"^\d+ kernels: \d+ right, 0 wrong$", table, re.M), table
    known = strict_json(succeeds("verify", "r*_ref", "--json", "--seed", "7", *options))
    equal(known["backend"], "cpu")
    equal(known["n_wrong"], 0)
    equal(known["n_kernels"], len(known["kernels"]))
    assert all(k["is_right"] and k["cases"] == 3 for k in known["kernels"])
    fails(1, "no kernel", arguments=["verify", "nothing", *options])


def test_version():
    assert re.fullmatch(rb"wick \d+\.\d+\.\d+\n", succeeds("--version"))


ENGINE = ("backend adapter webgpu-lib as-gpu gpu-layers gpu-memory threads isa math chunk cache "
          "strict verify profile no-fusion debug no-map low-memory no-kernel-cache no-warm-up "
          "tuning lora ")
SAMPLING = ("temp top-k top-p min-p repeat-penalty repeat-last seed frequency-penalty "
            "presence-penalty logit-bias dry dry-base dry-allowed dry-last dry-breaker typical-p "
            "xtc xtc-threshold mirostat mirostat-eta grammar grammar-file json-schema "
            "json-schema-file ")
OPTIONS = {
    "run": "prompt file system template no-thinking raw tokens max-tokens stop ignore-end special "
           "print-ids logprobs context load-session save-session prefix-cache context-shift "
           "keep speculate draft " + SAMPLING + ENGINE,
    "chat": "prompt system load tools template no-thinking no-history max-tokens context "
            "prefix-cache "
            + SAMPLING + ENGINE,
    "template": "cases language out",
    "info": "json tensors context cache backend adapter webgpu-lib as-gpu gpu-memory math",
    "tokenize": "file ids no-special decode special",
    "logits": "tokens out " + ENGINE,
    "bench": "prompt generate repetitions kernels only store csv json speculate draft " + ENGINE,
    "gguf": "force max-size max-tensors",
    "pull": "list sha256 mirror offline stall retries",
    "models": "json",
    "rm": "yes",
    "devices": "json webgpu-lib wgsl adapter as-gpu",
    "verify": "cases seed store json backend adapter webgpu-lib as-gpu tuning core isa",
    "help": "man completion",
    "convert": "type force",
    "compare": "tolerance json",
    "embed": "file tokens pooling context raw out " + ENGINE,
    "rerank": "file top context json " + ENGINE,
    "finetune": "data out resume force json rank alpha rank-stabilized targets dropout rate "
                "schedule warmup decay max-norm steps epochs batch context recompute held-out "
                "checkpoint-every eval-every seed " + ENGINE,
    "imatrix": "file out length force threads isa math chunk cache strict verify profile "
               "no-fusion no-map low-memory",
    "perplexity": "file tokens context skip kl json " + ENGINE,
    "quantize": "imatrix threads force lora",
    "serve": "models idle host port socket parallel max-queue context max-tokens context-shift "
             "keep alias tags template chat-template "
             "reasoning reasoning-format rerank pooling api-key "
             "api-key-file cors-origins allowed-hosts tls-cert tls-key slot-save-path no-slots "
             "metrics log-requests sse-ping-interval timeout cache-limit prefix-cache "
             "speculate draft " + SAMPLING + ENGINE,
}
# One letter, one meaning.
LETTERS = {"c": "context|length", "f": "file", "n": "max-tokens|generate", "o": "out",
           "p": "prompt", "q": "quiet", "r": "repetitions", "s": "seed", "t": "threads",
           "v": "verbose", "y": "yes"}


def test_templates_that_cannot_be_rendered():
    with tempfile.TemporaryDirectory() as folder:
        template, cases = f"{folder}/t.jinja", f"{folder}/cases.json"
        for arguments in ([], [template], ["--cases", cases],
                          [template, "--cases", cases, "--language", cases]):
            fails(2, "give FILE.jinja and --cases, or --language",
                  arguments=["template", *arguments])
        Path(template).write_text("{% if")
        for text, path, words in (("{}", template, "is not an array of cases"),
                                  ("[", template, "JSON, byte"),
                                  ('[{}, {"now": [2024, 2, 9]}]', template, "case 2: \"now\" must"),
                                  ('[{"now": "today"}]', template, "2026-01-15T12:34:56"),
                                  ("[]", MODEL, "has no chat template")):
            Path(cases).write_text(text)
            fails(1, words, arguments=["template", path, "--cases", cases])
        Path(cases).write_text('[{"name": "a", "messages": []}]')
        got = json.loads(succeeds("template", template, "--cases", cases))
        equal(got, [{"name": "a", "outcome": "error",
                     "message": "line 1: unexpected 'end of template'"}])
        own = f"{folder}/own.gguf"
        Path(own).write_bytes(with_template("{{ messages|length }} of {{ bos_token }}"))
        got = json.loads(succeeds("template", own, "--cases", cases))
        equal((got[0]["outcome"], got[0]["text"][:4]), ("ok", "0 of"))
        Path(own).write_bytes(Path(own).read_bytes()[:1000])
        fails(1, own, "cut off or damaged", arguments=["template", own, "--cases", cases])


def test_manual():
    """Macros of roff take quotes away that are not escaped."""
    page = succeeds("help", "--man").decode().splitlines()
    assert ".B \\-\\-tokens \\(dq1 2 3\\(dq" in page, page[:100]
    equal([line for line in page if line.startswith(".") and '"' in line and ".TH" not in line], [])


def completed(*typed):
    """What bash offers after these words."""
    with tempfile.TemporaryDirectory() as folder:
        script = f"{folder}/wick.bash"
        Path(script).write_bytes(succeeds("help", "--completion=bash"))
        done = subprocess.run(
            ["bash", "-c", 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _wick; '
             'printf "%s\\n" "${COMPREPLY[@]}"', "bash", script, "wick", *typed],
            capture_output=True, text=True, timeout=TIMEOUT, check=True)
        equal(done.stderr, "")
        return done.stdout.split()


def test_completion_of_bash():
    equal(sorted(completed("")), sorted(["--help", "--version", *OPTIONS]))
    equal(completed("qu"), ["quantize"])
    equal(completed("run", "--pro"), ["--prompt", "--profile"])
    equal(completed("serve", "--ctx"), ["--ctx"])  # another name of --context
    equal(completed("run", "--math", ""), ["exact", "fast"])
    equal(completed("embed", "--pooling", "m"), ["mean"])
    equal(completed("gguf", ""), ["split", "merge"])
    equal(completed("gguf", "split", ""), [])  # files
    equal(completed("run", "--prompt", ""), [])
    equal(sorted(completed("help", "")), sorted(OPTIONS))
    for command, options in OPTIONS.items():
        offered = {word[2:] for word in completed(command, "--")}
        assert {*options.split(), "help", "quiet", "verbose"} <= offered, (command, offered)


def test_completion_of_zsh_and_fish():
    zsh = succeeds("help", "--completion=zsh").decode()
    fish = succeeds("help", "--completion=fish").decode()
    for text, lines in (
            (zsh, ("#compdef wick", "    'embed:turn texts into vectors: embeddings'",
                   "    'serve:answer OpenAI'\\''s API over HTTP'",
                   "        '--math[exact: everything in float32, the same bits for any chunk]"
                   ":word:(exact fast)' \\",
                   "        '--strict[fail where the device has no kernel for an operation, "
                   "instead of running it on the CPU]' \\",
                   "        '1:word:(split merge)' \\",
                   "        '*:command:{_describe command commands}' ;;",
                   "        '*:file:_files' ;;")),
            (fish, ("complete -c wick -n __fish_use_subcommand -f -a embed -d "
                    "'turn texts into vectors: embeddings'",
                    "complete -c wick -n '__fish_seen_subcommand_from help' -f -a embed",
                    "complete -c wick -n '__fish_seen_subcommand_from gguf; and not "
                    "__fish_seen_subcommand_from split merge' -f -a 'split merge'"))):
        for line in lines:
            assert line in text.splitlines(), line
    of_embed = [line for line in fish.splitlines() if "seen_subcommand_from embed'" in line]
    for part in (" -l context -l ctx -s c -r -d ", " -l raw -d ", " -s o -r -d ",
                 " -l pooling -r -f -a 'auto none mean cls last' -d "):
        equal(sum(part in line for line in of_embed), 1)
    for command, options in OPTIONS.items():
        part = zsh.split(f"      {command}) _arguments -S")[1].split(";;")[0]
        found = set(re.findall(r"^ {8}'--([a-z0-9-]+)\[", part, re.M))
        assert set(options.split()) <= found, (command, found)
        found = set(re.findall(f"seen_subcommand_from {command}' -l ([a-z0-9-]+)", fish))
        assert set(options.split()) <= found, (command, found)


def test_help():
    overview = succeeds("--help")
    for same in (["help"], ["-h"]):
        equal(succeeds(*same), overview)
    commands = re.findall(r"^  ([a-z]+) ", overview.decode().split("Options:")[0], re.M)
    equal(sorted(commands), sorted(OPTIONS))
    for command, options in OPTIONS.items():
        text = succeeds("help", command)
        equal(succeeds(command, "--help"), text)
        found = re.findall(r"^ {2}(?:-\w, | {4})--([a-z0-9-]+)", text.decode(), re.M)
        equal(sorted(found), sorted([*options.split(), "quiet", "verbose"]))
        for letter, name in re.findall(r"^ {2}-(\w), --([a-z0-9-]+)", text.decode(), re.M):
            assert re.fullmatch(LETTERS[letter], name), (command, letter, name)
        assert max(map(len, text.decode().splitlines())) <= 100
    said = " ".join(succeeds("help", "quantize").decode().split())
    assert "replace an existing file" in said, said


if __name__ == "__main__":
    sys.exit(main(globals()))
