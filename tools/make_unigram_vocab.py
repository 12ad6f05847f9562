#!/usr/bin/env python3
"""make_unigram_vocab.py TRAINING_TEXT TEST_TEXTS OUT

Trains a unigram vocabulary of 800 pieces with the Python package sentencepiece and writes OUT.gguf
(the vocabulary as tokenizer metadata, no tensors), OUT.inp (texts, separated by a line
__ggml_vocab_test__: those of TEST_TEXTS, which has this form, and some more) and OUT.out (the ids
that sentencepiece gives each, one line a text). The training text is lines of UTF-8.
"""
import pathlib
import struct
import sys
import tempfile

import sentencepiece

SEPARATOR = "\n__ggml_vocab_test__\n"
NORMAL, UNKNOWN, CONTROL = 1, 2, 3
U32, F32, BOOL, STRING, ARRAY, U8, I32 = 4, 6, 7, 8, 9, 0, 5  # types of GGUF values
FORMATS = {U32: "<I", F32: "<f", BOOL: "<?", U8: "<B", I32: "<i"}
MORE_TEXTS = [
    "  leading and   inner   spaces  ",
    "The \ufb01sh \u2014 \uff28\uff45\uff4c\uff4c\uff4f \u2163 \u00bd",  # what NFKC replaces
    "e\u0301 \u00e9 \u2581 \u00a0x\u200by\u3000z",
    "</s> <unk> <s>",
    "Once upon a time there was a princess who lived in a castle.",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
]


def protobuf_field(message, wanted):
    """The last length-delimited field of that number in a protocol buffer's bytes."""
    found, at = b"", 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            varint()
        elif tag & 7 == 1:
            at += 8
        elif tag & 7 == 5:
            at += 4
        else:
            size = varint()
            if tag >> 3 == wanted:
                found = message[at : at + size]
            at += size
    return found


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, content):
    return string(content) if kind == STRING else struct.pack(FORMATS[kind], content)


def entry(key, kind, content):
    return string(key) + struct.pack("<I", kind) + value(kind, content)


def array(key, kind, contents):
    head = string(key) + struct.pack("<IIQ", ARRAY, kind, len(contents))
    return head + b"".join(value(kind, item) for item in contents)


def kind_of(model, token):
    if model.is_unknown(token):
        return UNKNOWN
    if model.is_control(token):
        return CONTROL
    return NORMAL


def gguf(model):
    tokens = range(model.get_piece_size())
    normalizer = protobuf_field(model.serialized_model_proto(), 3)
    entries = [
        entry("general.architecture", STRING, "t5"),
        entry("tokenizer.ggml.model", STRING, "t5"),
        entry("tokenizer.ggml.pre", STRING, "default"),
        array("tokenizer.ggml.tokens", STRING, [model.id_to_piece(i) for i in tokens]),
        array("tokenizer.ggml.scores", F32, [model.get_score(i) for i in tokens]),
        array("tokenizer.ggml.token_type", I32, [kind_of(model, i) for i in tokens]),
        entry("tokenizer.ggml.unknown_token_id", U32, model.unk_id()),
        entry("tokenizer.ggml.eos_token_id", U32, model.eos_id()),
        entry("tokenizer.ggml.add_bos_token", BOOL, False),
        entry("tokenizer.ggml.add_eos_token", BOOL, True),
        entry("tokenizer.ggml.add_space_prefix", BOOL, True),
        entry("tokenizer.ggml.remove_extra_whitespaces", BOOL, True),
        array("tokenizer.ggml.precompiled_charsmap", U8, protobuf_field(normalizer, 2)),
    ]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries)


def train(text):
    with tempfile.TemporaryDirectory() as folder:
        prefix = str(pathlib.Path(folder) / "model")
        sentencepiece.SentencePieceTrainer.train(
            input=text,
            model_prefix=prefix,
            model_type="unigram",
            vocab_size=800,
            input_sentence_size=20000,
            shuffle_input_sentence=False,
            num_threads=1,
            minloglevel=2,
        )
        return sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    model = train(sys.argv[1])
    texts = pathlib.Path(sys.argv[2]).read_bytes().decode().split(SEPARATOR) + MORE_TEXTS
    ids = [model.encode(text) for text in texts]
    out = sys.argv[3]
    pathlib.Path(out + ".gguf").write_bytes(gguf(model))
    pathlib.Path(out + ".inp").write_bytes(SEPARATOR.join(texts).encode())
    lines = "".join(" ".join(map(str, line)) + "\n" for line in ids)
    pathlib.Path(out + ".out").write_text(lines)


if __name__ == "__main__":
    main()
