// Downloads and the cache in both browsers, over their private file systems and Web Locks: the
// scenarios that test_cache.mjs runs over fakes, and what no fake shows: tabs that are closed, two
// tabs at once, a quota that is used up, a private window.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "../../web/node_modules/esbuild/lib/main.js";
import { startStaticServer } from "../../web/static_server.mjs";
import { browsers, missing, startBrowser } from "./browser.mjs";
import { longOnes, testsAll } from "./fixtures.mjs";
import { startServer } from "./server.mjs";
import { scenarios } from "./source_scenarios.mjs";

/** A folder with the page. */
async function makePage() {
  const folder = mkdtempSync(join(tmpdir(), "wick-"));
  await build({
    entryPoints: [fileURLToPath(new URL("download_cases.mjs", import.meta.url))],
    outfile: join(folder, "page.js"), bundle: true, format: "esm", target: "es2022",
  });
  writeFileSync(join(folder, "index.html"), '<!doctype html><html lang="en">'
    + '<title>Downloads</title><script type="module" src="page.js"></script></html>');
  return folder;
}

const SMALL_QUOTA = 24e6; // bytes

/** A browser with {open, models}: a new tab, and the address of the server of files. */
async function start(t, kind, { prefs = {}, flags = [], hasSmallQuota = false } = {}) {
  const folder = await makePage();
  t.after(() => rmSync(folder, { recursive: true }));
  const server = await startServer();
  t.after(server.close);
  // The files come from another origin.
  const policy = `default-src 'self'; connect-src 'self' ${server.base}`;
  const pages = await startStaticServer({ routes: { "/": folder }, policy });
  t.after(pages.close);
  const fixed = { "dom.quotaManager.temporaryStorage.fixedLimit": SMALL_QUOTA / 1000 }; // KB
  const browser = await startBrowser(kind,
    { webgpu: false, flags, prefs: { ...prefs, ...(hasSmallQuota && fixed) } });
  t.after(browser.close);
  /** Firefox has it by its preference. */
  const limitQuota = async (page) => {
    if (kind !== "chromium" || !hasSmallQuota) return;
    const session = await page.native.context().newCDPSession(page.native);
    await session.send("Storage.overrideQuotaForOrigin",
                       { origin: pages.base, quotaSize: SMALL_QUOTA });
  };
  return { models: server.base, open: () => browser.open(pages.base), limitQuota };
}

const needQuota = ({ needs }) => needs === "exhaust";
/** In `make test` what no browser does otherwise than Node is left to test_cache.mjs. */
const inWorker = ({ name, needs }) =>
  needs !== "exhaust" && (testsAll || !/without the cache$/.test(name));

async function testScenarios(t, { open, models, limitQuota }, where, isWanted) {
  const page = await open();
  await limitQuota(page);
  for (const [index, scenario] of scenarios.entries())
    if (isWanted(scenario))
      await t.test(scenario.name, { timeout: 120_000 },
                   () => page.call(where, "scenario", models, index, SMALL_QUOTA));
  await page.close();
}

let counter = 0;
const SIZE = 400000;

/** A file of its own that comes slowly, and stops at `stalls`; the ranges that were asked for. */
function slowFile(base, stalls = []) {
  const id = `tabs-${counter++}`;
  return {
    url: `${base}/model.gguf?id=${id}&size=${SIZE}&pause=10&stalls=${stalls}`,
    ranges: async () => (await (await fetch(`${base}/log?id=${id}`)).json())
      .filter(({ method }) => method === "GET").map(({ range }) => range ?? "bytes=0-"),
  };
}

/** Closes tabs in the middle of a download, one after the other, until the last one has it all. */
async function testClosedTabs({ open, models }) {
  const sizes = [50000, 100000, 150000]; // that are read; the last 64 KiB that came are held back
  const { url, ranges } = slowFile(models, sizes.map((size) => size + 65536));
  const begins = [0];
  for (const bytes of sizes) {
    const page = await open();
    await page.call("worker", "begin", url, bytes);
    await page.close();
    const next = await open();
    begins.push(await next.call("worker", "stored", url));
    await next.close();
  }
  const last = await open();
  assert.ok(await last.call("worker", "load", url, SIZE));
  assert.deepEqual(await ranges(), begins.map((begin) => `bytes=${begin}-`));
  assert.ok(begins[1] > 0 && begins[2] >= begins[1] && begins[3] > begins[1], String(begins));
  await last.close();
}

async function testTwoTabs({ open, models }) {
  const { url, ranges } = slowFile(models);
  const [first, second] = [await open(), await open()];
  const loads = [first, second].map((page) => page.call("worker", "load", url, SIZE));
  assert.deepEqual(await Promise.all(loads), [true, true]);
  assert.equal((await ranges()).length, 1);
  await first.close();
  await second.close();
}

/** The tab that downloads is closed while another one waits for the same file. */
async function testTakingOver({ open, models }) {
  const { url, ranges } = slowFile(models, [200000]);
  const [first, second] = [await open(), await open()];
  await first.call("worker", "begin", url, 100000);
  const loaded = second.call("worker", "load", url, SIZE);
  await first.close();
  assert.ok(await loaded);
  const [, range] = await ranges();
  assert.ok(Number(/\d+/.exec(range)[0]) >= 65536, range);
  await second.close();
}

/** Scenarios that a page's own thread runs otherwise than a worker. */
const inPage = ({ name, needs }) =>
  needs !== "nothing" && /plain|20 random|closed in the middle|two at once|listed/.test(name);

for (const kind of browsers) {
  const skip = missing(kind);
  test(`${kind}: downloads in a worker`, { skip }, async (t) => {
    const place = await start(t, kind);
    await testScenarios(t, place, "worker", inWorker);
    await t.test("a tab that is closed in the middle", () => testClosedTabs(place));
    await t.test("two tabs at once", () => testTwoTabs(place));
    await t.test("a tab goes on where another one was closed", () => testTakingOver(place));
  });
  test(`${kind}: downloads in the page`, { skip: skip ?? longOnes }, async (t) =>
    testScenarios(t, await start(t, kind), "page", inPage));
  test(`${kind}: quota`, { skip }, async (t) =>
    testScenarios(t, await start(t, kind, { hasSmallQuota: true }), "worker", needQuota));
}

// A write whose handle was collected under way would never end.
if (browsers.includes("chromium")) test("chromium: writes amid collections of garbage",
     { skip: missing("chromium"), timeout: 120_000 }, async (t) => {
  const { open } = await start(t, "chromium", { flags: ["--js-flags=--expose-gc"] });
  const page = await open();
  await page.call("worker", "writeAmidCollections", testsAll ? 1000 : 300);
  await page.close();
});

if (browsers.includes("firefox")) test("firefox: a private window", { skip: missing("firefox") },
                                       async (t) => {
  const place = await start(t, "firefox", { prefs: { "browser.privatebrowsing.autostart": true } });
  const page = await place.open();
  t.diagnostic(`the cache is ${await page.call("worker", "kind")}`);
  await page.close();
  await testScenarios(t, place, "worker", inPage);
});
