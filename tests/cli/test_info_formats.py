"""wick info of safetensors and .npy files."""

import json
import struct
import sys
import tempfile
from pathlib import Path

from command import equal, fails, main, strict_json, succeeds

HEADER = {"__metadata__": {"format": "pt"},
          "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
          "b.weight": {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]}}


def safetensors(header, n_bytes):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(n_bytes)


def npy(shape="(5, 2)", n_bytes=40):
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % shape).encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(n_bytes)


def test_formats():
    with tempfile.TemporaryDirectory() as folder:
        cases = [("m.safetensors", safetensors(HEADER, 32), "safetensors", 10,
                  [("a", "f32", [2, 3]), ("b.weight", "bf16", [4])]),
                 ("m.npy", npy(), "npy", 10, [("", "f32", [5, 2])])]
        for name, content, kind, n, tensors in cases:
            path = Path(folder, name)
            path.write_bytes(content)
            known = strict_json(succeeds("info", path, "--json", "--tensors"))
            equal((known["format"], known["n_parameters"], known["file_bytes"]),
                  (kind, n, len(content)))
            equal([(t["name"], t["type"], t["shape"]) for t in known["tensors"]], tensors)
            equal(known["tensor_types"]["f32"]["count"], 1)
            assert "wick convert" in known["predicted_memory"]["error"]
            text = succeeds("info", path).decode()
            assert f"({kind}, " in text and "metadata" not in text, text
            for tensor in tensors:
                assert tensor[0] in succeeds("info", path, "--tensors").decode()


def test_damaged_files():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m")
        for content in (safetensors(HEADER, 31), npy()[:-1], b"\x93NUMPY", b"nothing", b"",
                        struct.pack("<Q", 1 << 60) + b"{}", b"GGUF"):
            path.write_bytes(content)
            fails(1, str(path), arguments=["info", path])


if __name__ == "__main__":
    sys.exit(main(globals()))
