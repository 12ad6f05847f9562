"""No function of the public headers crashes on NULL: a program that is made from the headers calls
each with nothing at all, and with every pointer NULL in turn beside real objects. What returns a
status must say that it is an error where every pointer is NULL, and leave a sentence: in `error`
or with the object: a session, a chat, an embedder, the device of a tensor. A failure sets the
object that it would have made to NULL."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BUILD = Path(os.environ.get("WICK_BUILD_DIR", "build"))
MODEL = Path(os.environ.get("WICK_TEST_DATA", "tests/data")) / "stories260K.gguf"

# The program's objects; of other opaque types there is none: they are NULL alone.
OBJECTS = {"wick_device": "device", "wick_model": "model", "wick_session": "session",
           "wick_tensor": "tensor", "wick_file": "file", "wick_embedder": "embedder",
           "wick_judging": "judging", "wick_template": "parsed", "wick_json": "json",
           "wick_chat": "chat",
           "wick_json_document": "document", "wick_tokenizer": "tokenizer",
           "wick_tensor_file": "tensors", "wick_error": "&error"}
# With a device and nothing else these work for seconds; they are called with NULL alone.
SLOW = re.compile(r"wick_(verify|bench|time_kernels|device_measure)")
# These end the life of an object that later calls need.
ENDS = re.compile(r"_(close|free|release|end|finish|reset|trim)$")

PROGRAM = r"""
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static wick_device *device;
static wick_model *model;
static wick_session *session;
static wick_tensor *tensor, *of_rank[4]; /* tensor is one of them */
static wick_file *file;
static wick_tensor_file *tensors;
static wick_embedder *embedder;
static wick_judging *judging;
static wick_chat *chat;
static wick_template *parsed;
static wick_json_document *document;
static const wick_json *json, *jsons[2]; /* an object and a number */
static const wick_tokenizer *tokenizer;
static wick_error error;
static _Alignas(64) unsigned char bytes[1 << 16]; /* any struct of the caller's, all zeros */

static void *made; /* what a call makes */

enum { FINE, SAYS_OK, NO_SENTENCE, NOT_NULL };
enum { MUST_FAIL = 1, HAS_ERROR = 2, MAKES = 4 };
enum { DEVICE = 8, SESSION = 16, EMBEDDER = 32, CHAT = 64 }; /* with which a sentence may be */

static int judge_status(wick_status status, int how) {
    if (status >= 0) return how & MUST_FAIL ? SAYS_OK : FINE;
    if (how & DEVICE) wick_device_error(device, &error);
    if (how & SESSION) wick_session_error(session, &error);
    if (how & EMBEDDER) wick_embedder_error(embedder, &error);
    if (how & CHAT) wick_chat_error(chat, &error);
    const int has_sentence = error.status == status && error.message[0] != 0;
    if (how & (HAS_ERROR | DEVICE | SESSION | EMBEDDER | CHAT) && !has_sentence)
        return NO_SENTENCE;
    return how & MAKES && made != NULL ? NOT_NULL : FINE;
}

static int call(int i) {
    memset(bytes, 0, sizeof bytes);
    wick_device_error(device, NULL);
    memset(&error, 0, sizeof error);
    made = &made;
    switch (i) {
@CALLS@
    }
    return FINE;
}

static int call_with_each(int i) {
    int outcome = FINE;
    for (int rank = 0; rank < 4 && outcome == FINE; rank++) {
        tensor = of_rank[rank];
        json = jsons[rank % 2];
        outcome = call(i);
    }
    return outcome;
}

static const char *const names[] = {@NAMES@};
enum { N_CALLS = sizeof names / sizeof *names };

