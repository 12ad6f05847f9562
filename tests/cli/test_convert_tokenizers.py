"""wick convert: vocabularies, tokens with a role, and chat templates of a folder."""

import base64
import json
import struct
import sys
import tempfile
from pathlib import Path

from command import DATA, equal, fails, main, succeeds
from hf_folder import (BERT_FIXTURE, BPE_FIXTURE, FIXTURES, SHARED, Gguf, change, checkpoint_of,
                       take_apart, write_safetensors)


def test_vocabularies():
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    with tempfile.TemporaryDirectory() as top:
        take_apart(BPE_FIXTURE, Path(top) / "bpe")
        take_apart(BERT_FIXTURE, Path(top) / "pieces")
        succeeds("convert", f"{top}/bpe", f"{top}/bpe.gguf")
        succeeds("convert", f"{top}/pieces", f"{top}/pieces.gguf")
        bpe, pieces = Gguf(f"{top}/bpe.gguf").values, Gguf(f"{top}/pieces.gguf").values
    equal(bpe["tokenizer.ggml.model"], "gpt2")
    equal(bpe["tokenizer.ggml.pre"], "gpt-2")
    equal(bpe["tokenizer.ggml.tokens"][:4] + bpe["tokenizer.ggml.tokens"][-2:],
          ["a", "b", "ab", "w0", "<s>", "<think>"])
    equal(bpe["tokenizer.ggml.token_type"][-3:], [1, 3, 4])
    equal(bpe["tokenizer.ggml.merges"], ["a b", "w1 w2"])
    equal(bpe["tokenizer.ggml.bos_token_id"], len(bpe["tokenizer.ggml.tokens"]) - 2)
    equal(bpe["tokenizer.ggml.eos_token_id"], 0)
    equal(bpe["tokenizer.ggml.add_bos_token"], True)
    equal(bpe["tokenizer.chat_template"], "{{ x }}")
    equal(pieces["tokenizer.ggml.model"], "bert")
    equal(pieces["tokenizer.ggml.tokens"][:3], ["\u2581a", "\u2581b", "b"])


def piece(text, score, kind):
    inner = bytes([10, len(text)]) + text + b"\x15" + struct.pack("<f", score) + bytes([24, kind])
    return bytes([10, len(inner)]) + inner


