"""wick finetune and --lora: figures, checkpoints, exit codes, messages."""

import json
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from command import (MODEL, TIMEOUT, WICK, equal, fails, main, start, succeeds, wick, with_template)

REAL = os.environ.get("WICK_REAL_MODEL", "")
N_KILLS = 50 if os.environ.get("WICK_TEST_ALL") == "1" else 5
TEXT = ("There was once a miller who left no more estate to the three sons he had than his mill, "
        "his ass, and his cat. The partition was soon made. Neither scrivener nor attorney was "
        "sent for. They would soon have eaten up all the poor patrimony. The eldest had the mill, "
        "the second the ass, and the youngest nothing but the cat. ")
OPTIONS = ["--context", 32, "--batch", 4, "--rate", 2e-3, "--held-out", 0.2, "--seed", 3, "-q"]


def text_file(folder):
    path = Path(folder) / "text.txt"
    path.write_text(TEXT * 3)
    return path


def train(text, adapter, *more):
    said = succeeds("finetune", MODEL, "--data", text, "-o", adapter, "--json", *OPTIONS, *more)
    return objects(said.decode())


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def losses(events):
    return [(e["step"], e["loss"]) for e in events if "loss" in e]


def held_out(events):
    return [e["held_out_perplexity"] for e in events if "held_out_loss" in e]


def judged(text, *more):
    return json.loads(succeeds("perplexity", MODEL, "-f", text, "-c", 32, "--json", *more))