static int prepare(const char *path) {
    static const uint32_t ids[600] = {1, 2, 3};
    static const float values[4] = {1, 2, 3, 4};
    const wick_shape shapes[] = {WICK_SHAPE(4), WICK_SHAPE(2, 2), WICK_SHAPE(1, 2, 2),
                                 WICK_SHAPE(1, 1, 2, 2)};
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    const wick_session_desc small = {.context_length = 64};
    const wick_chat_desc plain = {.session = small, .chat_template = "x"};
    if (wick_device_open(&desc, &device, &error) || wick_file_open(path, &file, &error) ||
        wick_tensor_file_open(path, &tensors, &error) ||
        wick_model_open(device, path, NULL, &model, &error) ||
        wick_session_open(model, &small, &session, &error) ||
        wick_chat_open(model, &plain, &chat, &error) ||
        wick_embedder_open(model, NULL, &embedder, &error) ||
        wick_judge_start(model, NULL, ids, 600, NULL, &judging, &error) ||
        wick_json_parse("{\"a\":1}", 7, &document, &error) ||
        wick_template_parse("x", 1, &parsed, &error))
        return 0;
    jsons[0] = wick_json_root(document);
    jsons[1] = wick_json_get(jsons[0], "a");
    tokenizer = wick_model_tokenizer(model);
    for (int i = 0; i < 4; i++) {
        of_rank[i] = wick_tensor_from_data(device, WICK_F32, shapes[i], values, sizeof values);
        if (of_rank[i] == NULL) return 0;
    }
    return jsons[1] != NULL;
}

