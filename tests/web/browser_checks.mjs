// What both browsers have to show; test_chromium.mjs and test_firefox.mjs say how much of it, for
// drivers that compute on the CPU compile slowly.
import assert from "node:assert/strict";
import test from "node:test";
import { missing, startBrowser } from "./browser.mjs";
import {
  checkAborts, checkAhead, checkFamily, checkModels, checkSessions, checkTokens,
} from "./checks.mjs";
import {
  longOnes, missingFamilies, missingSmol, repeated, serve, smol, stories, withTemplate,
} from "./fixtures.mjs";

/** A page of a browser and its engine: {call, base}, closed with the test. file: of this folder. */
async function openPage(t, kind, options, serverOptions, file = "page.html") {
  const server = await serve(serverOptions);
  t.after(server.close);
  const browser = await startBrowser(kind, options);
  t.after(browser.close);
  const page = await browser.open(`${server.base}tests/web/${file}`);
  return { call: (name, ...given) => page.call(name, ...given), base: server.base };
}

async function checkGenerating(t, { call, base }, options, maxTokens) {
  const opened = await call("open", { math: "exact", strict: true, ...options },
                            base + stories.path);
  await t.test("tensors", async () => assert.equal(await call("multiply", 16), 16 ** 3));
  await t.test("stories260K", () => checkTokens(call, stories, { maxTokens }));
  return opened;
}

/** Without headers of isolation and under the strict policy, as the server has it. */
export function testCpu(kind, reason) {
  test(`${kind} without WebGPU`, { skip: missing(kind) }, async (t) => {
    const { call, base } = await openPage(t, kind, { webgpu: false });
    for (const [where, options, why] of [
      ["in a worker", { worker: true }, reason], ["in the page", { worker: false }, reason],
      ["for the CPU alone", { worker: true, bundle: "cpu" }, /is for the CPU alone/],
    ]) {
      await t.test(where, async (t) => {
        const { device, isWorker, isCrossOriginIsolated } =
          await checkGenerating(t, { call, base }, options, 200);
        assert.equal(device.backend, "cpu");
        assert.match(device.fallbackReason, why);
        assert.equal(isWorker, options.worker);
        assert.equal(isCrossOriginIsolated, false);
        const refused = await call("open", { backend: "webgpu", ...options });
        assert.equal(refused.code, "NO_DEVICE");
        assert.match(refused.message, why);
      });
    }
    await call("open", { backend: "cpu", math: "exact" }, base + stories.path);
    await t.test("generations given up", () => checkAborts(call, repeated(100), 7));
    await t.test("sessions", () => checkSessions(call, repeated(50)));
    await t.test("models", () => checkModels(call, base, repeated(20)));
    await t.test("clients in the forms of other APIs", async () => {
      const template = "{% for m in messages %}{{ m.content }}{% endfor %}";
      const { whole, streamed, prompted } = await call("clients", [...withTemplate(template)]);
      assert.ok(whole.length > 10, whole);
      assert.deepEqual([streamed, prompted], [whole, whole]);
    });
    await t.test("SmolLM2", { skip: missingSmol }, async () => {
      await call("open", { backend: "cpu", math: "exact" }, base + smol.path);
      await checkTokens(call, smol, { maxTokens: 16 });
    });
  });
}