def test_training():
    """It lowers the perplexity of the held-out text, and the adapter does so elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        text, adapter = text_file(folder), Path(folder) / "a.gguf"
        events = train(text, adapter, "--steps", 12, "--checkpoint-every", 6)
        equal([step for step, _ in losses(events)], list(range(1, 13)))
        measured = held_out(events)
        equal(len(measured), 3)
        assert measured[2] < 0.8 * measured[0], measured
        before, after = judged(text), judged(text, "--lora", adapter)
        assert after["perplexity"] < 0.8 * before["perplexity"], (before, after)
        run = ["run", MODEL, "-p", "The miller", "-n", 12, "--temp", 0]
        assert succeeds(*run) != succeeds(*run, "--lora", adapter)
        equal(succeeds(*run), succeeds(*run, "--lora", f"{adapter}=0"))
        half = judged(text, "--lora", f"{adapter}=0.25", "--lora", f"{adapter}=0.25")
        same = judged(text, "--lora", f"{adapter}=5e-1")
        assert abs(half["perplexity"] / same["perplexity"] - 1) < 1e-4
        assert after["perplexity"] < half["perplexity"] < before["perplexity"]
        merged = Path(folder) / "merged.gguf"
        succeeds("quantize", MODEL, merged, "F32", "--lora", f"{adapter}=0.5")
        written = json.loads(succeeds("perplexity", merged, "-f", text, "-c", 32, "--json"))
        assert abs(written["perplexity"] / same["perplexity"] - 1) < 1e-4, (written, same)
        fails(1, "not an adapter", arguments=["quantize", MODEL, merged, "F32", "--force",
                                              "--lora", MODEL])
        fails(1, "not a finite number", arguments=[*run, "--lora", f"{adapter}=nan"])
        fails(1, "a.gguf=much", arguments=[*run, "--lora", f"{adapter}=much"])
        header = json.loads(succeeds("info", adapter, "--json"))
        assert "adapter" in json.dumps(header)


def test_resume():
    """After a signal, and after a kill, the losses go on to the last digit."""
    with tempfile.TemporaryDirectory() as folder:
        text, adapter = text_file(folder), Path(folder) / "a.gguf"
        whole = losses(train(text, Path(folder) / "b.gguf", "--steps", 40))
        arguments = ["finetune", MODEL, "--data", text, "-o", adapter, "--json", *OPTIONS,
                     "--steps", 40, "--checkpoint-every", 4]
        found = {}
        for number, more in ((signal.SIGINT, []), (signal.SIGKILL, ["--resume"])):
            process = start(*arguments, *more)
            lines = []
            while len(lines) < 10:
                lines.append(process.stdout.readline().decode())
                assert lines[-1], process.stderr.read()
            process.send_signal(number)
            rest, said = process.communicate(timeout=TIMEOUT)
            lines += rest.decode().splitlines(keepends=True)
            found.update(losses(objects("".join(line for line in lines if line.endswith("}\n")))))
            if number == signal.SIGINT:
                equal(process.returncode, 130)
                assert b"--resume goes on" in said, said
        last = losses(objects(succeeds(*arguments, "--resume").decode()))
        assert last and last[0][0] > 1, last
        found.update(last)
        for step, loss in whole:
            if step in found:
                equal((step, found[step]), (step, loss))
        equal(max(found), 40)


def test_resume_counts_on():
    with tempfile.TemporaryDirectory() as folder:
        text, adapter = Path(folder) / "lines.jsonl", Path(folder) / "a.gguf"
        text.write_text("".join(json.dumps({"text": TEXT[:9 * i]}) + "\n" for i in range(1, 10)))
        whole = [e["tokens"] for e in train(text, Path(folder) / "b.gguf", "--steps", 9)]
        first = train(text, adapter, "--steps", 4, "--eval-every", 9)
        rest = train(text, adapter, "--steps", 9, "--resume")
        equal([e["tokens"] for e in first[:5] + rest], whole)
        for steps in (9, 8):
            done = wick("finetune", MODEL, "--data", text, "-o", adapter, *OPTIONS[:-1],
                        "--steps", steps, "--resume")
            equal(done.returncode, 0)
            words = f"nothing is left to train: the checkpoint has 9 steps, of {steps}"
            assert words in done.stderr.decode(), done.stderr


def tensors_of(path):
    return json.loads(succeeds("info", path, "--json", "--tensors"))["tensors"]


def check_whole(path):
    """A GGUF file, if it is there, with all its tensors."""
    if not path.exists():
        return False
    assert tensors_of(path), path
    return True


def test_kills():
    """Killed at any moment a training leaves whole files, and goes on to the same end."""
    with tempfile.TemporaryDirectory() as folder:
        text, whole = text_file(folder), Path(folder) / "whole.gguf"
        more = ["--steps", 16, "--checkpoint-every", 1, "--targets", "q,v", "--rank", 2,
                "--schedule", "cosine", "--warmup", 3, "--dropout", 0.1]
        begun = time.monotonic()
        wanted = losses(train(text, whole, *more))
        seconds = time.monotonic() - begun
        seed = random.randrange(1 << 32)
        print(f"# seed {seed}, {seconds:.2f} s without a kill")
        moments = random.Random(seed)
        adapter = Path(folder) / "a.gguf"
        checkpoint = Path(folder) / "a.gguf.checkpoint"
        n_kills = n_ends = 0
        found = {}
        while n_kills < N_KILLS or found:
            arguments = ["finetune", MODEL, "--data", text, "-o", adapter, "--json", *OPTIONS,
                         *more, "--resume" if check_whole(checkpoint) else "--force"]
            process = start(*arguments)
            if n_kills < N_KILLS:
                time.sleep(moments.uniform(0, seconds))
                n_kills += process.poll() is None
                process.kill()
            said, why = process.communicate(timeout=TIMEOUT)
            lines = said.decode().splitlines(keepends=True)
            found.update(losses(objects("".join(l for l in lines if l.endswith("}\n")))))
            check_whole(adapter)
            if process.returncode == -signal.SIGKILL:
                continue
            equal((process.returncode, why), (0, b""))
            equal(sorted(found.items()), [(s, l) for s, l in wanted if s in found])
            equal(adapter.read_bytes(), whole.read_bytes())
            equal(sorted(os.listdir(folder)), sorted(["a.gguf", "a.gguf.checkpoint", "text.txt",
                                                      "whole.gguf", "whole.gguf.checkpoint"]))
            adapter.unlink()
            checkpoint.unlink()
            found = {}
            n_ends += 1
        print(f"# {n_kills} kills, {n_ends} trainings")


def test_options():
    """Schedules, targets and measurements; recomputed layers give the same losses."""
    with tempfile.TemporaryDirectory() as folder:
        text, adapter = text_file(folder), Path(folder) / "a.gguf"
        events = train(text, adapter, "--steps", 4, "--schedule", "linear", "--warmup", 2,
                       "--eval-every", 2, "--targets", "q,down", "--rank-stabilized")
        rates = [round(e["rate"] / 2e-3, 6) for e in events if "rate" in e]
        equal(rates, [0.5, 1, 1, 0.5])
        equal([e["step"] for e in events if "held_out_loss" in e], [0, 2, 4])
        names = {t["name"].split(".", 2)[2] for t in tensors_of(adapter)}
        equal(names, {f"{m}.weight.lora_{f}" for m in ("attn_q", "ffn_down") for f in "ab"})
        header = json.loads(succeeds("info", adapter, "--json"))
        alpha = header["metadata"]["adapter.lora.alpha"]
        assert abs(alpha / 8 - 16 / 8 ** 0.5) < 1e-5, alpha
        plain = losses(train(text, adapter, "--steps", 3, "--force"))
        equal(losses(train(text, adapter, "--steps", 3, "--force", "--recompute")), plain)
        dropped = losses(train(text, adapter, "--steps", 3, "--force", "--dropout", 0.5))
        assert dropped[1:] != plain[1:], dropped


def read_header(path):
    """Keys with the numbers of their types, and names of tensors with their dims, innermost first:
    what llama.cpp reads of a GGUF file."""
    with open(path, "rb") as file:
        def number(form):
            return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))[0]

        def text():
            return file.read(number("Q")).decode()

        def skip(kind):
            if kind == 8:
                text()
            elif kind == 9:
                item, n = number("I"), number("Q")
                for _ in range(n):
                    skip(item)
            else:
                file.read({0: 1, 1: 1, 2: 2, 3: 2, 7: 1, 10: 8, 11: 8, 12: 8}.get(kind, 4))

        def entry():
            key, kind = text(), number("I")
            skip(kind)
            return key, kind

        def tensor():
            name = text()
            dims = [number("Q") for _ in range(number("I"))]
            number("I"), number("Q")
            return name, dims

        equal((file.read(4), number("I")), (b"GGUF", 3))
        n_tensors, n_keys = number("Q"), number("Q")
        keys = dict(entry() for _ in range(n_keys))
        return keys, dict(tensor() for _ in range(n_tensors))


def test_llama_cpp():
    """The file is what llama.cpp's llama_adapter_lora_init wants: types of keys, pairs of names,
    and shapes that fit the model's."""
    with tempfile.TemporaryDirectory() as folder:
        text, adapter = text_file(folder), Path(folder) / "a.gguf"
        train(text, adapter, "--steps", 1, "--rank", 3)
        keys, tensors = read_header(adapter)
        equal(keys, {"general.type": 8, "general.architecture": 8, "adapter.type": 8,
                     "adapter.lora.alpha": 6})
        _, weights = read_header(MODEL)
        for name, dims in tensors.items():
            weight, kind = name.rsplit(".", 1)
            k, n = weights[weight]
            equal(dims, {"lora_a": [k, 3], "lora_b": [3, n]}[kind])
            assert f"{weight}.lora_{'b' if kind == 'lora_a' else 'a'}" in tensors, name
        equal(len(tensors), 2 * 7 * 5)