/* A process makes all calls from `first` on and says which; one that ends it is the last. */
static void make_calls(int first, int out) {
    for (int i = first; i < N_CALLS; i++) {
        int said[2] = {i, -1};
        alarm(10);
        if (write(out, said, sizeof said) < 0) _exit(2);
        said[1] = call_with_each(i);
        if (write(out, said, sizeof said) < 0) _exit(2);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    static const char *const outcomes[] = {"", "says that it went well", "leaves no sentence",
                                           "does not set to NULL what it makes"};
    if (argc < 2 || !prepare(argv[1])) return 2;
    for (int next = 0; next < N_CALLS;) {
        int ends[2], said[2] = {next, -1}, status;
        if (pipe(ends) != 0) return 2;
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) make_calls(next, ends[1]);
        close(ends[1]);
        while (read(ends[0], said, sizeof said) == sizeof said)
            if (said[1] > 0) printf("%s: %s\n", names[said[0]], outcomes[said[1]]);
        close(ends[0]);
        waitpid(child, &status, 0);
        next = said[0] + 1;
        if (said[1] < 0)
            printf("%s: %s\n", names[said[0]],
                   WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "ends the program");
    }
    printf("calls %d\n", N_CALLS);
    return 0;
}
"""


def split(arguments):
    """At the commas that are in no parentheses."""
    parts, depth = [""], 0
    for char in arguments:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [" ".join(part.split()) for part in parts if part.strip() not in ("", "void")]


def read_headers():
    """(result, name, parameters) of every function; the names of enums and of complete structs."""
    text = ""
    for path in sorted(Path("include/wick").glob("*.h")):
        text += re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    text = re.sub(r"^[ \t]*#.*(\\\n.*)*$", "", text, flags=re.M)
    enums = set(re.findall(r"typedef enum (wick_\w+)", text))
    structs = set(re.findall(r"\}\s*(wick_\w+);", text)) | set(re.findall(r"struct (wick_\w+) \{",
                                                                         text))
    found = re.findall(r"WICK_API\s+([^;()]*?)\b(wick_\w+)\s*\(([^;]*?)\)\s*;", text)
    return [(" ".join(result.split()), name, split(rest)) for result, name, rest in found], \
        enums, structs - enums


FUNCTIONS, ENUMS, STRUCTS = read_headers()


def is_pointer(parameter):
    return "*" in parameter or "[" in parameter or re.search(r"\b\w+_fn\b", parameter) is not None


def is_made(parameter):
    """An opaque object that the function makes."""
    return re.match(r"wick_\w+ \*\*\w+$", parameter) is not None


def base_of(parameter):
    return re.sub(r"\b(const|struct)\b", "", parameter).split("*")[0].split("[")[0].split()[0]


def real(parameter):
    """Something to point at; None: there is nothing of that type."""
    if "(*" in parameter or re.search(r"\b\w+_fn\b", parameter):
        return None
    base = base_of(parameter)
    if is_made(parameter):
        return "(void *)&made"
    if parameter.count("*") == 1 and base in OBJECTS:
        return OBJECTS[base]
    if parameter.count("*") == 1 and base == "char":
        return '"x"' if "const" in parameter else "(char *)bytes"
    if base.startswith("wick_") and base not in STRUCTS | ENUMS and parameter.count("*") == 1:
        return None
    return "(void *)bytes"


def scalar(parameter, number):
    base = base_of(parameter)
    if base in STRUCTS:
        return f"({base}){{0}}"
    return f"({base}){number}" if base in ENUMS else number


def rows(name, parameters):
    """(values, must fail): nothing; numbers alone; each pointer NULL in turn."""
    plain = [tuple("0" if is_pointer(p) else scalar(p, number) for p in parameters)
             for number in ("0", "1")]
    for row in dict.fromkeys(plain):
        yield row, True
        with_error = tuple("&error" if "wick_error *" in p else value
                           for p, value in zip(parameters, row))
        if with_error != row:
            yield with_error, True
    if SLOW.match(name) or ENDS.search(name):
        return
    seen = set()
    for number in ("1", "0"):
        whole = [real(p) if is_pointer(p) else scalar(p, number) for p in parameters]
        for i, parameter in enumerate(parameters):
            row = tuple("0" if j == i else value for j, value in enumerate(whole))
            if is_pointer(parameter) and None not in row and row not in seen:
                seen.add(row)
                yield row, False


def how_judged(parameters, row, must_fail):
    """The flags of judge_status."""
    takes_error = any("wick_error *" in p for p in parameters)
    owners = {"device": "DEVICE", "tensor": "DEVICE", "session": "SESSION", "embedder": "EMBEDDER",
              "chat": "CHAT"}
    flags = ["MUST_FAIL"] * must_fail + ["HAS_ERROR"] * ("&error" in row)
    flags += sorted({owners[value] for value in row if value in owners and not takes_error})
    is_empty_list = any(p == "size_t n" and value == "0" for p, value in zip(parameters, row))
    flags += ["MAKES"] * ("(void *)&made" in row and not is_empty_list)
    return " | ".join(flags) or "0"


def program():
    calls, names = [], []
    for result, name, parameters in FUNCTIONS:
        is_status = result == "wick_status" and any(map(is_pointer, parameters))
        for row, must_fail in rows(name, parameters):
            what = f"{name}({', '.join(row)})"
            action = f"return judge_status({what}, {how_judged(parameters, row, must_fail)});" \
                if is_status else f"(void){what}; break;"
            calls.append(f"    case {len(names)}: {action}")
            names.append('"' + what.replace('"', '\\"') + '"')
    headers = "".join(f"#include <wick/{path.name}>\n"
                      for path in sorted(Path("include/wick").glob("*.h")))
    return "#define _DEFAULT_SOURCE\n" + headers + PROGRAM.replace(
        "@CALLS@", "\n".join(calls)).replace("@NAMES@", ",\n".join(names))


with tempfile.TemporaryDirectory() as folder:
    source, binary = Path(folder, "null.c"), Path(folder, "null")
    source.write_text(program())
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-w", "-Iinclude", source, "-o", binary,
                    BUILD / "libwick.a", "-lm", "-lpthread", "-ldl"], check=True)
    done = subprocess.run([binary, MODEL.resolve()], capture_output=True, text=True, cwd=folder)
lines = done.stdout.splitlines()
counted = re.match(r"calls (\d+)$", lines[-1] if lines else "")
if done.returncode != 0 or counted is None:
    sys.exit(f"the program ended with {done.returncode}: {done.stdout} {done.stderr}")
print("# " + lines[-1])
for line in lines[:-1]:
    print("not ok - " + line)
if len(FUNCTIONS) < 250 or int(counted[1]) < 700:
    sys.exit(f"only {len(FUNCTIONS)} functions were found, {counted[1]} calls made")
sys.exit(1 if lines[:-1] else 0)
