"""Constrained sampling by the command: what 1,000 seeds of a model of random weights write is
valid, by a validator of its own; options and messages. Needs nothing but Python.

WICK_BIN is the command, WICK_SHARED_DATA the folder of the fixtures, WICK_TEST_DATA that of
stories260K. Every case reports a TAP line."""

import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WICK = os.environ.get("WICK_BIN", str(ROOT / "build/wick"))
STORIES = str(Path(os.environ.get("WICK_TEST_DATA", ROOT / "tests/data")) / "stories260K.gguf")
RANDOM = Path(os.environ.get("WICK_SHARED_DATA", ROOT / "../shared/data")) / "families/llama.gguf"
SEEDS = 1000


class Skip(Exception):
    pass


def wick(*arguments):
    return subprocess.run([WICK, *map(str, arguments)], input=b"", stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120)


def write(model, seed, *options):
    done = wick("run", model, "--tokens", "1", "-q", "--context", 4000, "--threads", 1,
                "--seed", seed, *options)
    assert done.returncode == 0, f"seed {seed}: {done.stderr.decode(errors='replace')}"
    return done.stdout.decode()


def fails(code, words, *options, model=STORIES):
    done = wick("run", model, "-p", "a", *options)
    said = done.stderr.decode()
    assert done.returncode == code and not done.stdout, (done.returncode, said, done.stdout)
    assert words in said, said


# ---- A validator ----

TYPES = {"object": dict, "array": list, "string": str, "null": type(None), "boolean": bool}


def is_of_type(value, name):
    if name in ("number", "integer"):
        whole = isinstance(value, int) or (isinstance(value, float) and value == int(value))
        return not isinstance(value, bool) and isinstance(value, (int, float)) \
            and (name == "number" or whole)
    return isinstance(value, TYPES[name])


def resolve(root, reference):
    for step in reference.lstrip("#").split("/")[1:]:
        root = root[step]
    return root


def is_format(name, value):
    return re.fullmatch({
        "date": r"\d{4}-(0\d|1[0-2])-([0-2]\d|3[01])",
        "date-time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)",
        "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        "email": r"[^@\s]+@[^@\s]+\.[a-z]+",
    }[name], value) is not None


def is_valid(value, schema, root):
    """Keywords as JSON Schema 2020-12 means them, those that the schemas below use."""
    if isinstance(schema, bool):
        return schema
    rules = {
        "$ref": lambda a: is_valid(value, resolve(root, a), root),
        "type": lambda a: any(is_of_type(value, t) for t in ([a] if isinstance(a, str) else a)),
        "enum": lambda a: any(value == x and type(value) is type(x) for x in a),
        "const": lambda a: value == a,
        "anyOf": lambda a: any(is_valid(value, s, root) for s in a),
        "oneOf": lambda a: sum(is_valid(value, s, root) for s in a) == 1,
        "allOf": lambda a: all(is_valid(value, s, root) for s in a),
    }
    if isinstance(value, str):
        rules |= {"minLength": lambda a: len(value) >= a, "maxLength": lambda a: len(value) <= a,
                  "pattern": lambda a: re.search(a, value, re.ASCII),
                  "format": lambda a: is_format(a, value)}
    if is_of_type(value, "number"):
        rules |= {"minimum": lambda a: value >= a, "maximum": lambda a: value <= a,
                  "exclusiveMinimum": lambda a: value > a, "exclusiveMaximum": lambda a: value < a}
    if isinstance(value, list):
        prefix = schema.get("prefixItems", [])
        rules |= {"minItems": lambda a: len(value) >= a, "maxItems": lambda a: len(value) <= a,
                  "items": lambda a: all(is_valid(v, a, root) for v in value[len(prefix):]),
                  "prefixItems": lambda a: all(is_valid(v, s, root) for v, s in zip(value, a))}
    if isinstance(value, dict):
        named = schema.get("properties", {})
        other = [k for k in value if k not in named]
        patterns = schema.get("patternProperties", {})
        free = [k for k in other if not any(re.search(p, k) for p in patterns)]
        rules |= {"required": lambda a: all(k in value for k in a),
                  "properties": lambda a: all(is_valid(value[k], a[k], root)
                                              for k in value if k in a),
                  "additionalProperties": lambda a: all(is_valid(value[k], a, root) for k in free),
                  "patternProperties": lambda a: all(is_valid(value[k], a[p], root) for p in a
                                                     for k in value if re.search(p, k))}
    return all(rules[k](a) for k, a in schema.items() if k in rules)