/** checkAdapter(adapter): is it the expected one? gpuOptions: of the engine in the page. */
export function testWebGpu(kind, { checkAdapter, families, gpuOptions, nAborts }) {
  test(`${kind} with WebGPU`, { skip: missing(kind) }, async (t) => {
    const { call, base } = await openPage(t, kind, { webgpu: true });
    await t.test("chooses the CPU before a GPU that is none, and says so", async () => {
      const { device } = await call("open", {});
      assert.equal(device.backend, "cpu");
      assert.match(device.fallbackReason, /computes on the CPU/);
    });
    await t.test("in a worker", async (t) => {
      const { device } = await checkGenerating(t, { call, base }, { backend: "webgpu" }, 32);
      assert.equal(device.backend, "webgpu");
      checkAdapter(device.adapter);
      await t.test("a GPU that runs ahead", () => checkAhead(call, stories));
      await t.test("generations given up", () => checkAborts(call, repeated(nAborts), 3));
      await t.test("sessions", () => checkSessions(call, repeated(15)));
      await t.test("models", () => checkModels(call, base, repeated(8)));
      // In `make test` test_generate has these two, in Node.
      for (const name of missingFamilies ? [] : families)
        await t.test(name, { skip: longOnes }, () => checkFamily(call, base, name));
      await t.test("the GPU is lost on the way", { skip: longOnes }, () =>
        checkTokens(call, stories, { maxTokens: 16, loseAfter: 7 }));
      await t.test("the GPU is lost in a training", { skip: longOnes }, async () => {
        const { losses } = await call("learn", {}), lost = await call("learn", { loseAt: 3 });
        assert.deepEqual(lost, { losses, n: 1 });
        assert.ok(losses[5] < losses[0]);
      });
    });
    await t.test("SmolLM2", { skip: missingSmol ?? longOnes }, async () => {
      await call("open", { backend: "webgpu", math: "exact" }, base + smol.path);
      await checkTokens(call, smol, { maxTokens: 4 });
    });
    // It compiles all kernels once more.
    await t.test("in the page, with less", { skip: longOnes }, (t) =>
      checkGenerating(t, { call, base }, { backend: "webgpu", worker: false, gpuOptions }, 32));
  });
}

/** The page's policy is not that of its workers, which compile and pass the module on. */
export function testStrictPage(kind) {
  test(`${kind}, in a page that may not compile`, { skip: missing(kind) }, async (t) => {
    const { call, base } = await openPage(t, kind, { webgpu: false },
                                          { isIsolated: true, policy: "" }, "strict_page.html");
    const options = { backend: "cpu", threads: 2 };
    const { module, device } = await checkGenerating(t, { call, base }, options, 32);
    assert.deepEqual([module, device.threads], ["threads", 2]);
    const { code } = await call("open", { worker: false, ...options });
    assert.equal(code, "IO");
  });
}

/**
 * In a page that is cross-origin isolated the CPU path has threads, but not in the page itself.
 * mayNest: a worker of the page's may start others.
 */
export function testThreads(kind, { mayNest }) {
  test(`${kind}, isolated`, { skip: missing(kind) }, async (t) => {
    const page = await openPage(t, kind, { webgpu: true }, { isIsolated: true });
    const check = (name, options, maxTokens, module, threads, skip) => t.test(name, { skip }, async (t) => {
      const found = await checkGenerating(t, page, options, maxTokens);
      assert.ok(found.isCrossOriginIsolated);
      assert.deepEqual([found.module, found.device.threads], [module, threads]);
    });
    await check("1 thread", { backend: "cpu", threads: 1 }, 200, "simd", 1);
    await check("in the page", { backend: "cpu", threads: 4, worker: false }, 32, "simd", 1);
    await check("WebGPU beside threads", { backend: "webgpu", threads: 2 }, 8, "threads", 1, longOnes);
    await check("2 threads", { backend: "cpu", threads: 2 }, 200, "threads", 2);
    await check("4 threads", { backend: "cpu", threads: 4 }, 200, "threads", 4);
    await t.test("generations given up", () => checkAborts(page.call, repeated(100), 7));
    await t.test("models", () => checkModels(page.call, page.base, repeated(20)));
    await t.test("engines", async () => {
      for (let i = 0; i < repeated(20); i++) {
        const { device } = await page.call("open", { backend: "cpu", threads: 4 });
        assert.equal(device.threads, 4);
      }
    });
    await t.test("opened in a worker of the page", async (t) => {
      const { base } = page, call = (...given) => page.call("inWorker", ...given);
      const options = { backend: "cpu", threads: 2 };
      const { isWorker, device } = await checkGenerating(t, { call, base }, options, 32);
      assert.deepEqual([isWorker, device.threads], mayNest ? [true, 2] : [false, 1]);
      const { code } = await call("open", { worker: true, ...options });
      assert.equal(code, mayNest ? undefined : "UNSUPPORTED");
    });
  });
}
