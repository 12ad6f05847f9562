"""`wick chat` in a pseudo-terminal, as a person uses it, and with lines from a pipe. Needs nothing
but Python; every case reports a TAP line."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback
from pathlib import Path

from command import with_template

ROOT = Path(__file__).resolve().parent.parent.parent
WICK = os.environ.get("WICK_BIN", str(ROOT / "build/wick"))
DATA = Path(os.environ.get("WICK_TEST_DATA", ROOT / "tests/data"))
MODEL = str(DATA / "stories260K.gguf")
TIMEOUT = 60  # seconds
QUICK = ["--backend", "cpu", "--temp", "0", "-n", "8"]
# An answer that does not end by itself: token 2 is the model's end.
ENDLESS = ["--backend", "cpu", "--temp", "0", "--isa", "ref", "--context", "20000",
           "--logit-bias", "2=never"]
STATE = tempfile.TemporaryDirectory()  # of what commands keep, such as the history
os.environ["XDG_STATE_HOME"] = STATE.name
ECHO = "{% for m in messages %}{{ m.content }}\n{% endfor %}"


ESCAPES = re.compile(rb"\x1b\[[?0-9;]*[A-Za-z]")
BEGUN_ESCAPE = re.compile(rb"\x1b(\[[0-9;?]*)?$")  # of which a read got the first part


class Terminal:
    """wick chat on a terminal of its own; output: a file that its output goes to instead."""

    def __init__(self, *arguments, columns=80, locale="C.UTF-8", output=None, command="chat",
                 model=MODEL, **variables):
        environment = {**os.environ, "LC_ALL": locale, "TERM": "xterm", **variables}
        gate, opener = os.pipe()  # the command starts when its terminal has been looked at
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.read(gate, 1)
            if output is not None:
                os.dup2(output, 1)
            os.execve(WICK, [WICK, command, str(model), *arguments], environment)
        self.resize(columns)
        self.seen = b""
        self.first_mode = self.mode()
        os.write(opener, b"1")
        os.close(gate)
        os.close(opener)

    def resize(self, columns):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def mode(self):
        return termios.tcgetattr(self.terminal)

    def has_echo(self):
        return bool(self.mode()[3] & termios.ECHO)

    def wait_for_answer(self):
        """Until an answer to a question has begun."""
        self.wait("\n")
        while not re.search(rb"\w", BEGUN_ESCAPE.sub(b"", ESCAPES.sub(b"", self.seen))):
            self.seen += self.read()

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait(self, word, timeout=TIMEOUT):
        """Up to and with word; what was seen is forgotten."""
        end = time.monotonic() + timeout
        word = word.encode()
        while word not in self.seen:
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            assert ready, f"{word!r} did not come: {self.seen!r}"
            self.seen += self.read()
        text, self.seen = self.seen.split(word, 1)
        return (text + word).decode(errors="replace")

    def read(self):
        try:
            got = os.read(self.terminal, 4096)
        except OSError:  # Linux: the other side is closed
            got = b""
        assert got, f"it ended: {self.seen!r}"
        return got

    def ask(self, text):
        """The answer to a question, when the next prompt is there."""
        self.type(text + "\r")
        self.wait("\n")
        return self.wait("> ")

    def end(self):
        """The exit status after Ctrl-D."""
        self.type("\x04")
        return self.status()

    def status(self):
        """The exit status; rest is what was still written, all of it."""
        end = time.monotonic() + TIMEOUT
        self.rest = b""
        process = 0
        while not process and time.monotonic() < end:
            process, status = os.waitpid(self.process, os.WNOHANG)  # before the last reading
            while select.select([self.terminal], [], [], 0 if process else 0.1)[0]:
                try:
                    self.rest += os.read(self.terminal, 4096)
                except OSError:  # the other side is closed
                    break
        if process:
            self.last_mode = self.mode()
            os.close(self.terminal)
            return os.waitstatus_to_exitcode(status)
        os.kill(self.process, signal.SIGKILL)
        raise AssertionError("it did not end")


def start(*arguments, **options):
    terminal = Terminal(*arguments, **options)
    terminal.wait("> ")
    return terminal


def pipe(text, *arguments):
    return subprocess.run([WICK, "chat", MODEL, *QUICK, *arguments], input=text.encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT)


def test_question_and_end():
    terminal = start(*QUICK)
    answer = terminal.ask("Once upon a time")
    assert len(answer) > 10, answer
    assert terminal.end() == 0


def test_quit():
    terminal = start(*QUICK)
    terminal.type("/quit\r")
    assert terminal.status() == 0


def test_history():
    terminal = start(*QUICK)
    terminal.ask("/context")
    terminal.ask("/help")
    terminal.type("\x1b[A\x1b[A")
    assert "messages" in terminal.ask(""), "arrow up does not give /context back"
    assert terminal.end() == 0


def has_editing():
    terminal = start(*QUICK)
    found = "this list" in terminal.ask("/hep\x1b[Dl")
    terminal.end()
    return found


def test_interrupt_stops_the_answer():
    terminal = start(*ENDLESS)
    terminal.type("Once upon a time\r")
    terminal.wait_for_answer()
    terminal.type("\x03")
    assert "(stopped)" in terminal.wait("> ")
    assert "2 messages" in terminal.ask("/context")
    assert "messages" in terminal.ask("/context")
    assert terminal.end() == 0


def test_interrupt_at_the_prompt():
    terminal = start(*QUICK)
    terminal.type("never mind")
    terminal.wait("mind")
    terminal.type("\x03")
    terminal.wait("> ")
    assert "0 messages" in terminal.ask("/context")
    assert terminal.end() == 0


def test_request_to_end_at_the_prompt():
    terminal = start(*QUICK)
    terminal.type("never mind")
    terminal.wait("mind")
    os.kill(terminal.process, signal.SIGTERM)
    assert terminal.status() == -signal.SIGTERM


def test_utf8():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chat.json"
        terminal = start(*QUICK)
        terminal.ask("h\u00e9 \u6f22\u5b57 \U0001f600")
        terminal.ask(f"/save {path}")
        assert terminal.end() == 0
        messages = json.loads(path.read_text())
    assert messages[0] == {"role": "user", "content": "h\u00e9 \u6f22\u5b57 \U0001f600"}, messages
    assert messages[1]["role"] == "assistant"


def test_utf8_without_a_locale():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chat.json"
        terminal = start(*QUICK, locale="C")
        terminal.ask("caf\u00e9 \u4f60\u597d x")
        terminal.ask(f"/save {path}")
        assert terminal.end() == 0
        assert json.loads(path.read_text())[0]["content"] == "caf\u00e9 \u4f60\u597d x"


def test_output_that_is_no_terminal():
    """Editing needs both; the prompt is on standard error then."""
    with tempfile.TemporaryFile() as output:
        terminal = start(*QUICK, output=output.fileno())
        terminal.ask("/context")
        terminal.type("x\x03")
        terminal.wait("> ")
        terminal.type("/quit\r")
        assert terminal.status() == 0
        output.seek(0)
        assert b"0 messages" in output.read()


def test_exit_status_of_an_interrupt():
    terminal = Terminal(*ENDLESS, "-p", "Once upon")
    terminal.wait("a")
    terminal.type("\x03")
    assert terminal.status() == 130


def test_resize():
    terminal = start(*QUICK, columns=80)
    terminal.type("/con")
    terminal.wait("/con")
    terminal.resize(30)
    time.sleep(0.3)
    assert "messages" in terminal.ask("text")
    assert terminal.end() == 0


def saved(terminal):
    """The messages of a conversation, which is ended."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chat.json"
        terminal.ask(f"/save {path}")
        assert terminal.end() == 0
        return json.loads(path.read_text())


