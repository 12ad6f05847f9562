// Where pages run the package otherwise than beside its files: in a service worker, from another
// origin, in a sandboxed frame; and what loading does there that a page notices.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { startStaticServer } from "../../web/static_server.mjs";
import { browsers, missing, startBrowser } from "./browser.mjs";
import { serve, stories } from "./fixtures.mjs";
import { writeLargeModel } from "./large_model.mjs";

const dist = fileURLToPath(new URL("../../web/dist", import.meta.url));
const MIB = 2 ** 20;

/** One browser for all, a server of the package and the pages, and another origin with dist. */
async function start(t, kind) {
  const folder = mkdtempSync(join(tmpdir(), "wick-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeLargeModel(join(folder, "large.gguf"), 6e9);
  const browser = await startBrowser(kind, { webgpu: false });
  t.after(browser.close);
  const cdn = await startStaticServer({ routes: { "/": dist } });
  t.after(cdn.close);
  const open = async (t, policy, page = "page.html") => {
    const server = await serve({ routes: { "/large/": folder }, policy });
    t.after(server.close);
    const opened = await browser.open(`${server.base}tests/web/${page}`);
    return { call: (name, ...given) => opened.call(name, ...given), native: opened.native,
             beforeScripts: opened.beforeScripts, base: server.base };
  };
  return { open, cdn: cdn.base, folder };
}

const policyOf = (more, workers) => `default-src 'self'; script-src 'self' 'wasm-unsafe-eval' `
  + `${more}; connect-src 'self' ${more}; worker-src 'self' ${workers}`;

async function checkTokens({ call }) {
  const { tokens } = await call("generate", { prompt: stories.prompt, maxTokens: 20 });
  assert.deepEqual(tokens, stories.tokens.slice(0, 20));
}

/** Engines that are opened one after the other share the addresses of their workers' scripts. */
async function checkAddresses(page, cdn) {
  await page.native.evaluate(() => {
    const { createObjectURL } = URL;
    globalThis.nAddresses = 0;
    URL.createObjectURL = (blob) => {
      globalThis.nAddresses++;
      return createObjectURL.call(URL, blob);
    };
  });
  await page.call("open", { dist: cdn, backend: "cpu" });
  assert.equal(await page.native.evaluate(() => globalThis.nAddresses), 0);
}

/** The page of docs/web.md, in a folder as it says. */
async function writeDocumentedPage(folder) {
  const docs = readFileSync(new URL("../../docs/web.md", import.meta.url), "utf8");
  const [, page] = /```html\n(.*?)```/s.exec(docs);
  cpSync(dist, join(folder, "libwick"), { recursive: true });
  cpSync(fileURLToPath(new URL(`../../${stories.path}`, import.meta.url)),
         join(folder, "model.gguf"));
  // The small model has no template for conversations.
  const text = page.replace(/session\.chat\(.*\)\)/, 'session.generate("Once"))');
  assert.notEqual(text, page);
  writeFileSync(join(folder, "index.html"), text);
}

for (const kind of browsers) test(`${kind}: hosts`, { skip: missing(kind) }, async (t) => {
  const { open, cdn } = await start(t, kind);
  const exact = { backend: "cpu", math: "exact" };

  await t.test("the page of docs/web.md", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "wick-"));
    t.after(() => rmSync(folder, { recursive: true }));
    await writeDocumentedPage(folder);
    const server = await startStaticServer({ routes: { "/": folder }, policy: "" });
    t.after(server.close);
    const { native } = await open(t);
    await native.goto(server.base);
    const textOf = async (id) => (await native.waitForFunction(
      `document.getElementById("${id}").textContent`)).jsonValue();
    assert.match(await textOf("state"), / on the cpu$/);
    assert.match(await textOf("answer"), /\w/);
  });

  await t.test("a service worker", async (t) => {
    const { call, base } = await open(t);
    const { prompt, tokens } = stories;
    const both = await call("inServiceWorker",
                            { address: base + stories.path, prompt, maxTokens: 20 });
    assert.deepEqual(both, [tokens.slice(0, 20), tokens.slice(0, 20)]);
  });

  for (const [where, workers, isWorker] of [
    ["has a worker where the policy lets it", `blob: ${cdn}`, true],
    ["runs in the page where it does not, and says so", "", false],
  ])
    await t.test(`the package of another origin ${where}`, async (t) => {
      const page = await open(t, policyOf(cdn, workers));
      const found = await page.call("open", { dist: cdn, ...exact }, page.base + stories.path);
      assert.equal(found.isWorker, isWorker, found.message ?? found.warnings.join());
      assert.equal(found.warnings.length, isWorker ? 0 : 1);
      if (!isWorker) assert.match(found.warnings[0], /^the engine runs in the page's own thread: /);
      await checkTokens(page);
      if (isWorker) return void await checkAddresses(page, cdn);
      const { code } = await page.call("open", { dist: cdn, worker: true, ...exact });
      assert.equal(code, "IO");
    });

  await t.test("a sandboxed frame", async (t) => {
    const anywhere = "http://localhost:*";
    const server = await serve({ policy: policyOf(anywhere, `data: ${anywhere}`) });
    t.after(server.close);
    const { native } = await open(t);
    await native.goto(`${server.base}tests/web/sandboxed.html`);
    const frame = native.frames().at(-1);
    await frame.waitForFunction(() => globalThis.cases !== undefined);
    const call = (name, ...given) => frame.evaluate((c) => globalThis.cases[c.name](...c.given),
                                                    { name, given });
    const found = await call("open", exact);
    assert.deepEqual([found.isWorker, found.cache], [true, "memory"], found.warnings?.join());
    for (const nth of [1, 2]) {
      const { failure, phases } = await call("load", server.base + stories.path);
      assert.equal(failure, undefined);
      assert.equal(phases.includes("verify"), nth === 2, phases.join()); // as it was remembered
    }
  });

  await t.test("files that are not there", async (t) => {
    const { call, base } = await open(t);
    const baseUrl = `${base}tests/`;
    for (const worker of [true, false]) {
      const { code, message } = await call("open", { baseUrl, worker, ...exact });
      assert.equal(code, "IO");
      const file = baseUrl + (worker ? "worker.js" : "wick.wasm");
      assert.ok(message.startsWith(`${file} does not load: `)
        && message.includes("esbuild") && message.includes("'baseUrl'"), message);
    }
  });

  await t.test("a model that does not fit is refused from its header", async (t) => {
    const { call, base } = await open(t);
    const address = `${base}large/large.gguf`;
    const session = { contextLength: 32 };
    for (const worker of [true, false]) {
      const { device } = await call("open", { worker, ...exact, memoryLimit: 1024 * MIB });
      assert.equal(device.memoryTotal, 1024 * MIB);
      const { failure, mostDone } = await call("load", address, { cache: false, session });
      assert.equal(failure.code, "OUT_OF_MEMORY", failure.message);
      assert.match(failure.message, /^the model needs [\d.]+ GiB .* choose a smaller model/);
      assert.ok(failure.bytesRequested > 5.9e9 && failure.bytesAvailable < 1024 * MIB);
      assert.ok(mostDone < 64 * MIB, `${mostDone} bytes`);
      const { fits, totalBytes, availableBytes } = await call("preflight", address, 32);
      assert.deepEqual([fits, totalBytes], [false, failure.bytesRequested]);
      assert.ok(Math.abs(availableBytes - failure.bytesAvailable) < 16 * MIB);
      const small = await call("load", base + stories.path, { cache: false });
      assert.equal(small.failure, undefined);
      assert.equal(small.phases[0], "connect");
    }
  });

  await t.test("what a phone promises, and what is tried all the same", async (t) => {
    const page = await open(t);
    await page.beforeScripts(() => {
      Object.defineProperty(navigator, "deviceMemory", { value: 4 });
      Object.defineProperty(navigator, "userAgentData", { value: { mobile: true } });
    });
    await page.native.reload();
    await page.native.waitForFunction(() => globalThis.cases !== undefined);
    const { device } = await page.call("open", exact);
    assert.equal(device.memoryTotal, 1024 * MIB);
    await page.call("open", { memoryLimit: 1, ...exact });
    const address = page.base + stories.path;
    const { failure } = await page.call("load", address);
    assert.equal(failure.code, "OUT_OF_MEMORY");
    assert.equal((await page.call("load", address, { force: true })).failure, undefined);
  });

  await t.test("a fetch of the page's own, also for an engine in a worker", async (t) => {
    const { call, base } = await open(t);
    for (const worker of [true, false]) {
      await call("open", { worker, ...exact });
      const own = { isFetching: true, cache: false, headers: { "x-own": "1" } };
      const lost = await call("load", base + stories.path, { ...own, hasNoAnswer: true });
      assert.equal(lost.failure.code, "IO"); // and the engine goes on
      const { failure, asked } = await call("load", base + stories.path, own);
      assert.equal(failure, undefined);
      assert.deepEqual(asked, ["bytes=0-"]);
      const refused = await call("load", base + stories.path, { headers: { "no name": "1" } });
      assert.equal(refused.failure.code, "VALUE");
    }
  });
});
