// Files of several gigabytes in both browsers: their headers are read, loading them is given up on
// the way and leaves nothing behind, in the module, on the device or, but for what came, in the
// cache.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { browsers, missing, startBrowser } from "./browser.mjs";
import { longOnes, serve } from "./fixtures.mjs";
import { writeLargeModel } from "./large_model.mjs";

const MIB = 2 ** 20;
const CONTEXT = 32; // tokens; the matrices are so wide that many need gigabytes of activations

const NAMES = ["fits.gguf", "too-large.gguf"];

/** A page that has models of 2.2 and 6 GB behind the address `large`. */
async function openPage(t, kind) {
  const folder = mkdtempSync(join(tmpdir(), "wick-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const sizes = [2.2e9, 6e9].map((size, i) => writeLargeModel(join(folder, NAMES[i]), size));
  const server = await serve({ routes: { "/large/": folder } });
  t.after(server.close);
  const browser = await startBrowser(kind, { webgpu: kind === "chromium" });
  t.after(browser.close);
  const page = await browser.open(`${server.base}tests/web/page.html`);
  const call = (name, ...given) => page.call(name, ...given);
  return { call, sizes, large: `${server.base}large/` };
}

async function checkPreflight({ call, sizes, large }) {
  await call("open", { backend: "cpu", threads: 1 });
  for (const [i, isFitting] of [true, false].entries()) {
    const { fits, fileBytes, weightBytes, totalBytes, availableBytes, reason } =
      await call("preflight", large + NAMES[i], CONTEXT);
    assert.equal(fileBytes, sizes[i]);
    assert.ok(weightBytes > sizes[i] - MIB && totalBytes > weightBytes, `${weightBytes} bytes`);
    assert.equal(fits, isFitting, reason);
    assert.equal(totalBytes <= availableBytes, isFitting);
    assert.ok(reason.includes(`${Math.ceil(totalBytes / MIB)} MiB`), reason);
  }
}

/** heapLimit: bytes that the module may have grown to. */
async function checkGivingUp({ call, large }, backend, cache, heapLimit) {
  await call("open", { backend, threads: 1 });
  const bytes = 40 * MIB;
  const { code, after: [first, second], storedSize, isComplete } = await call("giveUp",
    { address: large + NAMES[0], bytes, cache, contextLength: CONTEXT });
  assert.equal(code, "CANCELLED");
  assert.deepEqual(second, first);
  assert.ok(first.heapBytes <= heapLimit, `the heap has ${first.heapBytes} bytes`);
  // What has arrived is stored a little later: what is on its way there when the load ends is lost.
  if (cache) assert.ok(storedSize >= bytes / 2 && !isComplete, `${storedSize} bytes are stored`);
}

for (const kind of browsers)
  test(`${kind}: models of 2.2 and 6 GB`, { skip: missing(kind) }, async (t) => {
    const page = await openPage(t, kind);
    await t.test("preflight", () => checkPreflight(page));
    await t.test("given up", () => checkGivingUp(page, "cpu", false, 4096 * MIB));
    await t.test("given up, through the cache", () => checkGivingUp(page, "cpu", true, 4096 * MIB));
    if (kind === "chromium") // lavapipe takes such memory at once
      await t.test("given up on WebGPU", { skip: longOnes }, () => checkGivingUp(page, "webgpu", false, 128 * MIB));
  });