def refuse_twice(pairs):
    assert len({k for k, _ in pairs}) == len(pairs), f"a key occurs twice: {pairs}"
    return dict(pairs)


TEXT = {"type": "string", "maxLength": 12}
SCHEMAS = [
    {"type": "object",
     "properties": {"name": TEXT, "age": {"type": "integer", "minimum": 0, "maximum": 120},
                    "score": {"type": "number", "exclusiveMinimum": -0.5, "maximum": 12.75},
                    "tags": {"type": "array", "items": {"enum": ["a", "b\"c", None, 1.5, [1]]},
                             "minItems": 1, "maxItems": 3}},
     "required": ["name", "score"], "additionalProperties": False},
    {"type": ["integer", "null", "boolean"], "exclusiveMaximum": 1000, "minimum": -77},
    {"anyOf": [{"type": "string", "format": f} for f in ("date", "date-time", "uuid", "email")]},
    {"type": "array", "maxItems": 4, "minItems": 2,
     "prefixItems": [{"const": "first"}, {"type": "number"}], "items": {"type": "boolean"}},
    {"$ref": "#/$defs/list",
     "$defs": {"list": {"type": "object", "required": ["value", "next"],
                        "properties": {"value": {"type": "integer"},
                                       "next": {"anyOf": [{"type": "null"},
                                                          {"$ref": "#/$defs/list"}]}}}}},
    {"oneOf": [{"type": "object", "required": ["kind", "r"],
                "properties": {"kind": {"const": "circle"}, "r": {"type": "number", "minimum": 0}}},
               {"type": "object", "required": ["kind", "w"],
                "properties": {"kind": {"enum": ["box", "cube"]}, "w": {"type": "integer"}}}]},
    {"allOf": [{"properties": {"a": {"type": "number", "minimum": 0.25}}, "required": ["a"]},
               {"properties": {"a": {"maximum": 0.3}, "b": {"type": "string",
                                                            "pattern": "^[a-z]{2,5}\\d$"}}}]},
    {"type": "array", "maxItems": 2,
     "items": {"type": "object", "properties": {"ab": {"type": "null"}, "ac": TEXT},
               "additionalProperties": {"type": "integer"}}},
    {"patternProperties": {"^x_[a-z]{1,3}$": {"type": "boolean"}}, "additionalProperties": False},
    {"type": "string", "pattern": "^(ab|c{1,9}|\\W)[^\\s\"]$", "description": "no quotes"},
]


