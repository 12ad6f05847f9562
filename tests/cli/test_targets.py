"""Files that commands write: never one that is read, and tried before the work."""

import hashlib
import os
import tempfile
from pathlib import Path

from command import MODEL, equal, fails, main, start, succeeds

TEXT = "Once upon a time there was a little girl. " * 40
READ = "is a file that is read"


def prepare(folder):
    """m.gguf, its three parts, a hard and a symbolic link to part 2, and texts."""
    Path(folder, "m.gguf").write_bytes(Path(MODEL).read_bytes())
    succeeds("gguf", "split", f"{folder}/m.gguf", f"{folder}/m.gguf", "--max-tensors", 20)
    parts = [f"{folder}/m-{i:05}-of-00003.gguf" for i in (1, 2, 3)]
    os.link(parts[1], f"{folder}/hard")
    os.symlink(parts[1], f"{folder}/soft")
    Path(folder, "text").write_text(TEXT)
    return parts


def marks(folder):
    return {name: (os.lstat(f"{folder}/{name}").st_ino,
                   hashlib.sha256(Path(folder, name).read_bytes()).hexdigest())
            for name in os.listdir(folder)}


def test_what_is_read_stays():
    with tempfile.TemporaryDirectory() as folder:
        one, two, three = prepare(folder)
        whole, text, hard, soft = (f"{folder}/{n}" for n in ("m.gguf", "text", "hard", "soft"))
        roundabout = f"{folder}/../{os.path.basename(folder)}/{os.path.basename(three)}"
        ids = ["--tokens", "1 403"]
        # What the command reads, and the targets that are refused for it.
        cases = [
            (["gguf", "merge", one, "OUT", "--force"], [one, two, roundabout, hard, soft]),
            (["gguf", "merge", whole, "OUT", "--force"], [whole]),
            (["quantize", two, "OUT", "Q8_0", "--force"], [one, roundabout, hard]),
            (["logits", one, *ids, "--out", "OUT"], [one, three, hard, soft]),
            (["logits", whole, *ids, "--out", "OUT"], [whole]),
            (["embed", whole, "-f", text, "--out", "OUT"], [whole, text]),
            (["run", two, "-p", "a", "-n", 1, "--save-session", "OUT"], [one, hard]),
            (["run", whole, "-f", text, "-n", 1, "--save-session", "OUT"], [text, whole]),
            (["imatrix", whole, "-f", text, "-o", "OUT", "--force"], [whole, text]),
        ]
        before = marks(folder)
        for command, targets in cases:
            for target in targets:
                fails(1, READ, arguments=[target if a == "OUT" else a for a in command])
        equal(marks(folder), before)


def test_split_spares_what_it_reads():
    with tempfile.TemporaryDirectory() as folder:
        parts = prepare(folder)
        os.link(parts[2], f"{folder}/n-00002-of-00003.gguf")
        before = marks(folder)
        for name in ("m.gguf", "n.gguf"):
            fails(1, READ, arguments=["gguf", "split", parts[0], f"{folder}/{name}",
                                      "--max-tensors", 20, "--force"])
        equal(marks(folder), before)
        # Its own name is the stem of the parts alone: nothing is lost.
        succeeds("gguf", "split", f"{folder}/m.gguf", f"{folder}/m.gguf", "--max-tensors", 20,
                 "--force")
        equal(Path(folder, "m.gguf").read_bytes(), Path(MODEL).read_bytes())


def test_files_beside_the_model():
    """An importance matrix, a folder to convert, a saved session."""
    with tempfile.TemporaryDirectory() as folder:
        text, matrix, config = (f"{folder}/{name}" for name in ("text", "matrix", "config.json"))
        Path(text).write_text(TEXT)
        succeeds("imatrix", MODEL, "-f", text, "-o", matrix, "--length", 64)
        Path(config).write_text("{}")
        Path(folder, "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
        before = marks(folder)
        fails(1, READ, arguments=["quantize", MODEL, matrix, "Q8_0", "--imatrix", matrix,
                                  "--force"])
        for target in (config, f"{folder}/model.safetensors"):
            fails(1, READ, arguments=["convert", folder, target, "--force"])
        equal(marks(folder), before)
        session = f"{folder}/session"
        greedy = ["-n", 5, "--temp", 0, "-q"]
        first = succeeds("run", MODEL, "-p", "Once", *greedy, "--save-session", session)
        # A session that was read whole is replaced.
        then = succeeds("run", MODEL, "--load-session", session, *greedy, "--save-session", session)
        equal(first + then, succeeds("run", MODEL, "-p", "Once", *greedy[:1], 10, *greedy[2:]))


def test_adapters_stay():
    """Found before they are read: these need not be adapters."""
    with tempfile.TemporaryDirectory() as folder:
        adapter, text, peft = (f"{folder}/{name}" for name in ("a.gguf", "text", "peft"))
        os.mkdir(peft)
        config, weights = f"{peft}/adapter_config.json", f"{peft}/adapter_model.safetensors"
        for path in (adapter, text, config, weights):
            Path(path).write_text(TEXT)
        contents = [Path(path).read_bytes() for path in (adapter, config, weights)]
        for given, target in ((adapter, adapter), (f"{adapter}=0.5", adapter), (peft, config),
                              (f"{peft}=2", weights), (config, weights), (weights, config)):
            for command in (["run", MODEL, "-p", "a", "--save-session", target],
                            ["logits", MODEL, "--tokens", "1", "-o", target],
                            ["embed", MODEL, "a", "-o", target],
                            ["quantize", MODEL, target, "Q8_0", "--force"],
                            ["finetune", MODEL, "--data", text, "-o", target, "--force"]):
                fails(1, READ, arguments=[*command, "--lora", given])
        equal([Path(path).read_bytes() for path in (adapter, config, weights)], contents)


def test_targets_are_tried_first():
    with tempfile.TemporaryDirectory() as folder:
        absent, own = f"{folder}/no/file", f"{folder}/folder"
        os.mkdir(own)
        for target, why in ((absent, "No such file"), (own, "is a directory")):
            # Standard output stays empty: no token was computed.
            fails(1, why, "another place",
                  arguments=["run", MODEL, "-p", "Once", "-n", 5, "--save-session", target])
            fails(1, why, arguments=["logits", MODEL, "--tokens", "1", "--out", target])
            fails(1, why, arguments=["embed", MODEL, "a", "--out", target])
        equal(os.listdir(folder), ["folder"])
        kept = Path(folder, "kept")
        kept.write_text("kept")
        fails(1, arguments=["run", MODEL, "--tokens", "999999", "--save-session", kept])
        equal(kept.read_text(), "kept")  # what is tried is not replaced
        pipe = f"{folder}/pipe"
        os.mkfifo(pipe)
        process = start("run", MODEL, "-p", "Once", "-n", 5, "-q", "--save-session", pipe)
        with open(pipe, "rb") as reader:
            saved = reader.read()
        process.communicate(timeout=60)
        equal((process.returncode, len(saved) > 1000), (0, True))


if __name__ == "__main__":
    raise SystemExit(main(globals()))