def test_bad_data():
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder) / "data.txt", Path(folder) / "a.gguf"
        model = Path(folder) / "model.gguf"
        model.write_bytes(with_template("{% for m in messages %}{{ m.content }}{% endfor %}"))

        def refuse(content, *words, name="data.jsonl", more=()):
            data = Path(folder) / name
            data.write_bytes(content)
            fails(1, *words, arguments=["finetune", model, "--data", data, "-o", out, "-q", *more])

        for path, words in ((data, "cannot open"), (folder, "directory")):
            fails(1, words, str(path), arguments=["finetune", model, "--data", path, "-o", out])
        refuse(b"", "is empty", name="data.txt")
        refuse(b" \r\n\n\t ", "is empty")
        refuse(b"A short text.", "of 1 example 1 would be held out", "--held-out", name="data.txt")
        refuse(b'{"text": "a"}\n{"text": ', "line 2", "JSON")
        refuse(b'[1]', "line 1", "messages", "completion", "text")
        refuse(b'"text"', "line 1", 'or with a "text"\n')  # without advice about GGUF files
        refuse(b'{"prompt": "a"}', "line 1", "completion")
        refuse(b'{"messages": []}', "line 1", "messages")
        refuse(b'{"messages": {"role": "user"}}', "line 1", "messages")
        refuse(b'{"messages": [1, 2]}', "line 1", "message")
        refuse(b'{"text": "\xff"}', "line 1", "UTF-8")
        refuse(b'{"messages": [{"role": "user", "content": "a"}]}', "no token to learn")
        fails(2, "--targets", arguments=["finetune", model, "--data", model, "-o", out,
                                         "--targets", "q,x"])
        data.write_text("A short text.")
        succeeds("finetune", model, "--data", data, "-o", out, "-q", "--held-out", 0)
        lines, question = Path(folder) / "lines.jsonl", {"role": "user", "content": "a"}
        for n in (1, 2):  # examples of questions alone, beside one that is learned
            lines.write_text('{"prompt": "a", "completion": "b"}\n' + n * (
                json.dumps({"messages": [question]}) + "\n"))
            adapter = Path(folder) / f"{n}.gguf"
            done = wick("finetune", model, "--data", lines, "-o", adapter, "--held-out", 0)
            said = done.stderr.decode()
            equal(done.returncode, 0)
            assert f"{n} example{'s' if n > 1 else ''} left out: no token to learn" in said, said