def test_json_of_random_weights_is_valid():
    if not RANDOM.exists():
        raise Skip(f"no shared data: {RANDOM} is not there")

    def check(seed):
        schema = SCHEMAS[seed % len(SCHEMAS)]
        text = write(RANDOM, seed, "--json-schema", json.dumps(schema),
                     "--temp", (0.8, 1.5, 0.3)[seed // len(SCHEMAS) % 3])
        if len(text) > 2500:
            return False  # a name or a list without a limit: the context was full
        value = json.loads(text, object_pairs_hook=refuse_twice)
        assert is_valid(value, schema, schema), f"seed {seed}: {text!r} for {schema}"
        return True

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(check, range(1, SEEDS + 1)))
    assert sum(done) >= SEEDS * 0.97, f"only {sum(done)} texts came to an end"
    print(f"# {sum(done)} of {SEEDS} texts are whole and valid")


def test_greedy_and_other_samplers_are_valid():
    for options in (["--temp", 0], ["--mirostat", 3], ["--xtc", 0.5, "--dry", 0.8],
                    ["--top-k", 1], ["--logit-bias", "300=5", "--repeat-penalty", 1.3]):
        text = write(STORIES, 5, "--json-schema", json.dumps(SCHEMAS[0]), *options)
        assert is_valid(json.loads(text), SCHEMAS[0], SCHEMAS[0]), text


def is_balanced(text):
    depth = 0
    for at, c in enumerate(text):
        depth += {"(": 1, ")": -1}[c]
        if depth == 0:
            return at == len(text) - 1
    return False


GRAMMARS = [
    (r'root ::= ("yes" | "no" | [0-9]{1,3}) " " [^a-z\n]{2,5} "\x21"',
     lambda t: re.fullmatch(r"(yes|no|[0-9]{1,3}) [^a-z\n]{2,5}!", t)),
    ("root ::= line{3}\nline ::= word (\" \" word){0,4} \"\\n\"\nword ::= [A-Z] [a-z]{1,7}",
     lambda t: re.fullmatch(r"([A-Z][a-z]{1,7}( [A-Z][a-z]{1,7}){0,4}\n){3}", t)),
    ('root ::= "(" root{0,2} ")"', is_balanced),
    ("root ::= [à-ü€\U0001F600-\U0001F64F]{4,8}",
     lambda t: re.fullmatch("[à-ü€\U0001F600-\U0001F64F]{4,8}", t)),
]


def test_gbnf_of_random_weights_is_valid():
    if not RANDOM.exists():
        raise Skip(f"no shared data: {RANDOM} is not there")

    def check(seed):
        grammar, matches = GRAMMARS[seed % len(GRAMMARS)]
        text = write(RANDOM, seed, "--grammar", grammar)
        assert len(text) > 3000 or matches(text), f"seed {seed}: {text!r} for {grammar}"

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(check, range(1, 201)))


def test_files():
    with tempfile.TemporaryDirectory() as folder:
        grammar, schema = Path(folder) / "a.gbnf", Path(folder) / "a.json"
        grammar.write_text('root ::= "on" | "off" # a comment\n')
        schema.write_text('{"enum": ["on", "off"]}')
        assert write(STORIES, 1, "--grammar-file", grammar) in ("on", "off")
        assert write(STORIES, 1, "--json-schema-file", schema) in ('"on"', '"off"')
        grammar.write_bytes(b'root ::= "a\0"')
        fails(1, "contains a zero byte", "--grammar-file", grammar)
        fails(1, "cannot open", "--json-schema-file", Path(folder) / "none")


def test_messages():
    fails(1, "line 1, column 10: the literal does not end", "--grammar", 'root ::= "a')
    fails(1, "'root' is left-recursive", "--grammar", 'root ::= root "a" | "b"')
    fails(1, "'not' is not supported", "--json-schema", '{"not": {"const": 1}}')
    fails(1, "the JSON schema: JSON, byte 1", "--json-schema", "{type: 1}")
    fails(1, "it was given with --json-schema\n", "--json-schema", '{"not": {"const": 1}}')
    fails(1, "it was given with --grammar\n", "--grammar", 'root ::= "a')
    with tempfile.TemporaryDirectory() as folder:
        schema = Path(folder) / "a.json"
        schema.write_text('{"pattern": "(", "type": "string"}')
        fails(1, f"it was given with --json-schema-file {schema}\n", "--json-schema-file", schema)
        schema.write_text('root ::= root "a"')
        fails(1, f"it was given with --grammar-file {schema}\n", "--grammar-file", schema)
    fails(2, "exclude each other", "--grammar", "root ::= .", "--json-schema", "{}")


def test_statistics_and_limits():
    done = wick("run", STORIES, "-p", "a", "--grammar", 'root ::= "b"+', "-n", 5)
    assert re.fullmatch("b+", done.stdout.decode()) and b"5 tokens" in done.stderr, done


def main():
    failed = 0
    cases = [(k, f) for k, f in globals().items() if k.startswith("test_")]
    for number, (name, case) in enumerate(cases, 1):
        try:
            case()
            print(f"ok {number} - {name}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}", flush=True)
        except (AssertionError, subprocess.TimeoutExpired, ValueError) as problem:
            failed += 1
            print(f"not ok {number} - {name}\n# {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