def test_sentencepiece():
    """Pieces are those of tokenizer.model; tokenizer.json adds to them."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    pieces = [piece(b"<unk>", 0, 2), piece(b"<s>", 0, 3), piece(b"<0x41>", 0, 6),
              piece("\u2581a".encode(), -1.5, 1)]
    bpe = bytes([18, 2, 24, 2])
    no_prefix = bytes([26, 2, 24, 0])
    with tempfile.TemporaryDirectory() as top:
        tiny, out = Path(top) / "tiny", Path(top) / "out.gguf"
        take_apart(FIXTURES[0], tiny)
        change(tiny / "tokenizer_config.json", lambda c: c.update(eos_token="<s>"))
        (tiny / "tokenizer.json").write_text(json.dumps({"added_tokens": [
            {"id": 1, "content": "<s>", "special": True},
            {"id": 4, "content": "<think>", "special": False}]}))
        (tiny / "tokenizer.model").write_bytes(b"".join(pieces) + bpe + no_prefix)
        succeeds("convert", tiny, out)
        values = Gguf(out).values
        equal(values["tokenizer.ggml.model"], "llama")
        equal(values["tokenizer.ggml.tokens"][:6],
              ["<unk>", "<s>", "<0x41>", "\u2581a", "<think>", "[PAD5]"])
        equal(values["tokenizer.ggml.token_type"][:6], [2, 3, 6, 1, 4, 5])
        equal(values["tokenizer.ggml.scores"][2:5], [0, -1.5, -10000])
        equal(values["tokenizer.ggml.add_space_prefix"], False)
        equal(values["tokenizer.ggml.bos_token_id"], 1)
        (tiny / "tokenizer.json").unlink()
        succeeds("convert", tiny, out, "--force")
        equal(Gguf(out).values["tokenizer.ggml.tokens"][4], "[PAD4]")
        # Added tokens of other files, and such as are pieces: their text and type, not <unk>'s.
        texts = {"<|x|>": 5, "word": 6, "<s>": 1, "<think>": 7, "<a>": 8, "[b]": 9}
        decoder = {"0": {"content": "<unk>", "special": True},
                   "3": {"content": "<new>", "special": True},
                   "5": {"content": "<y>", "special": False}}
        (tiny / "added_tokens.json").write_text('{"<a>": "5"}')
        fails(1, "the token '<a>' has no id", arguments=["convert", tiny, f"{top}/x.gguf"])
        (tiny / "added_tokens.json").write_text(json.dumps(texts))
        (tiny / "special_tokens_map.json").write_text(json.dumps(
            {"additional_special_tokens": ["[b]", {"content": "<a>"}]}))
        succeeds("convert", tiny, out, "--force")
        values = Gguf(out).values
        equal(values["tokenizer.ggml.tokens"][:7],
              ["<unk>", "<s>", "<0x41>", "\u2581a", "[PAD4]", "<|x|>", "word"])
        equal(values["tokenizer.ggml.token_type"][:10], [2, 3, 6, 1, 5, 3, 4, 4, 3, 3])
        (tiny / "tokenizer_config.json").write_text(json.dumps(
            {"bos_token": "<s>", "eos_token": "<y>", "added_tokens_decoder": decoder}))
        succeeds("convert", tiny, out, "--force")
        values = Gguf(out).values
        equal(values["tokenizer.ggml.tokens"][:6],
              ["<unk>", "<s>", "<0x41>", "<new>", "[PAD4]", "<y>"])
        equal(values["tokenizer.ggml.token_type"][:6], [2, 3, 6, 3, 5, 4])
        equal(values["tokenizer.ggml.eos_token_id"], 5)
        for role in ("bos_token", "eos_token"):
            change(tiny / "tokenizer_config.json", lambda c, role=role: c.update({role: "frog"}))
            fails(1, f"the {role} 'frog'", arguments=["convert", tiny, f"{top}/x.gguf"])
            change(tiny / "tokenizer_config.json", lambda c, role=role: c.update({role: "<s>"}))
        for content, words in ((b"", "no pieces"),
                               (b"".join(pieces)[:-1], "no field"), (b"\xff" * 20, "byte 0")):
            (tiny / "tokenizer.model").write_bytes(content)
            fails(1, words, arguments=["convert", tiny, f"{top}/x.gguf"])
    return None


def test_prefix_and_spaces():
    """What SentencePiece does before and how the prefix stands: a key of the file, or refused."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    blank = "\u2581".encode()
    start = "tokenizer.ggml."
    pieces = b"".join([piece(b"<unk>", 0, 2), piece(b"<s>", 0, 3), piece(blank, -1, 1),
                       piece(b"a", -2, 1), piece(blank + b"a", -1.5, 1)])
    bpe, plain = bytes([18, 2, 24, 2]), bytes([26, 2, 32, 0])
    metaspace = lambda scheme: {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme}]}}
    prepend = {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace"}]}}
    space, scheme = "add_space_prefix", "prepend_scheme"
    cases = [  # tokenizer_config.json, tokenizer.json, what the metadata says, ids of " a<s>a"
        ({"legacy": True}, None, {space: None, scheme: None}, [2, 4, 1, 4]),
        ({"legacy": None, "add_prefix_space": None}, None, {scheme: None}, [2, 4, 1, 4]),
        ({"legacy": False}, None, {space: None, scheme: "first"}, [4, 1, 3]),
        ({"legacy": False}, prepend, {space: None, scheme: None}, [2, 4, 1, 4]),
        ({"legacy": True}, metaspace("first"), {scheme: "first"}, [4, 1, 3]),
        ({}, metaspace("always"), {scheme: "always"}, [4, 1, 4]),
        ({}, metaspace("never"), {space: False, scheme: None}, [4, 1, 3]),
        ({"add_prefix_space": False, "legacy": False}, prepend,
         {space: False, scheme: None}, [4, 1, 3]),
    ]
    with tempfile.TemporaryDirectory() as top:
        tiny, out = Path(top) / "tiny", Path(top) / "out.gguf"
        take_apart(FIXTURES[0], tiny)
        (tiny / "tokenizer.model").write_bytes(pieces + bpe + plain)
        for config, root, expected, ids in cases:
            (tiny / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", **config}))
            (tiny / "tokenizer.json").write_text(json.dumps(root or {}))
            succeeds("convert", tiny, out, "--force")
            values = Gguf(out).values
            equal({key: values.get(start + key) for key in expected}, expected)
            found = succeeds("tokenize", out, "--ids", " a<s>a").decode().split()
            equal([int(x) for x in found], [1, *ids])
        table = bytes([4, 0, 0, 0, 0, 0, 0, 0])
        (tiny / "tokenizer.model").write_bytes(
            pieces + bpe + bytes([26, 2 + len(table), 18, len(table)]) + table)
        succeeds("convert", tiny, out, "--force")
        values = Gguf(out).values
        equal(values[start + "remove_extra_whitespaces"], True)
        equal(bytes(values[start + "precompiled_charsmap"]), table)
        suffix = bytes([18, 5, 24, 2, 0xC0, 1, 1])
        (tiny / "tokenizer.model").write_bytes(pieces + suffix + plain)
        fails(1, "treat_whitespace_as_suffix", arguments=["convert", tiny, f"{top}/x.gguf"])
    return None


def unigram_files(folder, values):
    """tokenizer.json and tokenizer.model of what the fixture holds."""
    charsmap = bytes(values["precompiled_charsmap"])
    tokens = list(zip(values["tokens"], values["scores"], values["token_type"]))
    (folder / "tokenizer.json").write_text(json.dumps({
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()},
            {"type": "Strip", "strip_left": False, "strip_right": True},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}]},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True},
        "post_processor": {"type": "TemplateProcessing", "single": [
            {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>"}}]},
        "added_tokens": [{"id": i, "content": text, "special": True}
                         for i, (text, _, kind) in enumerate(tokens) if kind == 3],
        "model": {"type": "Unigram", "unk_id": 0,
                  "vocab": [[text, score] for text, score, _ in tokens]}}))
    normalizer = b"\x12" + varint(len(charsmap)) + charsmap
    (folder / "tokenizer.model").write_bytes(
        b"".join(piece(text.encode(), score, kind) for text, score, kind in tokens) +
        b"\x12\x02\x18\x01" + b"\x1a" + varint(len(normalizer)) + normalizer)


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def widen(folder, n):
    """n rows of the embedding and the output."""
    _, kind, layers, names, _, _ = FIXTURES[0]
    tensors = checkpoint_of(Gguf(f"{SHARED}/families/{FIXTURES[0][0]}.gguf"), kind, layers, names)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        (_, width), data = tensors[name]
        tensors[name] = [n, width], data + bytes(4 * n * width - len(data))
    write_safetensors(folder / "model.safetensors", tensors)
    change(folder / "config.json", lambda c: c.update(vocab_size=n))


