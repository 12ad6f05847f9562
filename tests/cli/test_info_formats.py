"""wick info of safetensors, .npy, .npz and PyTorch files."""

import io
import json
import struct
import sys
import tempfile
import zipfile
from pathlib import Path

from command import equal, fails, main, strict_json, succeeds
from hf_folder import FIXTURES, SHARED, change, take_apart

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


def npz():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", npy())
        archive.writestr("b/c.npy", npy("(3,)", 12))
    return content.getvalue()


def torch():
    """A dict of one tensor [2, 3], as torch.save writes it, without a memo."""
    storage = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\x000X\3\0\0\0cpuK\6tQ"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\2}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n("
                         + storage + b"K\0(K\2K\3t(K\3K\1t\x89ccollections\nOrderedDict\n)RtRs.")
        archive.writestr("m/data/0", bytes(24))
    return content.getvalue()


def test_formats():
    with tempfile.TemporaryDirectory() as folder:
        cases = [("m.safetensors", safetensors(HEADER, 32), "safetensors", 10,
                  [("a", "f32", [2, 3]), ("b.weight", "bf16", [4])]),
                 ("m.npy", npy(), "npy", 10, [("", "f32", [5, 2])]),
                 ("m.npz", npz(), "npz", 13, [("a", "f32", [5, 2]), ("b/c", "f32", [3])]),
                 ("m.pt", torch(), "PyTorch", 6, [("w", "f32", [2, 3])])]
        for name, content, kind, n, tensors in cases:
            path = Path(folder, name)
            path.write_bytes(content)
            known = strict_json(succeeds("info", path, "--json", "--tensors"))
            equal((known["format"], known["n_parameters"], known["file_bytes"]),
                  (kind, n, len(content)))
            equal([(t["name"], t["type"], t["shape"]) for t in known["tensors"]], tensors)
            equal(known["tensor_types"]["f32"]["count"], sum(t[1] == "f32" for t in tensors))
            assert "wick convert" in known["predicted_memory"]["error"]
            text = succeeds("info", path).decode()
            assert f"({kind}, " in text and "metadata" not in text, text
            for tensor in tensors:
                assert tensor[0] in succeeds("info", path, "--tensors").decode()
        path.write_bytes(npy("(0,)", 0))
        text = succeeds("info", path).decode()
        assert " 0.0 %" in text and "nan" not in text.replace(str(path), ""), text


def test_damaged_files():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m")
        for content in (safetensors(HEADER, 31), npy()[:-1], b"\x93NUMPY", b"nothing", b"",
                        struct.pack("<Q", 1 << 60) + b"{}", b"GGUF"):
            path.write_bytes(content)
            fails(1, str(path), arguments=["info", path])


def test_files_of_other_kinds():
    """A text is not taken for a safetensors file with a long header."""
    with tempfile.TemporaryDirectory() as folder:
        path, sound = Path(folder, "notes.txt"), Path(folder, "m.safetensors")
        sound.write_bytes(safetensors(HEADER, 32))
        for content in (b"", b"a", b"eight by", b"Once upon a time", b'{"a": {"b": 1}}',
                        b'{"abcd":{"long": "enough"}}', bytes(100), b"GG"):
            path.write_bytes(content)
            said = "not a GGUF, safetensors, .npy, .npz or PyTorch (.pt) file\n"
            fails(1, said, arguments=["info", path])
            fails(1, said.strip(), arguments=["compare", sound, path])
        path.write_bytes(sound.read_bytes()[:-33])
        fails(1, "byte 0: a header of", arguments=["info", path])


def test_checkpoint():
    """The folder of a checkpoint: what 'wick convert' makes of it, without making it."""
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    with tempfile.TemporaryDirectory() as top:
        tiny, out = Path(top, "tiny"), Path(top, "out.gguf")
        take_apart(FIXTURES[0], tiny)
        text = succeeds("info", tiny).decode()
        for words in ("tiny (llama): ", "'wick convert' makes one of it: GGUF, ",
                      "tokenizer     byte-level BPE, ", " layers, made for 128 tokens"):
            assert words in text, text
        shown = strict_json(succeeds("info", tiny, "--json", "--tensors"))
        succeeds("convert", tiny, out)
        made = strict_json(succeeds("info", out, "--json", "--tensors"))
        equal((shown.pop("format"), shown.pop("path")), ("checkpoint", str(tiny)))
        for file in (shown, made):
            file["predicted_memory"].pop("available_bytes", None)
        equal(shown, {key: value for key, value in made.items() if key not in ("format", "path")})
        for command in ("run", "chat", "tokenize"):
            fails(1, "checkpoint of Hugging Face: 'wick convert' makes a GGUF",
                  arguments=[command, tiny, *(["-p"] if command != "tokenize" else []), "a"])
        change(tiny / "config.json", lambda c: c.update(model_type="frog"))
        fails(1, "'frog' cannot be converted", arguments=["info", tiny])
        (tiny / "config.json").unlink()
        for command in (["info", tiny], ["run", tiny, "-p", "a"]):
            fails(1, str(tiny), "is a directory", arguments=command)
    return None


if __name__ == "__main__":
    sys.exit(main(globals()))
