// SHA-256 against Node's.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { load } from "./built.mjs";
import { fileBytes } from "./file_bytes.mjs";

const { Sha256, sha256 } = await load("sha256");

const expected = (bytes) => createHash("sha256").update(bytes).digest("hex");

test("every length around blocks, in one piece and in two", async () => {
  for (let size = 0; size < 200; size++) {
    const bytes = fileBytes(size + 3).subarray(3); // not aligned
    assert.equal(new Sha256().add(bytes).digest(), expected(bytes));
    for (const cut of [0, 1, size >> 1, size])
      assert.equal(new Sha256().add(bytes.subarray(0, cut)).add(bytes.subarray(cut)).digest(),
                   expected(bytes));
    assert.equal(await sha256(bytes.slice()), expected(bytes));
  }
});

test("a hash goes on after digest, and from a stored state", () => {
  const bytes = fileBytes(1000);
  const hash = new Sha256().add(bytes.subarray(0, 640));
  assert.equal(hash.digest(), expected(bytes.subarray(0, 640)));
  const resumed = Sha256.resume(hash.suspend(), hash.size);
  assert.equal(resumed.add(bytes.subarray(640)).digest(), expected(bytes));
  assert.equal(hash.add(bytes.subarray(640)).digest(), expected(bytes));
  assert.throws(() => hash.suspend(), RangeError);
});

test("a length that takes more than 32 bits", () => {
  const state = new Sha256().add(new Uint8Array(64)).suspend();
  const size = 2 ** 33;
  assert.notEqual(Sha256.resume(state, size).digest(), Sha256.resume(state, 64).digest());
  assert.equal(Sha256.resume(state, size).size, size);
});