def test_line_after_a_stop():
    """It is drawn again. Nothing stops here: this terminal has no shell to go on from."""
    terminal = start()
    terminal.type("some words")
    terminal.wait("some words")
    terminal.type("\x1a")
    terminal.wait("> ")
    terminal.wait("some words")
    terminal.type("\x15")
    assert terminal.end() == 0


def test_pasted_lines():
    terminal = start(*QUICK)
    terminal.type("a \x1b[200~one\rtwo\tthree \u6f22\r\x07/quit\x1b[201~ b\r")
    terminal.wait("tokens")
    terminal.wait("> ")
    assert saved(terminal)[0]["content"] == "a one\ntwo\tthree \u6f22\n/quit b"


def test_pasted_ends_of_lines():
    for end in ("\r", "\n", "\r\n"):
        terminal = start(*QUICK)
        terminal.type(f"\x1b[200~one{end}{end}two{end}three\x1b[201~\r")
        terminal.wait("tokens")
        terminal.wait("> ")
        assert saved(terminal)[0]["content"] == "one\n\ntwo\nthree", repr(end)


def test_messages_are_wrapped():
    terminal = Terminal(model="no such model of this name.gguf", columns=30)
    assert terminal.status() == 1
    said = ESCAPES.sub(b"", terminal.seen + terminal.rest).decode()
    lines = said.replace("\r", "").rstrip("\n").split("\n")
    assert len(lines) > 2 and all(len(line) <= 30 for line in lines), lines
    whole = subprocess.run([WICK, "chat", "no such model of this name.gguf"], check=False,
                           stdin=subprocess.DEVNULL, stderr=subprocess.PIPE).stderr.decode()
    assert " ".join(lines) == whole.strip(), (lines, whole)


