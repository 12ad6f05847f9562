// Every operation on tensors and its gradient give what other software gave for the recorded cases,
// on the CPU and on WebGPU, in Node and in Chromium, and refuse what it refused. OPS=add,exp runs
// these alone. What does not answer is ended, and its case is named.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { readFileSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { missing as missingBrowser, startBrowser } from "./browser.mjs";
import { longOnes, serve, testsAll } from "./fixtures.mjs";
import { missing as missingGpu } from "./node_webgpu.mjs";
import { opsFolder, readFixtures } from "./op_fixtures.mjs";

const fixtures = readFixtures();
const noFixtures = fixtures ? undefined : "the recorded cases of shared/data/ops are not here";
const chosen = process.env.OPS?.split(",") ?? [];
/** Software compiles a kernel for seconds: of each operation some cases, and of its gradient; or of
 * every fourth operation, for the native build has them all. */
const PER_OP_ON_GPU = chosen.length > 0 ? Infinity : testsAll ? 2 : 1;
/** Pages compute by the module that Node has all cases with. */
const PER_OP_IN_PAGES = chosen.length > 0 || testsAll ? Infinity : 2;
/** The longest that a case may take, its kernels compiled, on a machine that has much else to do. */
const LIMIT_MS = 180_000;

/** A failure after so long without a beat. */
function watchdog(limitMs, fail) {
  let timer, last = "the start";
  const beat = (what) => {
    clearTimeout(timer);
    last = what;
    timer = setTimeout(() => fail(new Error(`${last} has not ended after ${limitMs / 1000} s: it was `
      + "given up, with all cases after it")), limitMs);
  };
  beat(last);
  return { beat, end: () => clearTimeout(timer) };
}

/** In a process of its own, which can be ended whatever it does. */
function runInNode(backend, perOp, ops, { limitMs = LIMIT_MS, folder = opsFolder } = {}) {
  const child = fork(fileURLToPath(new URL("run_ops.mjs", import.meta.url)),
                     [folder, backend, String(perOp), ...ops]);
  return new Promise((resolve, reject) => {
    const dog = watchdog(limitMs, reject);
    child.on("message", (said) => typeof said === "string" ? dog.beat(said) : resolve(said));
    child.on("exit", (code) => reject(new Error(`the process ended early (${code})`)));
    child.on("exit", dog.end);
  }).finally(() => child.kill("SIGKILL"));
}

/** In a page, one operation after another. */
async function runInChromium(backend, perOp, cases) {
  const server = await serve({ routes: { "/ops/": opsFolder } });
  const browser = await startBrowser("chromium", { webgpu: backend === "webgpu" });
  try {
    const page = await browser.open(`${server.base}tests/web/page.html`);
    const total = { nCases: 0, failures: [] };
    return await new Promise((resolve, reject) => {
      const dog = watchdog(LIMIT_MS * 4, reject);
      (async () => {
        await page.call("open", { backend, math: "exact" });
        for (const op of new Set(cases.map((recorded) => recorded.op))) {
          dog.beat(op);
          const { nCases, failures } =
            await page.call("recordedCases", `${server.base}ops/`, op, perOp, backend === "webgpu");
          total.nCases += nCases;
          total.failures.push(...failures);
        }
        resolve(total);
      })().catch(reject).finally(dog.end);
    });
  } finally {
    await browser.close();
    await server.close();
  }
}

function report(t, { nCases, failures, bytesLeft = 0 }) {
  t.diagnostic(`note: ${nCases - failures.length} of ${nCases} recorded cases`);
  assert.deepEqual(failures, []);
  assert.equal(bytesLeft, 0);
}

test("every operation has a door and is called by a method", () => {
  const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url)).toString();
  const headers = ["ops", "array", "in_place", "nn"].map((name) => read(`include/wick/${name}.h`));
  const declared = [...headers.join().matchAll(/^WICK_API [^(]*?\bwick_(\w+)\(/gm)]
    .map(([, name]) => name)
    .filter((name) => name !== "squeeze") // squeeze_dims is
    .filter((name) => name !== "non_max_suppression"); // it reads and waits
  const doors = read("web/glue/tensors/ops.def");
  const files = ["arrays", "elements", "layers", "maker", "products"];
  const methods = files.map((file) => read(`web/src/tensor_${file}.ts`)).join();
  assert.ok(declared.length > 250);
  for (const name of declared) {
    assert.match(doors, new RegExp(`^(OP|PARTS)\\(${name},`, "m"));
    assert.match(methods, new RegExp(`"${name}"`));
  }
});

test("all cases on the CPU", { skip: noFixtures }, async (t) => {
  const result = await runInNode("cpu", Infinity, chosen);
  if (chosen.length === 0) assert.equal(result.nCases, fixtures.cases.length);
  report(t, result);
});

test("cases of vision, signals and recurrent networks on the CPU", async (t) => {
  const folder = fileURLToPath(new URL("../data/ops", import.meta.url));
  // Without those that read and wait.
  const ops = ["grid_sample", "resize_antialiased", "roi_align", "dft", "lstm", "gru"];
  const result = await runInNode("cpu", Infinity, ops, { folder });
  assert.ok(result.nCases > 50);
  report(t, result);
});

const cases = (fixtures?.cases ?? [])
  .filter(({ op }) => chosen.length === 0 || chosen.includes(op));

test("some cases on WebGPU", { skip: noFixtures ?? missingGpu }, async (t) => {
  const ops = [...new Set(cases.map(({ op }) => op))].filter((_, i) =>
    testsAll || chosen.length > 0 || i % 4 === 0);
  report(t, await runInNode("webgpu", PER_OP_ON_GPU, ops));
});


test("cases on the CPU in Chromium", { skip: noFixtures ?? missingBrowser("chromium") },
     async (t) => {
       const result = await runInChromium("cpu", PER_OP_IN_PAGES, cases);
       if (PER_OP_IN_PAGES === Infinity) assert.equal(result.nCases, cases.length);
       report(t, result);
     });

test("some cases on WebGPU in Chromium",
     { skip: noFixtures ?? missingBrowser("chromium") ?? longOnes }, async (t) => report(t, await runInChromium("webgpu", PER_OP_ON_GPU, cases)));

test("a case that hangs is ended and named", { skip: noFixtures }, async () =>
  assert.rejects(runInNode("cpu", 1, ["hang"], { limitMs: 3000 }), /^Error: hang has not ended after 3 s/));
