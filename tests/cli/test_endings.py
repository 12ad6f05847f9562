"""How a command ends when a pipe, a file, a disk or a signal ends it. The environment is that of
command.py."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from command import (CONTINUATION, MODEL, TIMEOUT, WICK, equal, fails, greedy, main, start,
                     succeeds, wait_for_bytes_in, wick, with_template)

ENDLESS = ["run", MODEL, "-p", "Once", "-n", "0", "--ignore-end", "--context", "200000", "--isa",
           "ref"]


def test_closed_pipe():
    process = start("run", MODEL, "-p", "Once", "-n", 0, "--ignore-end", "--context", 20000)
    assert process.stdout.read(8)
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    equal((process.wait(TIMEOUT), len(said.splitlines())), (0, 1))
    assert b"warning: the model was made for 512 tokens" in said, said


def test_closed_pipe_leaves_files():
    """What a command prints is not all that it does."""
    with tempfile.TemporaryDirectory() as folder:
        whole, out = Path(folder, "whole.gguf"), Path(folder, "out.gguf")
        succeeds("quantize", MODEL, whole, "Q8_0")
        for end in ("-v 2>/dev/null", "-v 2>&1"):
            command = f'"$0" quantize "$1" "$2" Q8_0 --force {end} | true; exit ${{PIPESTATUS[0]}}'
            done = subprocess.run(["bash", "-c", command, WICK, MODEL, out], check=False)
            equal((done.returncode, out.read_bytes()), (0, whole.read_bytes()))
            out.unlink()
        command = '"$0" compare "$1" "$2" | head -1; exit ${PIPESTATUS[0]}'
        done = subprocess.run(["bash", "-c", command, WICK, MODEL, whole],
                              stdout=subprocess.PIPE, check=False)
        equal((done.returncode, os.listdir(folder)), (1, ["whole.gguf"]))


def piped(end, *arguments, stdin=b""):
    """Exit code of the command and what it says, when its output goes to end."""
    command = f'"$0" "$@" {end}; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", command, WICK, *map(str, arguments)], input=stdin,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=TIMEOUT,
                          check=False)
    return done.returncode, done.stderr


def test_output_that_is_lost_leaves_sessions():
    with tempfile.TemporaryDirectory() as folder:
        whole, saved = Path(folder, "whole"), Path(folder, "saved")
        for model in (MODEL, Path(folder, "chat.gguf")):
            if model != MODEL:
                model.write_bytes(with_template("{{ messages[0].content }}"))
            arguments = ["run", model, "-p", "Once", "-n", 400, "--ignore-end", "--seed", 1, "-q"]
            succeeds(*arguments, "--save-session", whole)
            for end, code in (("| head -c 5", 0), ("| true", 0), ("> /dev/full", 1)):
                got, said = piped(end, *arguments, "--save-session", saved)
                equal((got, said.count(b"wick: ")), (code, code))
                assert saved.read_bytes() == whole.read_bytes(), (model, end)
                saved.unlink()


def test_output_that_is_lost_leaves_prefixes():
    """No one reads the rest of these texts, which have no end."""
    for arguments in (ENDLESS, ["chat", MODEL, "--isa", "ref", "-c", 200000, "--logit-bias",
                                "2=never"]):
        with tempfile.TemporaryDirectory() as folder:
            code, _ = piped("| head -c 5", *arguments, "--prefix-cache", folder,
                            stdin=b"Once\nTwice\n")
            equal((code, len(os.listdir(folder))), (0, 1))


def test_prefixes_without_a_folder():
    with tempfile.NamedTemporaryFile() as file:
        done = wick("run", MODEL, "-n", 1, "--prefix-cache", f"{file.name}/x")
        said = done.stderr
        assert done.returncode == 0 and b"cannot make the folder: Not a directory" in said, said


def test_limit_of_file_sizes():
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    with tempfile.TemporaryDirectory() as folder:
        cases, out = Path(folder, "cases.json"), Path(folder, "out.json")
        cases.write_text('[{"name": "a", "template": "x"}]')
        out.write_text("kept")
        for arguments in (["--help"], ["info", MODEL], ["template", "--language", cases]):
            with open(Path(folder, "text"), "wb") as text:
                done = subprocess.run([WICK, *arguments], stdout=text, stderr=subprocess.PIPE,
                                      preexec_fn=limit, check=False)
            equal(done.returncode, 1)
        done = subprocess.run([WICK, "template", "--language", cases, "--out", out],
                              stderr=subprocess.PIPE, preexec_fn=limit, check=False)
        assert done.returncode == 1 and b"too large" in done.stderr, done
        equal((out.read_text(), len(os.listdir(folder))), ("kept", 3))
        fails(1, "is a file that is read",
              arguments=["template", "--language", cases, "--out", cases])
        succeeds("template", "--language", cases, "--out", out)
        equal(json.loads(out.read_text())[0]["text"], "x")


def test_pipe_that_nobody_reads():
    """One signal ends the wait for a reader."""
    with tempfile.TemporaryDirectory() as folder:
        pipe = f"{folder}/pipe"
        os.mkfifo(pipe)
        process = start("run", MODEL, "-p", "Once", "-n", "5", "--save-session", pipe)
        while b"generation 5 tokens" not in process.stderr.readline():
            pass
        time.sleep(0.5)
        process.terminate()
        _, said = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 143 and b"cannot write" in said, (process.returncode, said)


def test_killed_writers():
    """What a killed command has left beside a target goes with the next write."""
    with tempfile.TemporaryDirectory() as folder:
        cases, out = Path(folder, "cases.json"), Path(folder, "out.json")
        cases.write_text('[{"name": "a", "template": "x"}]')
        out.write_text("old")
        Path(folder, "out.json.wick-0123456789abcdef").write_text("half")
        Path(folder, "out.json.wick").write_text("mine")
        succeeds("template", "--language", cases, "--out", out)
        equal(sorted(os.listdir(folder)), ["cases.json", "out.json", "out.json.wick"])


def test_mapped_file_that_is_cut():
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "model.gguf")
        copy.write_bytes(Path(MODEL).read_bytes())
        process = start(ENDLESS[0], copy, *ENDLESS[2:])
        assert process.stdout.read(8)
        os.truncate(copy, 4096)
        _, said = process.communicate(timeout=TIMEOUT)
        equal((process.returncode, said.count(b"was cut while it was in use")), (1, 1))


def test_threads_that_meet_a_cut_together():
    """The sentences wait in a full pipe while the other threads meet the cut."""
    with tempfile.TemporaryDirectory() as folder:
        copy, pipe = Path(folder, "model.gguf"), Path(folder, "pipe")
        copy.write_bytes(Path(MODEL).read_bytes())
        os.mkfifo(pipe)
        reader, writer, filler = (os.open(pipe, flags) for flags in (
            os.O_RDONLY | os.O_NONBLOCK, os.O_WRONLY, os.O_WRONLY | os.O_NONBLOCK))
        processes = [start(ENDLESS[0], copy, *ENDLESS[2:], stderr=writer) for _ in range(10)]
        os.close(writer)
        try:
            for process in processes:
                assert process.stdout.read(8)
            with contextlib.suppress(BlockingIOError):
                while os.write(filler, b" " * 4096):
                    pass
            os.close(filler)
            os.truncate(copy, 4096)
            time.sleep(1)
            equal([process.poll() for process in processes], [None] * 10)
            os.set_blocking(reader, True)
            with open(reader, "rb") as stream:
                said = stream.read()
            equal([process.wait(TIMEOUT) for process in processes], [1] * 10)
            equal(said.count(b"was cut while it was in use"), 10)
        finally:
            for process in processes:
                process.kill()
                process.communicate()


def test_file_that_is_cut_while_in_use():
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(Path(MODEL).read_bytes())
        process = start("run", file.name, "-p", "Once", "-n", "300", "--ignore-end", "--no-map")
        assert process.stdout.read(8)
        os.truncate(file.name, 0)
        _, said = process.communicate(timeout=TIMEOUT)
        equal(process.returncode, 0)
        assert b"generation 300 tokens" in said, said


def test_streams_that_are_closed():
    """The first files opened would take their numbers, and get what is printed."""
    with tempfile.TemporaryDirectory() as folder:
        out, whole = f"{folder}/out.gguf", f"{folder}/whole.gguf"
        succeeds("quantize", MODEL, whole, "Q8_0")
        for closed in ("0<&- 2>&-", "0<&- 1>&-", "0<&- 1>&- 2>&-"):
            command = f'exec "$0" quantize -v "$1" "$2" Q8_0 --force {closed}'
            done = subprocess.run(["sh", "-c", command, WICK, MODEL, out], capture_output=True,
                                  check=False)
            equal(done.returncode, 1 if "1>" in closed else 0)
            equal(Path(out).read_bytes(), Path(whole).read_bytes())


def test_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = start(*ENDLESS)
        assert process.stdout.read(8)
        process.send_signal(number)
        _, said = process.communicate(timeout=TIMEOUT)
        equal(process.returncode, 128 + number)
        assert b"tokens/s" in said and b"Ctrl-C" not in said, said


def test_signals_leave_no_file():
    with tempfile.TemporaryDirectory() as folder:
        process = start("logits", MODEL, "--tokens", "1 " * 20000, "--isa", "ref", "-o",
                        f"{folder}/x.npy")
        wait_for_bytes_in(folder, process)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT)
        equal((process.returncode, os.listdir(folder)), (128 + signal.SIGTERM, []))


def test_ignored_signals_stay_ignored():
    process = start(*greedy("--math", "exact"),
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    text = process.stdout.read(8)
    process.send_signal(signal.SIGHUP)
    text += process.stdout.read()
    process.communicate(timeout=TIMEOUT)
    equal((process.returncode, text.decode()), (0, CONTINUATION))


def test_interrupt_at_a_terminal():
    master, slave = os.openpty()
    process = start(*ENDLESS, stderr=slave)
    os.close(slave)
    assert process.stdout.read(8)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT)
    equal(process.returncode, 130)
    said = b""
    with contextlib.suppress(OSError):  # the end, when all was read: no one has the other side
        while True:
            said += os.read(master, 4096)
    os.close(master)
    assert b"stopping; press Ctrl-C again to quit at once" in said, said


def test_interrupt_while_reading_the_prompt():
    process = subprocess.Popen([WICK, "run", MODEL], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    equal(process.wait(TIMEOUT), -signal.SIGINT)
    process.communicate()


def stop_and_go_on(process):
    """Stops a process that waits for its input, which it does not notice."""
    time.sleep(0.3)
    for number in (signal.SIGTSTP, signal.SIGCONT):
        process.send_signal(number)
        time.sleep(0.05)


def test_stop_while_reading():
    text = b"Once upon a time"
    process = subprocess.Popen([WICK, "tokenize", MODEL], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    stop_and_go_on(process)
    said = process.communicate(text, timeout=TIMEOUT)
    equal((process.returncode, *said), (0, succeeds("tokenize", MODEL, stdin=text), b""))


def test_stop_at_a_prompt():
    master, slave = os.openpty()
    process = subprocess.Popen([WICK, "chat", MODEL, "--backend", "cpu"], stdin=slave,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(slave)
    stop_and_go_on(process)
    os.write(master, b"/exit\n")
    _, said = process.communicate(timeout=TIMEOUT)
    os.close(master)
    equal((process.returncode, said.count(b"> ")), (0, 1))


def test_full_disk():
    if not Path("/dev/full").exists():
        return "there is no /dev/full"
    with tempfile.TemporaryDirectory() as folder:
        other = f"{folder}/other.gguf"
        succeeds("quantize", MODEL, other, "Q8_0")
        for arguments in (greedy(n=5), ["info", MODEL], ["devices"], ["help", "run"],
                          ["tokenize", MODEL, "Once"], ["compare", MODEL, other]):
            with open("/dev/full", "wb") as full:
                done = wick(*arguments, stdout=full)
            equal((done.returncode, done.stderr.count(b"wick: ")), (1, 1))
            told = b"No space left" in done.stderr or b"some of it was lost" in done.stderr
            assert told, done.stderr
    return None


if __name__ == "__main__":
    sys.exit(main(globals()))