def test_paste_without_an_end():
    terminal = start(*QUICK)
    terminal.type("\x1b[200~one\rtwo\x03")
    terminal.wait("> ")
    assert "0 messages" in terminal.ask("/context")
    assert terminal.end() == 0


def test_quoted_lines():
    terminal = start(*QUICK)
    terminal.type('"""one\r/quit\r"""\r')
    terminal.wait("tokens")
    terminal.wait("> ")
    terminal.type('"""\r"""\r')  # with nothing in between: no question
    terminal.wait("> ")
    assert saved(terminal)[0]["content"] == "one\n/quit"


def test_history_of_earlier_runs():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wick/history"
        terminal = start(*QUICK, XDG_STATE_HOME=folder)
        terminal.ask("/context")
        terminal.end()
        assert path.read_text() == "/context\n" and path.stat().st_mode & 0o777 == 0o600
        terminal = start(*QUICK, XDG_STATE_HOME=folder)
        terminal.type("\x1b[A")
        assert "messages" in terminal.ask(""), "arrow up does not give /context back"
        terminal.end()
        terminal = start(*QUICK, "--no-history", XDG_STATE_HOME=folder)
        terminal.ask("/help")
        terminal.type("\x1b[A\x1b[A")
        assert "this list" in terminal.ask(""), "arrow up gives back what another run kept"
        terminal.end()
        assert path.read_text() == "/context\n"


def test_completion():
    terminal = start(*QUICK)
    assert "messages" in terminal.ask("/cont\t")
    terminal.type("/set to\t\t")
    terminal.wait("top-k  top-p")
    terminal.type("\x03")
    terminal.wait("^C")
    terminal.wait("> ")
    terminal.type("/by\r")
    assert "did you mean '/bye'" in terminal.wait("> ")
    terminal.type("/bye\r")
    assert terminal.status() == 0


def test_keys_during_an_answer():
    terminal = start(*QUICK, "-n", "300", "--isa", "ref", "--logit-bias", "2=never")
    assert not terminal.has_echo()  # libedit draws what is typed
    terminal.type("Once\r")
    terminal.wait_for_answer()
    assert not terminal.has_echo()
    terminal.type("/cont")
    answer = terminal.wait("> ")
    assert "300 tokens" in answer and "/cont" not in answer, answer
    assert "messages" in terminal.ask("ext"), "what was typed meanwhile is not there"
    assert terminal.end() == 0
    assert terminal.last_mode == terminal.first_mode


def test_terminal_after_signals():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV):
        terminal = start(*ENDLESS)
        terminal.type("Once\r")
        terminal.wait_for_answer()
        assert terminal.mode() != terminal.first_mode
        os.kill(terminal.process, number)
        status = terminal.status()
        assert status in (128 + number, -number), status
        assert terminal.last_mode == terminal.first_mode, number
    terminal = start(*QUICK)
    os.kill(terminal.process, signal.SIGTERM)
    assert terminal.status() == -signal.SIGTERM
    assert terminal.last_mode == terminal.first_mode
    assert b"\x1b[?2004l" in terminal.rest, "pasted text stays marked"


def test_words_are_wrapped():
    texts = []
    for columns in (200, 24):
        terminal = start(*QUICK, "-n", "60", columns=columns)
        text = terminal.ask("Once upon a time").split("\x1b[2m")[0].replace("\r\n", "\n")
        assert terminal.end() == 0
        texts.append(ESCAPES.sub(b"", text.encode()).decode())
    assert all(len(line) <= 24 for line in texts[1].split("\n")), texts[1]
    assert texts[1].count("\n") > texts[0].count("\n")
    assert texts[0].split() == texts[1].split()


