// Measures Wick in Chromium, and alternately with it each wllama whose folder is given:
//
//   node bench/web/run.mjs FILE.gguf... [--wllama PATH/@wllama/wllama]... [-t 1,2,0]
//       [-r ROUNDS] [-p WORDS] [-n TOKENS] [--out FILE.md|FILE.json]
//
// Each run has a browser of its own. See bench/README.md.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { brotliCompressSync } from "node:zlib";
import { startStaticServer } from "../../web/static_server.mjs";
import { longPrompt, SHORT_PROMPT } from "./prompts.mjs";
import { markdown } from "./report.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

const { values: options, positionals: models } = parseArgs({
  allowPositionals: true,
  options: {
    wllama: { type: "string", multiple: true, default: [] },
    chromium: { type: "string", default: "/usr/bin/chromium" },
    threads: { type: "string", short: "t", default: `1,${cpus().length}` },
    rounds: { type: "string", short: "r", default: "3" },
    prompt: { type: "string", short: "p", default: "504" },
    tokens: { type: "string", short: "n", default: "64" },
    "gpu-tokens": { type: "string", default: "16" },
    out: { type: "string" },
  },
});

/** Each engine: its name in tables, and where it is on the server and on the disk. */
const wick = { engine: "wick", folder: "/wick/", path: join(root, "web/dist/") };
const others = options.wllama.map((path) => {
  const { version } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  return { engine: `wllama ${version}`, folder: `/wllama-${version}/`, path: join(path, "esm/") };
});

/** 0 stands for Wick on WebGPU. */
const threadCounts = [...new Set(options.threads.split(",").map(Number))];

/** The files that pages have asked for since the last run began. */
const asked = new Set();

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

const sizes = new Map();

/** Bytes by brotli of what was asked for of an engine's scripts and modules. */
function askedBytes(folder) {
  const paths = [...asked].filter((path) =>
    path.startsWith(folder) && /\.(m?js|wasm)$/.test(path));
  for (const path of paths)
    if (!sizes.has(path)) sizes.set(path, brotliCompressSync(readFileSync(path)).length);
  return paths.reduce((sum, path) => sum + sizes.get(path), 0);
}

async function runOnce(server, { path, ...job }) {
  const browser = await openBrowser();
  try {
    const page = await browser.newPage();
    page.on("pageerror", (error) => console.error(`page: ${error.message}`));
    await page.goto(`${server.base}page.html`);
    await page.waitForFunction(() => "measure" in globalThis);
    asked.clear();
    const record = await page.evaluate((given) => globalThis.measure(given), job);
    return { ...record, peakBytes: await peakOfRenderers(browser), engineBytes: askedBytes(path) };
  } finally {
    await browser.close();
  }
}

function jobs() {
  return models.flatMap((file, i) => {
    const name = basename(file), model = `/models/${i}/${encodeURIComponent(name)}`;
    const both = threadCounts.filter((n) => n > 0).flatMap((threads) =>
      [...others, wick].map((engine) => ({
        ...engine, model, name, backend: "cpu", threads, short: SHORT_PROMPT,
        long: longPrompt(Number(options.prompt)), tokens: Number(options.tokens),
      })));
    const gpu = { ...wick, model, name, backend: "webgpu", threads: 0, short: SHORT_PROMPT,
      tokens: Number(options["gpu-tokens"]) };
    return threadCounts.includes(0) ? [...both, gpu] : both;
  });
}

/** Adds each run to the report, and keeps what there is: a run may take long. */
async function runAll(server, report) {
  for (let round = 1; round <= Number(options.rounds); round++) {
    for (const job of jobs()) {
      const { engine, name: model, backend, threads } = job;
      const record = await runOnce(server, job).catch((error) => {
        console.error(`round ${round}: ${model}, ${engine}: ${error.message}\nOnce more:`);
        return runOnce(server, job);
      });
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

async function describe() {
  const loadBefore = loadavg()[0].toFixed(1);
  const browser = await openBrowser();
  const version = browser.version();
  await browser.close();
  const git = ["-C", root, "describe", "--always", "--dirty"];
  return {
    date: new Date().toISOString().slice(0, 10), processor: cpus()[0].model, cores: cpus().length,
    memoryBytes: totalmem(), browser: `Chromium ${version}`,
    wick: execFileSync("git", git, { encoding: "utf8" }).trim(),
    others: others.map(({ engine }) => engine), rounds: 0, loadBefore,
  };
}

async function main() {
  if (models.length === 0) throw new Error("no model is given; see the top of bench/web/run.mjs");
  for (const path of models) if (!existsSync(path)) throw new Error(`there is no file ${path}`);
  const server = await startStaticServer({
    routes: {
      "/": fileURLToPath(new URL(".", import.meta.url)),
      ...Object.fromEntries([...others, wick].map(({ folder, path }) => [folder, path])),
      ...Object.fromEntries(models.map((path, i) => [`/models/${i}/`, dirname(resolve(path))])),
    },
    policy: "", isIsolated: true, onFile: (path) => asked.add(path),
  });
  try {
    const report = { about: await describe(), runs: [] };
    await runAll(server, report);
    console.log(markdown(report));
  } finally {
    await server.close();
  }
}

await main();
