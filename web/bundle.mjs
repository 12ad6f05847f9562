// usage: node bundle.mjs MODULE.wasm...
// Makes web/dist of web/src: minified ES modules with their maps apart, types, and the modules of
// WebAssembly beside them; once with WebGPU, and once without, in files called cpu.
// tests/web/test_package.mjs says how large they are.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** What a page or a worker loads: dist/NAME.js, of src/FILE.ts. */
const ENTRIES = {
  "wick": "wick", "worker": "worker", "threads-worker": "threads-worker",
  "service-worker": "service-worker",
};
/** What needs nothing of an engine but calls of its objects: one file for both. */
const CLIENTS = { "openai": "openai", "prompt-api": "prompt-api" };
const CPU_ENTRIES = {
  "cpu": "wick", "cpu-worker": "worker", "cpu-threads-worker": "threads-worker",
  "cpu-service-worker": "service-worker",
};
/** Files of src that the bundle for the CPU alone has others for. */
const CPU_FILES = {
  "gpu": "no_gpu", "find_gpu": "no_gpu", "module_files": "module_files_cpu",
  "engine_worker": "engine_worker_cpu", "thread_worker": "thread_worker_cpu",
};

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
execFileSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "--project", here,
  "--emitDeclarationOnly"], { stdio: "inherit" });

const forCpu = {
  name: "cpu",
  setup({ onResolve }) {
    onResolve({ filter: new RegExp(`^\\./(${Object.keys(CPU_FILES).join("|")})\\.js$`) },
      ({ path }) => ({ path: join(here, "src", `${CPU_FILES[basename(path, ".js")]}.ts`) }));
  },
};

const bundle = (entries, chunk, plugins) => build({
  entryPoints: Object.entries(entries)
    .map(([name, file]) => ({ out: name, in: join(here, "src", `${file}.ts`) })),
  outdir: dist,
  bundle: true,
  // What both need is a file of its own, and the engine is loaded where it runs.
  splitting: true,
  chunkNames: `${chunk}-[hash]`,
  format: "esm",
  target: "es2022",
  // Node's own modules stay imports: only Node comes to them.
  external: ["node:*"],
  minify: true,
  sourcemap: "linked",
  legalComments: "none",
  logLevel: "warning",
  plugins,
});
await bundle(ENTRIES, "[name]", []);
await bundle(CLIENTS, "client-[name]", []);
await bundle(CPU_ENTRIES, "cpu-[name]", [forCpu]);
copyFileSync(join(here, "../LICENSE"), join(here, "LICENSE")); // npm packs it
for (const module of process.argv.slice(2)) copyFileSync(module, join(dist, basename(module)));
