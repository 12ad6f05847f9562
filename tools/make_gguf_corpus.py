#!/usr/bin/env python3
"""Writes the seeds of the GGUF fuzzer: small files of every version and type, right and wrong.

usage: tools/make_gguf_corpus.py [FOLDER]     (tests/fuzz/corpus/gguf)

An input of tests/fuzz/fuzz_gguf.c is two bytes that steer it (even: file size known; chunk sizes)
and a GGUF file. The seeds are named seed_*; other files in the folder were found by the fuzzer."""

import struct
import sys
from pathlib import Path

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q",
           I64: "q", F64: "d"}


class Writer:
    def __init__(self, version):
        self.count = "<I" if version == 1 else "<Q"
        self.version = version

    def number(self, value):
        return struct.pack(self.count, value)

    def text(self, text):
        return self.number(len(text)) + text

    def scalar(self, kind, value):
        return self.text(value) if kind == STRING else struct.pack("<" + FORMATS[kind], value)

    def entry(self, key, kind, value, element=None):
        head = self.text(key) + struct.pack("<I", kind)
        if kind != ARRAY:
            return head + self.scalar(kind, value)
        items = b"".join(self.scalar(element, item) for item in value)
        return head + struct.pack("<I", element) + self.number(len(value)) + items

    def tensor(self, name, extents, kind, offset):
        dims = b"".join(self.number(extent) for extent in extents)
        return self.text(name) + struct.pack("<I", len(extents)) + dims + struct.pack("<IQ", kind,
                                                                                      offset)

    def file(self, entries=(), tensors=(), data=0, alignment=32):
        header = b"GGUF" + struct.pack("<I", self.version)
        header += self.number(len(tensors)) + self.number(len(entries))
        header += b"".join(entries) + b"".join(tensors)
        return header + bytes(-len(header) % alignment + data)


def everything(version):
    """Every scalar type, every array type, tensors of several types and ranks."""
    w = Writer(version)
    entries = [w.entry(b"general.architecture", STRING, b"llama"),
               w.entry(b"general.alignment", U32, 64)]
    entries += [w.entry(b"scalar.%d" % kind, kind, 1) for kind in FORMATS]
    entries += [w.entry(b"array.%d" % kind, ARRAY, [1, 0, 1], kind) for kind in FORMATS]
    entries += [w.entry(b"tokens", ARRAY, [b"a", b"", b"\xe2\x96\x81the", b"x" * 40], STRING),
                w.entry(b"none", ARRAY, [], STRING)]
    tensors = [w.tensor(b"token_embd.weight", [32, 2], 2, 0),   # q4_0, 36 bytes
               w.tensor(b"norm", [3], 0, 64),
               w.tensor(b"scalar", [], 0, 128),
               w.tensor(b"blk.0.k", [256, 1, 1, 1], 12, 192),   # q4_k, 144 bytes
               w.tensor(b"empty", [0], 1, 0)]
    return w.file(entries, tensors, 192 + 144, 64)


def seeds():
    for version in (1, 2, 3):
        good = everything(version)
        yield f"v{version}", good
        yield f"v{version}_cut", good[:len(good) // 2]
        yield f"v{version}_none", Writer(version).file()
        for at in (8, 12 if version == 1 else 16):
            yield f"v{version}_count_{at}", good[:at] + b"\xff" * 4 + good[at + 4:]
    w = Writer(3)
    yield "big_endian", b"GGUF" + struct.pack(">IQQ", 3, 0, 0)
    yield "nested", w.file([w.text(b"k") + struct.pack("<IIQ", ARRAY, ARRAY, 1)])
    yield "key_length", w.file([struct.pack("<Q", 1 << 63)], (), 40)
    yield "array_length", w.file([w.text(b"k") + struct.pack("<IIQ", ARRAY, U64, 1 << 61)])
    yield "string_length", w.file([w.text(b"k") + struct.pack("<IQ", STRING, 1 << 31)])
    yield "alignment", w.file([w.entry(b"general.alignment", U32, 12)])
    yield "twice", w.file([w.entry(b"k", BOOL, True)] * 2)
    yield "overlap", w.file((), [w.tensor(b"a", [9], 0, 0), w.tensor(b"b", [9], 0, 32)], 100)
    yield "beyond", w.file((), [w.tensor(b"a", [9], 0, 1 << 62)], 100)
    yield "removed_type", w.file((), [w.tensor(b"a", [32], 4, 0)], 100)
    yield "extents", w.file((), [w.tensor(b"a", [1 << 40, 1 << 40], 0, 0)], 100)


def main():
    root = Path(__file__).resolve().parent.parent
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else root / "tests/fuzz/corpus/gguf"
    folder.mkdir(parents=True, exist_ok=True)
    for index, (name, data) in enumerate(seeds()):
        (folder / f"seed_{name}").write_bytes(bytes([index % 2, 7 * index % 256]) + data)


main()
