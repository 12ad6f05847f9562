"""all-MiniLM-L6-v2 as people have it: the folder through wick convert, texts through wick embed;
the vectors are those of transformers."""

import json
import os
import sys
import tempfile
from pathlib import Path

from command import equal, main, succeeds

SHARED = os.environ.get("WICK_SHARED_DATA")
FOLDER = Path(os.environ.get("WICK_MODELS", "models")) / "all-MiniLM-L6-v2"
MOST = 1e-4  # of the largest difference of a number


def test_all_minilm():
    if not SHARED:
        return "WICK_SHARED_DATA is not set"
    if not (FOLDER / "model.safetensors").is_file():
        return "all-MiniLM-L6-v2 was not fetched (make models)"
    items = json.loads(Path(SHARED, "real/all-minilm-l6-v2.json").read_text())["items"]
    with tempfile.TemporaryDirectory() as top:
        succeeds("convert", FOLDER, f"{top}/minilm.gguf")
        out = succeeds("embed", f"{top}/minilm.gguf", *[item["text"] for item in items])
        for item in items:
            ids = succeeds("tokenize", f"{top}/minilm.gguf", "--ids", item["text"])
            equal([int(word) for word in ids.split()], item["tokens"])
    got = [json.loads(line)["embedding"] for line in out.splitlines()]
    equal(len(got), len(items))
    for vector, item in zip(got, items):
        far = max(abs(a - b) for a, b in zip(vector, item["embedding"], strict=True))
        assert far <= MOST, (item["text"], far)
    return None


if __name__ == "__main__":
    sys.exit(main(globals()))