def test_full_disk():
    """A checkpoint or an adapter that there is no room for: a sentence, and --resume goes on."""
    with tempfile.TemporaryDirectory() as folder:
        text, adapter = text_file(folder), Path(folder) / "a.gguf"
        arguments = ["finetune", MODEL, "--data", text, "-o", adapter, *OPTIONS, "--steps", 2,
                     "--held-out", 0]
        checkpoint = Path(folder) / "a.gguf.checkpoint"
        checkpoint.symlink_to("/dev/full")
        fails(1, "No space left", arguments=[*arguments, "--force"])
        checkpoint.unlink()
        adapter.symlink_to("/dev/full")
        done = wick(*arguments, "--force")
        equal(done.returncode, 1)
        assert b"No space left" in done.stderr and b"--resume" in done.stderr, done.stderr
        adapter.unlink()
        succeeds(*arguments, "--resume")
        assert check_whole(adapter)
        adapter.unlink()
        checkpoint.unlink()
        done = subprocess.run(  # with SIGXFSZ ignored, as Python does
            [WICK, *map(str, arguments)], capture_output=True, timeout=TIMEOUT,
            restore_signals=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        equal(done.returncode, 1)
        assert b"File too large" in done.stderr, done.stderr
        equal(sorted(os.listdir(folder)), ["text.txt"])


def test_refusals():
    with tempfile.TemporaryDirectory() as folder:
        text, adapter = text_file(folder), Path(folder) / "a.gguf"
        run = ["finetune", MODEL, "--data", text, "-o", adapter, *OPTIONS, "--steps", 1]
        fails(2, "--data is missing", arguments=["finetune", MODEL, "-o", adapter])
        fails(1, "checkpoint", arguments=[*run, "--resume"])
        succeeds(*run)
        fails(1, "--resume", "--force", arguments=run)
        fails(1, "finetune.rank", arguments=[*run, "--resume", "--rank", 4])
        fails(1, "a rank of 128 is more than that of 'blk.0.attn_q.weight'",
              arguments=[*run, "--force", "--rank", 128])
        succeeds(*run, "--force")
        fails(1, "not an adapter", arguments=["perplexity", MODEL, "-f", text, "--lora", MODEL])
        merged = ["quantize", MODEL, Path(folder) / "m.gguf", "F16", "--lora"]
        done = wick(*merged, f"{adapter}=1e39")  # an error of the adapter, not of the type
        assert done.returncode == 1 and b"F16" not in done.stderr, done.stderr
        (Path(folder) / "cut.gguf").write_bytes(adapter.read_bytes()[:-100])
        done = wick(*merged, Path(folder) / "cut.gguf")
        assert b"cut.gguf" in done.stderr and str(MODEL).encode() not in done.stderr, done.stderr
        lines = Path(folder) / "lines.jsonl"
        lines.write_text('{"prompt": "a", "completion": "b"}\n{"a": 1}\n')
        bad = ["finetune", MODEL, "--data", lines, "-o", Path(folder) / "b.gguf", "-q"]
        fails(1, "line 2", "completion", arguments=bad)
        lines.write_text('{"messages": [{"role": "user", "content": "a"}]}')
        fails(1, "line 1", "chat_template", arguments=bad)


def test_answers_that_templates_write_otherwise():
    """While they, or the questions before them, are the last message."""
    late = ("{% for m in messages %}<{{ m.role }}>{{ '()' if m.role == 'assistant' and loop.last }}"
            "{{ m.content }};{% endfor %}{{ '<assistant>' if add_generation_prompt }}")
    told = ("{% for m in messages[1:] %}{% if m.role == 'user' %}[Q]{% if loop.last %}"
            "{{ messages[0].content }} {% endif %}{{ m.content }}[/Q]{% else %}{{ m.content }};"
            "{% endif %}{% endfor %}")
    with tempfile.TemporaryDirectory() as folder:
        model, lines = Path(folder) / "model.gguf", Path(folder) / "lines.jsonl"

        def count(*texts):
            roles = ["system"] + ["user", "assistant"] * 2
            lines.write_text(json.dumps({"messages": [
                {"role": role, "content": text} for role, text in zip(roles, texts)]}))
            done = wick("finetune", model, "--data", lines, "-o", Path(folder) / "a.gguf",
                        "--force", "--steps", 1, "--batch", 1, "--held-out", 0, "--rank", 2)
            equal(done.returncode, 0)
            return int(re.search(rb"of which (\d+) are learned", done.stderr)[1])

        for template in (late, told):
            model.write_bytes(with_template(template))
            short = count("be nice", "hi", "Ahoy", "bye", "So long")
            equal(count("be nice", "my name is Bob and I sail", "Ahoy", "bye", "So long"), short)
            assert count("be nice", "hi", "Ahoy, this is the sea", "bye", "So long") > short + 4


def test_conversations():
    if not Path(REAL).is_file():
        return
    with tempfile.TemporaryDirectory() as folder:
        lines, adapter = Path(folder) / "lines.jsonl", Path(folder) / "a.gguf"
        messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Ahoy"},
                    {"role": "user", "content": "How?"}, {"role": "assistant", "content": "Well"}]
        lines.write_text(json.dumps({"messages": messages}) + "\n")
        said = subprocess.run(
            [WICK, "finetune", REAL, "--data", lines, "-o", adapter, "--steps", "2", "--batch", "1",
             "--held-out", "0", "--rank", "2", "--rate", "1e-3", "--json"],
            capture_output=True, timeout=TIMEOUT)
        equal(said.returncode, 0)
        (_, first), (_, second) = losses(objects(said.stdout.decode()))
        assert second < first, (first, second)
        assert b"of which 7 are learned" in said.stderr, said.stderr


if __name__ == "__main__":
    sys.exit(main(globals()))
