"""wick finetune and --lora: figures, checkpoints, exit codes, messages."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from command import MODEL, TIMEOUT, WICK, equal, fails, main, start, succeeds

REAL = os.environ.get("WICK_REAL_MODEL", "")
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


def test_refusals():
    with tempfile.TemporaryDirectory() as folder:
        text, adapter = text_file(folder), Path(folder) / "a.gguf"
        run = ["finetune", MODEL, "--data", text, "-o", adapter, *OPTIONS, "--steps", 1]
        fails(2, "--data is missing", arguments=["finetune", MODEL, "-o", adapter])
        fails(1, "checkpoint", arguments=[*run, "--resume"])
        succeeds(*run)
        fails(1, "--resume", "--force", arguments=run)
        fails(1, "finetune.rank", arguments=[*run, "--resume", "--rank", 4])
        succeeds(*run, "--force")
        fails(1, "no adapter", arguments=["perplexity", MODEL, "-f", text, "--lora", MODEL])
        lines = Path(folder) / "lines.jsonl"
        lines.write_text('{"prompt": "a", "completion": "b"}\n{"a": 1}\n')
        bad = ["finetune", MODEL, "--data", lines, "-o", Path(folder) / "b.gguf", "-q"]
        fails(1, "line 2", "completion", arguments=bad)
        lines.write_text('{"messages": [{"role": "user", "content": "a"}]}')
        fails(1, "line 1", "chat_template", arguments=bad)


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