def test_run_shows_what_it_continues():
    for variables, expected in (({}, "\x1b[2mOnce upon\x1b[0m a time,"),
                                ({"NO_COLOR": "1"}, " a time,")):
        terminal = Terminal("--temp", "0", "-n", "30", "-p", "Once upon", command="run",
                            columns=20, **variables)
        text = terminal.wait("backend").replace("\r\n", "\n")
        assert terminal.status() == 0 and terminal.last_mode == terminal.first_mode
        assert text.startswith(expected), text
        text = ESCAPES.sub(b"", text.encode()).decode()
        assert text.count("\n") > 2 and max(map(len, text.split("\n"))) <= 20, text


def test_run_answers_in_colour():
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.gguf"
        model.write_bytes(with_template("{{ messages[0].content }}<think>"))
        terminal = Terminal("--temp", "0", "-n", "8", "-p", "Once", command="run", model=model)
        text = terminal.wait("backend")
        assert terminal.status() == 0
        assert text.startswith("\x1b[2m") and "Once" not in text, text


def test_no_colors():
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
            template.write(ECHO + "<think>")
            template.flush()
            terminal = start(*QUICK, "--template", template.name, **variables)
            terminal.type("Once\r")
            terminal.wait("\n")
            answer = terminal.wait("tokens/s" if "NO_COLOR" in variables else "> ")
            assert "<think>" in answer and not re.search(r"\x1b\[[0-9;]*m", answer), answer
            terminal.end()


def test_thinking_is_dimmed():
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
        template.write(ECHO + "<think>")
        template.flush()
        terminal = start(*QUICK, "--template", template.name)
        answer = terminal.ask("Once")
        assert terminal.end() == 0
    assert "\x1b[2m" in answer and "\x1b[0m" in answer, answer


def test_pipe_and_commands():
    done = pipe("Once upon a time\n/context\n/retry\n/system Be brief.\n/context\n"
                "/reset\n/context\n")
    said = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout + done.stderr, done
    assert "System message set." in said, said
    assert b"System message removed." in pipe("/system\n").stdout
    counts = [int(n) for n in re.findall(r"(\d+) messages?", said)]
    assert counts == [2, 3, 1], said
    assert b"no chat template" in done.stderr, done.stderr
    first, again = said.splitlines()[0], said.splitlines()[2]
    assert first == again, said


def test_set_and_unknown_commands():
    done = pipe("/set temp 0.5\n/set\n/set nothing 1\n")
    assert done.stdout.count(b"temp 0.5") == 3, done.stdout  # it is confirmed, and listed twice
    assert b"max-tokens 8" in done.stdout, done.stdout
    assert b"no setting 'nothing'" in done.stderr, done.stderr
    assert b"no setting" not in pipe("/set\n").stderr
    for setting, words in (("max-tokens 1.5", b"is not a whole number from 0 to 4294967295"),
                           ("temp -1", b"is not a number"), ("min-p nan", b"is not a number")):
        said = pipe(f"/set {setting}\n").stderr
        assert b"/set " + setting.replace(" ", ": ").encode() + b" " + words in said, said
    done = pipe("/set top-k 1e1\n/set\n")
    assert b"max-tokens 8" in done.stdout and b"top-k 10" in done.stdout, done.stdout
    assert b"max-tokens 0" in pipe("/set max-tokens -1\n/set\n").stdout, "no limit, as -n -1"
    full = pipe("Once upon a time\n", "-n", "0", "--context", "60").stderr
    assert b"the answer ends here" in full and b"/reset" not in full, full


def test_save_and_load():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chat.json"
        pipe(f"Once\n/save {path}\n")
        assert b"2 messages" in pipe(f"/load {path}\n/context\n").stdout
        assert b"2 messages" in pipe("/context\n", "--load", str(path)).stdout
        done = pipe(f"/system Be brief.\n/save {path}\n/load {path}\n/context\n").stdout.decode()
        assert f"Wrote 1 message to {path}.\n1 message.\n" in done, done
        assert ", 1 message; 0 prompt tokens were reused" in done, done
        path.write_text('{"no": "list"}')
        done = pipe(f"/load {path}\n/context\n")
        assert b"is not a saved conversation" in done.stderr and done.returncode == 1, done


def test_tools_that_are_none():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tools.json"
        for text in ("{% if %}", "{}", "[1]"):
            path.write_text(text)
            done = pipe("Once\n", "--tools", str(path))
            assert done.returncode == 1 and done.stderr.startswith(b"wick: tools"), done.stderr
            assert done.stderr.endswith(b"; they were given with --tools\n"), done.stderr