def test_unigram():
    """Of either file comes the fixture's vocabulary, which cuts texts as SentencePiece does."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    expected = Gguf(DATA / "vocab/unigram.gguf").values
    start = "tokenizer.ggml."
    own = {key[len(start):]: value for key, value in expected.items() if key.startswith(start)}
    texts = (DATA / "vocab/unigram.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    with tempfile.TemporaryDirectory() as top:
        tiny = Path(top) / "tiny"
        take_apart(FIXTURES[0], tiny)
        widen(tiny, len(own["tokens"]))
        change(tiny / "config.json", lambda c: c.update(eos_token_id=2))
        (tiny / "tokenizer_config.json").unlink()
        unigram_files(tiny, own)
        for file in ("tokenizer.model", "tokenizer.json"):
            succeeds("convert", tiny, f"{top}/out.gguf", "--force")
            got = Gguf(f"{top}/out.gguf").values
            for key in ("model", "tokens", "scores", "token_type", "unknown_token_id",
                        "eos_token_id", "add_space_prefix", "remove_extra_whitespaces",
                        "precompiled_charsmap", "add_bos_token", "add_eos_token"):
                equal((file, key, got.get(start + key)), (file, key, own[key]))
            lines = (DATA / "vocab/unigram.out").read_text().splitlines()
            for text, ids in list(zip(texts, lines, strict=True))[::6]:
                out = succeeds("tokenize", f"{top}/out.gguf", "--ids", "--no-special", text)
                equal(out.decode().strip(), ids.strip())
            (tiny / "tokenizer.model").unlink(missing_ok=True)
        change(tiny / "tokenizer.json", lambda c: (  # blanks are removed as XLM-R's are
            c.update(normalizer=c["normalizer"]["normalizers"][0]),
            c.update(pre_tokenizer={"type": "Sequence", "pretokenizers": [
                {"type": "WhitespaceSplit"}, c["pre_tokenizer"]]})))
        succeeds("convert", tiny, f"{top}/out.gguf", "--force")
        equal(Gguf(f"{top}/out.gguf").values[start + "remove_extra_whitespaces"], True)
        refuse_other_spaces(tiny)
    return None


def refuse_other_spaces(folder):
    """Steps that remove other white space than SentencePiece does."""
    root = json.loads((folder / "tokenizer.json").read_text())
    charsmap, split = root["normalizer"], root["pre_tokenizer"]
    metaspace = split["pretokenizers"][1]
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}
    left = {**strip, "strip_right": False}
    join = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    first = {"type": "Metaspace", "prepend_scheme": "first"}
    both = {"type": "Sequence", "pretokenizers": [split["pretokenizers"][0], first]}
    cases = [([charsmap, strip, join], metaspace, None), ([charsmap, join], split, None),
             ([strip, join], metaspace, "Strip"), ([charsmap, strip], metaspace, "Strip"),
             ([charsmap, join], metaspace, "Replace"), ([charsmap, left, join], metaspace, "Strip"),
             ([charsmap, join, strip], metaspace, "'Strip'"),
             ([strip, charsmap, join], metaspace, "'Precompiled'"),
             ([charsmap, strip, join], first, "Strip"), ([], split, "WhitespaceSplit"),
             ([charsmap, strip, {**join, "content": ""}], metaspace, "Strip"),
             ([charsmap, strip, {**join, "content": "\u2581"}], metaspace, None),
             ([charsmap], both, "WhitespaceSplit"),
             ([charsmap, {**join, "content": "\u2581"}], split, "WhitespaceSplit")]
    for steps, splits, word in cases:
        (folder / "tokenizer.json").write_text(json.dumps({
            **root, "normalizer": {"type": "Sequence", "normalizers": steps},
            "pre_tokenizer": splits}))
        arguments = ["convert", folder, f"{folder}/spaces.gguf", "--force"]
        if word is None:
            succeeds(*arguments)
        else:
            fails(1, word, arguments=arguments)


def test_roles_and_templates():
    """What begins and ends texts, and templates, from wherever a folder has them."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    listed = [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]
    end, begin = "tokenizer.ggml.eos_token_id", "tokenizer.ggml.bos_token_id"
    cases = [  # files beside config.json, what the metadata then says
        ({"tokenizer_config.json": {"chat_template": listed}},
         {"tokenizer.chat_template": "D", "tokenizer.chat_template.tool_use": "T",
          "tokenizer.chat_templates": ["tool_use"], end: None, begin: None,
          "tokenizer.ggml.add_bos_token": False}),
        ({"tokenizer_config.json": {"chat_template": listed}, "chat_template.jinja": "F"},
         {"tokenizer.chat_template": "F", "tokenizer.chat_template.tool_use": "T"}),
        ({"tokenizer_config.json": {"chat_template": "C"}, "chat_template.jinja": "F"},
         {"tokenizer.chat_template": "F"}),
        ({"tokenizer_config.json": {}, "chat_template.json": {"chat_template": "J"}},
         {"tokenizer.chat_template": "J", "tokenizer.chat_templates": None}),
        ({"tokenizer_config.json": {"eos_token": "b"},
          "generation_config.json": {"eos_token_id": [1, 0, 5], "bos_token_id": 3}},
         {end: 1, "tokenizer.ggml.eot_token_id": 0, begin: 3}),
        ({"tokenizer_config.json": {"eos_token": "b"},
          "generation_config.json": {"eos_token_id": [0, 1, 0, 2, 3]}},
         {end: 1, "tokenizer.ggml.eot_token_id": 0, "tokenizer.ggml.eom_token_id": 2}),
        ({"tokenizer_config.json": {}, "special_tokens_map.json": {"eos_token": {"content": "ab"}},
          "generation_config.json": {"eos_token_id": 2, "max_length": 3}},
         {end: 2, "tokenizer.ggml.eot_token_id": None}),
        ({"tokenizer_config.json": {},
          "generation_config.json": {"suppress_tokens": [2, 1 << 30, 0, "b", -1]}},
         {"tokenizer.ggml.suppress_tokens": [2, 0]}),
        ({"tokenizer_config.json": {},
          "generation_config.json": {"eos_token_id": 1 << 30, "suppress_tokens": [1 << 30]}},
         {"tokenizer.ggml.suppress_tokens": None, end: None, "tokenizer.ggml.eot_token_id": None}),
        ({"tokenizer_config.json": {"bos_token": "<s>"}, "tokenizer.json": {
            "post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}, {
                "type": "TemplateProcessing", "single": [
                    {"SpecialToken": {"id": "<s>", "type_id": 0}},
                    {"Sequence": {"id": "A", "type_id": 0}}]}]}}},
         {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": False}),
        ({"tokenizer_config.json": {}, "tokenizer.json": {
            "post_processor": {"type": "TemplateProcessing", "single": [
                {"SpecialToken": {"id": "w1", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}}]}}},
         {"tokenizer.ggml.add_bos_token": True, begin: 4}),
    ]
    for files, expected in cases:
        with tempfile.TemporaryDirectory() as top:
            tiny = Path(top) / "tiny"
            take_apart(BPE_FIXTURE, tiny)
            for name, content in files.items():
                if name == "tokenizer.json":
                    change(tiny / name, lambda c, new=content: c.update(new))
                else:
                    text = content if isinstance(content, str) else json.dumps(content)
                    (tiny / name).write_text(text)
            succeeds("convert", tiny, f"{top}/out.gguf")
            got = Gguf(f"{top}/out.gguf").values
            equal({key: got.get(key) for key in expected}, expected)
    return None


