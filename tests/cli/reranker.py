"""A reranker for tests: a model of the fixtures with a classifier."""

import random
import struct
from pathlib import Path

from hf_folder import SIZES, Gguf

N_LABELS, ALIGNMENT, U32, F32, RANK = 2, 32, 4, 0, 4


def text(string):
    data = string.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, given):
    if kind == 8:
        return text(given)
    if kind == 9:
        inner, items = given
        return struct.pack("<IQ", inner, len(items)) + b"".join(value(inner, v) for v in items)
    return struct.pack("<" + SIZES[kind], given)


class Typed(Gguf):
    """Values with their types, as they are written again."""

    def value(self, kind):
        if kind == 9:
            inner, count = self.take("I"), self.take("Q")
            return kind, (inner, [super(Typed, self).value(inner) for _ in range(count)])
        return kind, super().value(kind)


def write_reranker(source, path):
    """source: bert.gguf of the fixtures."""
    gguf, numbers = Typed(source), random.Random(3)
    width = gguf.values["bert.embedding_length"][1]
    values = {**gguf.values, "bert.pooling_type": (U32, RANK)}
    tensors = dict(gguf.tensors)
    for name, shape in (("cls.weight", [width, width]), ("cls.bias", [width]),
                        ("cls.output.weight", [N_LABELS, width]), ("cls.output.bias", [N_LABELS])):
        count = shape[0] * shape[1] if len(shape) == 2 else shape[0]
        data = struct.pack(f"<{count}f", *(numbers.uniform(-0.5, 0.5) for _ in range(count)))
        tensors[name] = (shape, F32, data)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    for key, (kind, given) in values.items():
        header += text(key) + struct.pack("<I", kind) + value(kind, given)
    body = b""
    for name, (shape, kind, data) in tensors.items():
        header += text(name) + struct.pack("<I", len(shape))
        header += b"".join(struct.pack("<Q", extent) for extent in reversed(shape))
        header += struct.pack("<IQ", kind, len(body))
        body += data + bytes(-len(data) % ALIGNMENT)
    Path(path).write_bytes(header + bytes(-len(header) % ALIGNMENT) + body)