def test_commands_that_fail():
    """The first one ends what comes from a pipe; a person goes on."""
    for line, words in (("/load /no/file", b"cannot open"), ("/save /no/file", b"No such file"),
                        ("/set nothing 1", b"no setting"), ("/nosuch", b"no command '/nosuch'"),
                        ("/set temp x", b"is not a number")):
        done = pipe(f"{line}\n/context\n")
        assert done.returncode == 1 and b"messages" not in done.stdout, done
        assert words in done.stderr, done.stderr
    terminal = start(*QUICK)
    terminal.ask("/load /no/file")
    assert "0 messages" in terminal.ask("/context")
    assert terminal.end() == 0


def test_interrupt_of_questions_from_a_pipe():
    for question in (b"Once\n/context\n", b""):
        process = subprocess.Popen([WICK, "chat", MODEL, *ENDLESS], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(question)
        process.stdin.flush()
        if question:
            assert process.stdout.read(8)
        else:
            assert b"no chat template" in process.stderr.readline()
            time.sleep(0.3)  # until it reads
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 130 and b"messages" not in said, (process.returncode, said)


def test_input_that_cannot_be_read():
    done = pipe("one\na\0b\n/context\n")
    assert done.returncode == 1 and b"zero byte after 1 bytes" in done.stderr, done
    assert b"messages" not in done.stdout, done.stdout
    for redirection in ("< /", "<&-"):
        command = f'"$0" chat "$1" {redirection}'
        done = subprocess.run(["sh", "-c", command, WICK, MODEL], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=TIMEOUT)
        assert done.returncode == 1 and b"cannot read standard input" in done.stderr, done


def test_save_replaces_conversations_alone():
    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder) / "chat.json", Path(folder) / "other"
        other.write_bytes(b"GGUF")
        pipe(f"/save {path}\none\n/save {path}\n")
        assert len(json.loads(path.read_text())) == 2
        for content in (b"GGUF", b"{}", b"[1]", b""):
            other.write_bytes(content)
            done = pipe(f"/save {other}\n")
            said = [line for line in done.stderr.splitlines() if b"warning" not in line]
            assert len(said) == 1 and b"is not replaced" in said[0], done
            assert other.read_bytes() == content


def test_save_to_what_is_not_a_file():
    """Written to, not read first: a pipe has no end while it is open for writing."""
    assert b'"role": "user"' in pipe("one\n/save /dev/stdout\n").stdout
    assert b"No space left" in pipe("one\n/save /dev/full\n").stderr


def test_continued_line_and_one_question():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chat.json"
        pipe(f"one\\\ntwo\n/save {path}\n")
        assert json.loads(path.read_text())[0]["content"] == "one\ntwo"
        assert '"one\\ntwo"' in path.read_text(), "a newline is written as people write it"
    assert b"2 messages" in pipe("one\r\n/context\r\n/quit\r\n").stdout
    assert len(pipe("one\\").stdout) > 1, "the end of input cuts the last question off"
    done = subprocess.run([WICK, "chat", MODEL, *QUICK, "-p", "Once"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT)
    assert done.returncode == 0 and done.stdout.endswith(b"\n"), done


def test_context_beyond_the_model():
    words = b"warning: the model was made for 512 tokens"
    assert pipe("", "--context", "513").stderr.count(words) == 1
    assert words not in pipe("", "--context", "512").stderr + pipe("").stderr


def test_template_that_refuses():
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
        template.write("{{ raise_exception('only roses') }}")
        template.flush()
        done = pipe("Once\n", "--template", template.name)
        assert done.returncode == 1 and b"only roses" in done.stderr, done
        template.write("{% if %}")
        template.flush()
        done = pipe("Once\n", "--template", template.name)
        assert done.returncode == 1 and b"line 1" in done.stderr, done


EDITING = {"test_history", "test_pasted_lines", "test_paste_without_an_end",
           "test_pasted_ends_of_lines", "test_completion", "test_history_of_earlier_runs",
           "test_keys_during_an_answer"}


def main():
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_")]
    editing = has_editing()
    failed = 0
    for number, (name, function) in enumerate(tests, 1):
        if name in EDITING and not editing:
            print(f"ok {number} - {name} # SKIP built without libedit")
            continue
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Exception:  # a case that breaks is a case that failed
            failed += 1
            print(f"not ok {number} - {name}")
            print("# " + traceback.format_exc().replace("\n", "\n# "), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