def test_ways_to_split():
    """By the pattern of tokenizer.json; ignore_merges makes it Llama 3's, or is a key."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    llama3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| "
              r"?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    before, ending = r"[^\r\n\p{L}\p{N}]?", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    gpt4o = (f"{before}{upper}*{lower}+{ending}|{before}{upper}+{lower}*{ending}"
             r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    qwen35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| "
              r"?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    seed = llama3.replace("{1,3}", "{1}").replace(r"\p{N}]+[\r\n]*", r"\p{N}\r\n]+")
    v3 = ["\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
          "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
          "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
    coder = ["[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[一-龥ࠀ-一가-퟿]+"]
    split = lambda regex: {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated"}
    digits = lambda single: {"type": "Digits", "individual_digits": single}
    cases = [([split(llama3)], False, "dbrx"), ([split(llama3)], True, "llama-bpe"),
             ([split(llama3.replace("{1,3}", ""))], False, "qwen2"),
             ([split(llama3.replace("{1,3}", ""))], True, "qwen2"),
             ([{"type": "Punctuation"}, digits(False), split("[0-9][0-9][0-9]")], True, None),
             ([digits(True)], False, "smollm"),
             ([{"type": "Punctuation"}, digits(False), split("[0-9][0-9][0-9]")], False, "falcon"),
             ([split(gpt4o)], False, "gpt-4o"), ([split(qwen35)], False, "qwen35"),
             ([split(seed)], False, "seed-coder"),
             ([split(regex) for regex in v3], False, "deepseek-v3"),
             ([split(regex) for regex in reversed(v3)], False, None),
             ([*(split(regex) for regex in coder), digits(True)], False, "deepseek-coder"),
             ([*(split(regex) for regex in coder)], False, None),
             ([digits(False)], False, None)]
    for steps, takes_whole, name in cases:
        with tempfile.TemporaryDirectory() as top:
            take_apart(BPE_FIXTURE, Path(top) / "tiny")
            bytes_ = {"type": "ByteLevel", "use_regex": steps[0]["type"] != "Split"}
            change(Path(top) / "tiny/tokenizer.json", lambda c: (
                c.update(pre_tokenizer={"type": "Sequence", "pretokenizers": [*steps, bytes_]}),
                c["model"].update(ignore_merges=takes_whole)))
            if name is None:
                fails(1, "not known yet", arguments=["convert", f"{top}/tiny", f"{top}/out.gguf"])
                continue
            succeeds("convert", f"{top}/tiny", f"{top}/out.gguf")
            values = Gguf(f"{top}/out.gguf").values
            equal(values["tokenizer.ggml.pre"], name)
            equal(values.get("tokenizer.ggml.ignore_merges"),
                  True if takes_whole and name != "llama-bpe" else None)
    return None


ROLES = {"cls_token": "a", "sep_token": "b"}


def put_word_pieces(folder, unknown, in_model, *, files):
    """A vocabulary with a token of this text (None: without), named by its model or in files."""
    def edit(root):
        vocab = root["model"]["vocab"]
        at = vocab.pop("[UNK]")
        vocab[unknown or "other"] = at
        if in_model:
            root["model"]["unk_token"] = in_model
    change(folder / "tokenizer.json", edit)
    (folder / "tokenizer_config.json").unlink()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))


def test_unknown_word_piece():
    """It is found where it is named; the file opens, and gives it to words that are not known."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    config, roles = "tokenizer_config.json", "special_tokens_map.json"
    cases = [  # its text, what the model names, what files name, whether there is one
        ("[UNK]", "[UNK]", {config: {**ROLES, "unk_token": "[UNK]"}}, True),
        ("[UNK]", None, {config: {**ROLES, "unk_token": {"content": "[UNK]"}}}, True),
        ("[UNK]", None, {roles: {**ROLES, "unk_token": "[UNK]"}}, True),
        ("[UNK]", "[UNK]", {config: ROLES}, True),
        ("[UNK]", None, {config: ROLES}, True),
        ("oops", "oops", {config: ROLES}, True),
        ("oops", None, {config: {**ROLES, "unk_token": "oops"}}, True),
        ("oops", "oops", {config: {**ROLES, "unk_token": "w1"}}, True),
        ("oops", None, {config: ROLES}, False),
        (None, "[UNK]", {config: {**ROLES, "unk_token": "[UNK]"}}, False),
        (None, None, {}, False),
    ]
    for text, in_model, files, is_there in cases:
        with tempfile.TemporaryDirectory() as top:
            folder = Path(top) / "tiny"
            take_apart(BERT_FIXTURE, folder)
            put_word_pieces(folder, text, in_model, files=files)
            arguments = ["convert", folder, f"{top}/out.gguf"]
            if not is_there:
                fails(1, "has no unknown token", arguments=arguments)
                continue
            succeeds(*arguments)
            equal(Gguf(f"{top}/out.gguf").values["tokenizer.ggml.unknown_token_id"], 3)
            equal(Gguf(f"{top}/out.gguf").values["tokenizer.ggml.bos_token_id"], 0)
            out = succeeds("tokenize", f"{top}/out.gguf", "--ids", "--no-special", "ab ?")
            equal(out.decode().split(), ["0", "2", "3"])
    return None


