// Measures Wick in Chromium, and by turns with it each wllama whose folder is given:
//
//   node bench/web/run.mjs FILE.gguf... [--wllama PATH/@wllama/wllama]... [-t 1,2,0]
//       [-r ROUNDS] [-n TOKENS] [--out FILE.md|FILE.json]
//
// Each run has a page, and so a process, of its own in the same browser. See bench/README.md.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { LONG_PROMPT, SHORT_PROMPT } from "./prompts.mjs";
import { markdown } from "./report.mjs";
import { openServer } from "./server.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

const { values: options, positionals: models } = parseArgs({
  allowPositionals: true,
  options: {
    wllama: { type: "string", multiple: true, default: [] },
    chromium: { type: "string", default: "/usr/bin/chromium" },
    threads: { type: "string", short: "t", default: `1,${cpus().length}` },
    rounds: { type: "string", short: "r", default: "3" },
    tokens: { type: "string", short: "n", default: "64" },
    "gpu-tokens": { type: "string", default: "16" },
    out: { type: "string" },
  },
});

/** Each wllama: its name in tables, and where it is on the disk and on the server. */
const others = options.wllama.map((path) => {
  const { version } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  return { engine: `wllama ${version}`, path: join(path, "esm/"), folder: `/wllama-${version}/` };
});

/** 0 stands for Wick on WebGPU. */
const threadCounts = [...new Set(options.threads.split(",").map(Number))];

async function openBrowser() {
  const { chromium } = await import("../../tests/web/node_modules/playwright-core/index.mjs");
  return chromium.launch({
    executablePath: options.chromium,
    args: ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"],
  });
}

/** The most memory that a process of a page has held, in bytes; undefined where /proc is not. */
async function peakOfRenderers(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  const peaks = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => {
    try {
      const [, kib] = readFileSync(`/proc/${id}/status`, "utf8").match(/VmHWM:\s+(\d+) kB/);
      return Number(kib) * 1024;
    } catch {
      return 0;
    }
  });
  return Math.max(...peaks) || undefined;
}

async function runOnce(browser, server, job) {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    page.on("pageerror", (error) => console.error(`page: ${error.message}`));
    await page.goto(`${server.address}/page.html`);
    await page.waitForFunction(() => "measure" in globalThis);
    server.downloaded(job.folder);
    const record = await page.evaluate((given) => globalThis.measure(given), job);
    return {
      ...record,
      peakBytes: await peakOfRenderers(browser),
      engineBytes: server.downloaded(job.folder),
    };
  } finally {
    await context.close();
  }
}

function jobs() {
  const wick = { engine: "wick", folder: "/wick/" };
  return models.flatMap((path, i) => {
    const model = `/models/${i}.gguf`, name = basename(path);
    const both = threadCounts.filter((n) => n > 0).flatMap((threads) =>
      [...others, wick].map(({ engine, folder }) => ({
        engine, folder, model, name, backend: "cpu", threads, short: SHORT_PROMPT,
        long: LONG_PROMPT, tokens: Number(options.tokens),
      })));
    const gpu = { ...wick, model, name, backend: "webgpu", threads: 0, short: SHORT_PROMPT,
      tokens: Number(options["gpu-tokens"]) };
    return threadCounts.includes(0) ? [...both, gpu] : both;
  });
}

/** Adds each run to the report, and keeps what there is: a run may take long. */
async function runAll(browser, server, report) {
  for (let round = 1; round <= Number(options.rounds); round++) {
    for (const job of jobs()) {
      const { engine, name: model, backend, threads } = job;
      const record = await runOnce(browser, server, job);
      report.runs.push({ engine, model, backend, threads, ...record });
      report.about.rounds = round;
      save(report);
      console.error(`round ${round}: ${model}, ${engine}, ${backend}, threads ${threads}: prefill `
        + `${record.prefillTokensPerSecond?.toFixed(1)}, decode `
        + `${record.decodeTokensPerSecond.toFixed(1)} tokens/s`);
    }
  }
}

function save(report) {
  if (!options.out) return;
  const isJson = options.out.endsWith(".json");
  writeFileSync(options.out, isJson ? `${JSON.stringify(report, null, 1)}\n` : markdown(report));
}

function describe(browser, load) {
  const git = ["-C", root, "describe", "--always", "--dirty"];
  return {
    date: new Date().toISOString().slice(0, 10), processor: cpus()[0].model, cores: cpus().length,
    memoryBytes: totalmem(), browser: `Chromium ${browser.version()}`,
    wick: execFileSync("git", git, { encoding: "utf8" }).trim(),
    others: others.map(({ engine }) => engine), rounds: 0, loadBefore: load,
  };
}

async function main() {
  if (models.length === 0) throw new Error("no model is given; see the top of bench/web/run.mjs");
  const load = loadavg()[0].toFixed(1);
  const server = await openServer({
    "/wick/": join(root, "web/dist/"),
    ...Object.fromEntries(others.map(({ folder, path }) => [folder, path])),
    ...Object.fromEntries(models.map((path, i) => [`/models/${i}.gguf`, path])),
    "/": fileURLToPath(new URL(".", import.meta.url)),
  });
  const browser = await openBrowser();
  try {
    const report = { about: describe(browser, load), runs: [] };
    await runAll(browser, server, report);
    console.log(markdown(report));
  } finally {
    await browser.close();
    await server.close();
  }
}

await main();
