"""What commands say to do: where memory does not suffice, and where a word is misspelt."""

import json
import os
import re
import sys

from command import MODEL, equal, fails, main, succeeds, wick

REAL = os.environ.get("WICK_REAL_MODEL", "")


def refused(model, context, *more):
    done = wick("run", model, "-p", "a", "--backend", "cpu", "-c", context, *more)
    said = done.stderr.decode()
    equal(done.returncode, 1)
    assert re.search(r"context of \d+ tokens: [\d.]+ [MGTP]iB needed, [\d.]+ [MG]iB available; ",
                     said), said
    return said


def test_context_that_cannot_fit():
    said = refused(MODEL, 2000000000)
    assert "a context of 512 tokens fits" in said, said  # all that the model was made for


def test_smaller_cache_that_fits():
    if not os.path.exists(REAL):
        return "no model whose cache can be smaller: WICK_REAL_MODEL"
    context = 4096
    forecast = json.loads(succeeds("info", REAL, "--json", "--context", context, "--math",
                                   "fast"))["predicted_memory"]
    per_token = forecast["cache_bytes"] / context
    there = forecast["available_bytes"]
    # f16 needs 1.4 times what is there, q8_0 0.74 times, q4_0 0.4 times.
    assert "with --cache q8_0 it fits" in refused(REAL, int(1.4 * there / per_token))
    assert "with --cache q4_0 it fits" in refused(REAL, int(2.4 * there / per_token))
    assert "a context of" in refused(REAL, int(9 * there / per_token)).split(";")[1]
    return None


if __name__ == "__main__":
    sys.exit(main(globals()))