def test_refused_steps():
    """What is done to a text before, and GGUF does not say."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    steps = lambda *items: {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [*items]}}
    regex = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| "
             r"?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    split = {"type": "Split", "pattern": {"Regex": regex}}
    bytes_ = {"type": "ByteLevel"}
    plain = {**bytes_, "use_regex": False}
    bert = lambda **more: {"normalizer": {"type": "BertNormalizer", **more}}
    bpe = [  # None: it converts
        ({"normalizer": None}, None),
        ({"normalizer": {"type": "NFC"}}, None),
        ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]}}, None),
        ({"normalizer": {"type": "Lowercase"}}, "the normalizer 'Lowercase'"),
        ({"normalizer": {"type": "Sequence", "normalizers": [
            {"type": "NFC"}, {"type": "Replace"}]}}, "the normalizer 'Replace'"),
        (steps({**split, "behavior": "Isolated", "invert": False},
               {**bytes_, "use_regex": False, "add_prefix_space": False}), None),
        (steps({**split, "behavior": "Removed", "invert": True}, plain), None),
        (steps({**split, "behavior": "Removed", "invert": False}, bytes_), "not known yet"),
        (steps({**split, "behavior": "MergedWithNext"}, bytes_), "not known yet"),
        (steps(split, {**bytes_, "use_regex": True}), "'use_regex' true"),
        (steps({**bytes_, "use_regex": False}), "'use_regex' false"),
        (steps({**bytes_, "add_prefix_space": True}), "'add_prefix_space' true"),
        (steps({"type": "Whitespace"}, bytes_), "the pre-tokenizer 'Whitespace'"),
        (steps({"type": "Punctuation"}, bytes_), "not known yet"),
        (steps(split, split, bytes_), "not known yet"),
        (steps(split, split, split, split, split, bytes_), "the pre-tokenizer 'Split'"),
        (steps({"type": "Digits", "individual_digits": True}, split, bytes_), "not known yet"),
        ({"model": {"continuing_subword_prefix": "##"}}, "continuing_subword_prefix ('##')"),
        ({"model": {"continuing_subword_prefix": "", "end_of_word_suffix": None}}, None),
        ({"model": {"end_of_word_suffix": "</w>"}}, "end_of_word_suffix ('</w>')"),
        ({"model": {"dropout": 0.1}}, "dropout of 0.1"),
        (steps(split, bytes_), "'use_regex' true"),
        ({"normalizer": []}, "'normalizer' is not an object"),
        ({"pre_tokenizer": "ByteLevel"}, "'pre_tokenizer' is not an object"),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": bytes_}}, "is not a list"),
        ({"pre_tokenizer": {"type": "Sequence"}}, "is not there"),
        ({"added_tokens": {}}, "'added_tokens' is not a list"),
        ({"added_tokens": [{"id": 1, "content": "<s>", "special": 1}]},
         "'special' of <s> is not true or false"),
        ({"model": {"ignore_merges": None}}, "'ignore_merges' of BPE is not true or false"),
        ({"model": {"end_of_word_suffix": 1}}, "'end_of_word_suffix' of BPE is not a text"),
        ({"model": {"dropout": "a"}}, "dropout"),
        (steps({**split, "invert": "no"}, bytes_), "'invert' of Split is not true or false"),
        (steps({"type": "Digits", "individual_digits": 1}, bytes_), "'individual_digits' of"),
        (steps({**bytes_, "add_prefix_space": None}), "'add_prefix_space' of ByteLevel"),
    ]
    pieces = [
        (bert(lowercase=True, clean_text=True, handle_chinese_chars=True, strip_accents=None),
         None),
        ({"pre_tokenizer": {"type": "BertPreTokenizer"}}, None),
        (bert(lowercase=False), "lowercase is false"),
        (bert(lowercase=True, strip_accents=False), "'strip_accents' false"),
        (bert(lowercase=True, clean_text=False), "'clean_text' false"),
        (bert(lowercase=True, handle_chinese_chars=False), "'handle_chinese_chars' false"),
        ({"normalizer": {"type": "Lowercase"}}, "the normalizer 'Lowercase'"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "the pre-tokenizer 'Whitespace'"),
        ({"model": {"continuing_subword_prefix": "@@"}}, "'@@'"),
        ({"model": {"max_input_chars_per_word": 50}}, "is 50"),
        ({"model": {"max_input_chars_per_word": 100}}, None),
        ({"model": {"max_input_chars_per_word": "100"}}, "max_input_chars_per_word"),
        ({"model": {"continuing_subword_prefix": 7}}, "continuing_subword_prefix"),
        (bert(lowercase=None), "'lowercase' of BertNormalizer is not true or false"),
        (bert(lowercase="yes"), "'lowercase' of BertNormalizer is not true or false"),
        (bert(lowercase=True, strip_accents="no"), "'strip_accents' of BertNormalizer"),
        (bert(lowercase=True, clean_text=None), "'clean_text' of BertNormalizer"),
        ({"normalizer": None}, "without a normalizer"),
        ({"pre_tokenizer": None}, "without a pre_tokenizer"),
    ]
    for fixture, edits, words in ([(BPE_FIXTURE, *case) for case in bpe] +
                                  [(BERT_FIXTURE, *case) for case in pieces]):
        with tempfile.TemporaryDirectory() as top:
            take_apart(fixture, Path(top) / "tiny")
            change(Path(top) / "tiny/tokenizer.json", lambda root: root.update(
                {key: {**root[key], **new} if key == "model" else new
                 for key, new in edits.items()}))
            arguments = ["convert", f"{top}/tiny", f"{top}/out.gguf"]
            print(f"# {edits}")
            if words:
                fails(1, words, arguments=arguments)
            else:
                succeeds(*arguments)
    return None


def test_lowercase_of_capitals():
    """lowercase must agree with the capital letters of the vocabulary."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    with tempfile.TemporaryDirectory() as top:
        take_apart(BERT_FIXTURE, Path(top) / "tiny")

        def capitalize(root):
            vocab = root["model"]["vocab"]
            vocab["A"] = vocab.pop(max(vocab, key=vocab.get))
            root["normalizer"] = {"type": "BertNormalizer", "lowercase": True}
        config = Path(top) / "tiny/tokenizer_config.json"
        arguments = ["convert", f"{top}/tiny", f"{top}/out.gguf"]
        change(config, lambda c: c.update(do_lower_case=False))
        fails(1, "do_lower_case is false, but the vocabulary has no capital", arguments=arguments)
        change(config, lambda c: c.update(do_lower_case=True))
        succeeds(*arguments)
        change(Path(top) / "tiny/tokenizer.json", capitalize)
        fails(1, "lowercase is true, but the vocabulary has capital letters",
              arguments=["convert", f"{top}/tiny", f"{top}/out.gguf"])
    return None


if __name__ == "__main__":
    sys.exit(main(globals()))
