"""`wick run` answers a question by the model's chat template, and continues a text where it is told
to or where there is no template. The environment is that of command.py; WICK_REAL_MODEL is
SmolLM2."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from command import (CONTINUATION, GREEDY, MODEL, TIMEOUT, WICK, equal, fails, main, succeeds,
                     wick, with_template)

REAL = os.environ.get("WICK_REAL_MODEL", "")
# The question becomes a text that this model continues.
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}, there was"
GREEDILY = ["-n", 8, "--temp", 0, "--backend", "cpu", "-q"]
QUESTION = "Once upon a time"
ANSWER = b" a little girl named Lily."


def templated(folder, template=TEMPLATE):
    path = Path(folder) / "model.gguf"
    path.write_bytes(with_template(template))
    return path


def test_every_way_to_ask():
    with tempfile.TemporaryDirectory() as folder:
        model = templated(folder)
        file = Path(folder) / "question"
        file.write_text(QUESTION)
        for arguments, stdin in (([QUESTION], b""), (["-p", QUESTION], b""), (["-f", file], b""),
                                 ([], QUESTION + "\n"), (["-f", "-"], QUESTION)):
            equal(succeeds("run", model, *arguments, *GREEDILY, stdin=stdin), ANSWER)
        for end in ("\n", "\r\n"):  # of an editor: not part of the question
            file.write_bytes((QUESTION + end).encode())
            equal(succeeds("run", model, "-f", file, *GREEDILY), ANSWER)
        assert succeeds("run", model, "--raw", "-f", file, *GREEDILY) != ANSWER, "every byte"
        equal(succeeds("run", *GREEDILY, model, QUESTION), ANSWER)
        fails(2, "exclude each other", arguments=["run", model, "a", "-p", "b"])
        fails(2, "'b' is one argument too many", arguments=["run", model, "a", "b"])


def test_what_a_template_is_given():
    shown = ("{% for m in messages %}{{ m.role }}: {{ m.content }}|{% endfor %}"
             "{{ 'thinks' if enable_thinking is not false else 'answers' }}")
    with tempfile.TemporaryDirectory() as folder:
        model, file = templated(folder), Path(folder) / "own.jinja"
        file.write_text(shown)

        def prompt_of(*options):  # a session that is loaded goes on as the whole text would
            session = Path(folder) / "session"
            first = succeeds("run", model, QUESTION, *options, *GREEDILY, "--save-session", session)
            return first + succeeds("run", model, "--load-session", session, *GREEDILY)

        def as_text(text):
            return succeeds("run", model, "--raw", text, *GREEDILY, "-n", 16)

        own = ["--template", file]
        equal(prompt_of(*own), as_text(f"user: {QUESTION}|thinks"))
        equal(prompt_of(*own, "--no-thinking"), as_text(f"user: {QUESTION}|answers"))
        equal(prompt_of(*own, "--system", "Be brief."),
              as_text(f"system: Be brief.|user: {QUESTION}|thinks"))
        plain = ["run", MODEL, QUESTION]
        equal(succeeds(*plain, *own, *GREEDILY), succeeds("run", model, QUESTION, *own, *GREEDILY))
        for options in (["--system", "Be brief."], ["--no-thinking"]):
            fails(1, "has no chat template", "--template", arguments=[*plain, *options])
        for options in (["--raw"], ["--tokens", "1"], ["--load-session", file]):
            fails(2, "are for answers", arguments=["run", model, "--system", "Be brief.", *options])
        file.write_text(" \n")
        fails(1, "is empty", arguments=[*plain, *own])
        file.write_bytes(b"{{ messages }}\0")
        fails(1, "contains a zero byte", arguments=[*plain, *own])
        file.write_text("{% if %}")
        fails(1, "line 1", arguments=[*plain, *own])


def test_text_is_continued_where_it_is_said():
    with tempfile.TemporaryDirectory() as folder:
        model, session = templated(folder), Path(folder) / "session"
        raw = succeeds("run", MODEL, QUESTION, *GREEDILY)
        equal(raw.decode(), CONTINUATION[:len(raw)])
        for arguments, stdin in ((["-p", QUESTION], b""), ([QUESTION], b""), ([], QUESTION)):
            equal(succeeds("run", model, "--raw", *arguments, *GREEDILY, stdin=stdin), raw)
        ids = " ".join(map(str, GREEDY["prompt_tokens"]))
        equal(succeeds("run", model, "--tokens", ids, *GREEDILY), raw)
        # A session goes on as it is, with a prompt and without.
        whole = succeeds("run", model, "--raw", QUESTION, *GREEDILY, "-n", 16)
        succeeds("run", model, "--raw", QUESTION, *GREEDILY, "--save-session", session)
        equal(raw + succeeds("run", model, "--load-session", session, *GREEDILY), whole)
        more = raw.decode() + " in the park"
        appended = succeeds("run", model, "--load-session", session, "-p", " in the park",
                            *GREEDILY)
        equal(appended, succeeds("run", model, "--raw", "-p", QUESTION + more, *GREEDILY))


def test_an_answer_can_be_saved():
    with tempfile.TemporaryDirectory() as folder:
        model, session = templated(folder), Path(folder) / "session"
        whole = succeeds("run", model, QUESTION, *GREEDILY, "-n", 16)
        first = succeeds("run", model, QUESTION, *GREEDILY, "--save-session", session)
        equal(first + succeeds("run", model, "--load-session", session, *GREEDILY), whole)


def test_a_bad_grammar_is_not_the_template():
    with tempfile.TemporaryDirectory() as folder:
        for option, text in (("--grammar", "root ::= no-rule"), ("--json-schema", "{")):
            done = wick("run", templated(folder), QUESTION, *GREEDILY, option, text)
            assert done.returncode == 1 and b"--raw" not in done.stderr, done.stderr
        bad = templated(folder, "{% if %}")
        fails(1, "--raw continues the text", arguments=["run", bad, QUESTION, *GREEDILY])


def test_output_options():
    with tempfile.TemporaryDirectory() as folder:
        model = templated(folder)
        text = succeeds("run", model, QUESTION, *GREEDILY)
        ids = succeeds("run", model, QUESTION, *GREEDILY, "--print-ids").decode()
        equal(succeeds("tokenize", model, "--decode", ids.strip()).strip(), text.strip())
        done = wick("run", model, QUESTION, *GREEDILY, "--logprobs", 1)
        equal((done.stdout, len(done.stderr.splitlines())), (text, 8))
        equal(succeeds("run", model, QUESTION, *GREEDILY, "--stop", "girl"), b" a little ")
        only = succeeds("run", model, QUESTION, *GREEDILY, "--grammar", 'root ::= "yes" | "no"')
        assert only in (b"yes", b"no"), only
        said = wick("run", model, QUESTION, "-n", 4, "--backend", "cpu").stderr.decode()
        assert re.search(r"generation 4 tokens", said), said


def test_what_cannot_be_answered():
    with tempfile.TemporaryDirectory() as folder:
        model = templated(folder)
        for blank in ("", " \n\t "):
            fails(1, "there is no question", arguments=["run", model, "-p", blank])
        fails(1, "takes 8 tokens", "holds 8", "a larger --context",
              arguments=["run", model, QUESTION, "--context", 8])
        assert succeeds("run", model, QUESTION, "--context", 9)
        refusing = templated(folder, "{{ raise_exception('only roses') }}")
        fails(1, "only roses", arguments=["run", refusing, QUESTION])
        broken = templated(folder, "{% if %}")
        fails(1, "line 1", "--raw", arguments=["run", broken, QUESTION])
        assert succeeds("run", broken, "--raw", QUESTION, *GREEDILY)


def test_special_tokens_of_a_question_are_text():
    with tempfile.TemporaryDirectory() as folder:
        model = templated(folder, "{{ messages[0].content }}")
        said = wick("run", model, "</s>", "-n", 1, "--backend", "cpu").stderr.decode()
        assert "prompt 1 tokens" not in said and "prompt 2 tokens" not in said, said
        said = wick("run", model, "--raw", "</s>", "-n", 1, "--backend", "cpu").stderr.decode()
        assert "prompt 2 tokens" in said, said


def test_a_real_model():
    if not os.path.exists(REAL):
        return "the model that WICK_REAL_MODEL names is not there"
    for question, word in (("What is the capital of France?", b"Paris"),
                           ("Why is the sky blue?", b"light"),
                           ("Write a poem about the sea.", b"sea")):
        out = succeeds("run", REAL, question, *GREEDILY, "-n", 24)
        assert word in out, out
    chat = succeeds("chat", REAL, "-p", "What is the capital of France?", *GREEDILY[2:6], "-n", 24)
    asked = succeeds("run", REAL, "What is the capital of France?", *GREEDILY, "-n", 24)
    equal(chat.strip(), asked.strip())
    return None


def test_a_full_context_of_a_real_model():
    if not os.path.exists(REAL):
        return "the model that WICK_REAL_MODEL names is not there"
    questions = "".join(f"What is the capital of {c}?\n" for c in ("France", "Italy", "Spain"))
    done = wick("chat", REAL, "--temp", 0, "--context", 112, "--backend", "cpu",
                stdin=questions + "/context\n")
    said = done.stderr.decode()
    equal(done.returncode, 0)
    for city in (b"Paris", b"Rome", b"Madrid"):
        assert city in done.stdout, done.stdout
    assert "the model no longer sees the oldest 2 messages" in said, said
    assert b" of 112 tokens in the cache, 6 messages" in done.stdout, done.stdout
    return None


def context_of(model, kilobytes):
    """Tokens of the context that `wick chat` takes, with so much memory."""
    command = f'ulimit -v {kilobytes}; exec "$@"'
    done = subprocess.run(["sh", "-c", command, "sh", WICK, "chat", model, "--backend", "cpu"],
                          input=b"/context\n", stdout=subprocess.PIPE, timeout=TIMEOUT)
    equal(done.returncode, 0)
    return int(re.search(rb"of (\d+) tokens", done.stdout)[1])


def test_default_context():
    equal(context_of(MODEL, "unlimited"), 512)
    if not os.path.exists(REAL):
        return "the model that WICK_REAL_MODEL names is not there"
    equal(context_of(REAL, "unlimited"), 8192)
    # 30 layers of 3 heads of 64 keys and values as float16, in a quarter of the free memory.
    token = 30 * 3 * 64 * 2 * 2
    most = 700000 * 1024 // 4 // token
    assert most // 2 < context_of(REAL, 700000) <= most, (context_of(REAL, 700000), most)
    return None


if __name__ == "__main__":
    sys.exit(main(globals()))
