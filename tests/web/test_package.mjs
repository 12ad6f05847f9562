// The package's files: the version is the library's, the engine is small, and what npm packs can
// be installed, imported and compiled against.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { brotliCompressSync } from "node:zlib";
import { build } from "../../web/node_modules/esbuild/lib/main.js";
import { longOnes } from "./fixtures.mjs";

const web = fileURLToPath(new URL("../../web", import.meta.url));
const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url));

test("the version is that of wick/base.h", () => {
  const header = read("include/wick/base.h").toString();
  const version = ["MAJOR", "MINOR", "PATCH"].map(
    (part) => header.match(`define WICK_VERSION_${part} (\\d+)`)[1]).join(".");
  assert.equal(JSON.parse(read("web/package.json")).version, version);
  assert.equal(JSON.parse(read("web/package-lock.json")).version, version);
});

const MODULES = ["wick", "wick-cpu"].flatMap((name) => ["", "-api", "-tensors"].flatMap((kind) =>
  ["", "-threads"].map((form) => `${name}${kind}${form}.wasm`)));

const WITH_CLIENTS = /^(?!cpu).*\.js$/;
/** Without those that only pages load which import them. */
const ENGINE = /^(?!cpu|openai|prompt-api).*\.js$/;

/** The most that an engine may have by brotli: its module without threads, and all its scripts. */
const ENGINES = [
  { module: "wick.wasm", isScript: ENGINE, limit: 400_000 },
  { module: "wick-api.wasm", isScript: WITH_CLIENTS, limit: 440_000 },
  { module: "wick-cpu.wasm", isScript: /^cpu.*\.js$/, limit: 345_000 },
  { module: "wick-tensors.wasm", isScript: ENGINE, limit: 526_000 },
  { module: "wick-cpu-tensors.wasm", isScript: /^cpu.*\.js$/, limit: 454_000 },
];

/** Bytes of a file of dist by brotli, which takes seconds. */
const sizes = new Map();
function size(name) {
  if (!sizes.has(name)) sizes.set(name, brotliCompressSync(read(`web/dist/${name}`)).length);
  return sizes.get(name);
}

for (const { module, isScript, limit } of ENGINES) {
  // Parts of the others.
  const options = { skip: module.startsWith("wick-cpu") && longOnes };
  test(`the engine with ${module} is within ${limit} bytes by brotli`, options, (t) => {
    const ofModule = size(module);
    const scripts = readdirSync(join(web, "dist")).filter((name) => isScript.test(name));
    const total = scripts.reduce((sum, name) => sum + size(name), ofModule);
    t.diagnostic(`note: the engine is ${total} bytes by brotli, ${ofModule} of them ${module}`);
    assert.ok(total <= limit, `${total} bytes`);
  });
}

test("the modules for text have no doors to tensors or APIs", async () => {
  const doors = async (name) => WebAssembly.Module.exports(
    await WebAssembly.compile(read(`web/dist/${name}.wasm`))).map((door) => door.name);
  for (const name of ["wick", "wick-cpu"])
    for (const threads of ["", "-threads"]) {
      const text = await doors(`${name}${threads}`), all = await doors(`${name}-tensors${threads}`);
      const api = await doors(`${name}-api${threads}`);
      for (const more of [all, api])
        assert.deepEqual(text.filter((door) => !more.includes(door)), []);
      assert.deepEqual(api.filter((door) => !text.includes(door)
        && !/^(api|exchange)_|^embedder_start_pairs$/.test(door)), []);
      assert.ok(api.includes("exchange_open") && !text.includes("exchange_open"));
      for (const door of ["op", "kernel_make", "verify_start"])
        assert.deepEqual([text, all].map((list) => list.includes(door)), [false, true], door);
    }
});

test("bundlers find its files by addresses, and no module that only Node has", () => {
  const dist = join(web, "dist");
  const scripts = readdirSync(dist).filter((name) => name.endsWith(".js"))
    .map((name) => readFileSync(join(dist, name), "utf8")).join();
  for (const name of ["worker.js", "threads-worker.js", "cpu-worker.js", "cpu-threads-worker.js"])
    assert.ok(scripts.includes(`new Worker(new URL("./${name}",import.meta.url),{type:"module"})`));
  for (const name of MODULES)
    assert.ok(scripts.includes(`new URL("./${name}",import.meta.url)`), name);
  assert.doesNotMatch(scripts, /(from|import)\(?"[^.]/);
});

const run = (folder, program, ...args) =>
  execFileSync(program, args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

/** The workers that a file of dist begins, or a file that it imports: bundlers build each anew. */
function workersOf(name, seen = new Set()) {
  if (seen.has(name)) return [];
  seen.add(name);
  const text = read(`web/dist/${name}`).toString();
  const imported = [...text.matchAll(/(?:from|import\(?)\s*"\.\/([\w-]+\.js)"/g)];
  const begun = [...text.matchAll(/new Worker\(new URL\("\.\/([\w-]+\.js)"/g)];
  return [...begun.map(([, file]) => file),
          ...imported.flatMap(([, file]) => workersOf(file, seen))];
}

test("only pages begin workers: in a worker Vite refuses circles, and Firefox hangs", () => {
  for (const [entry, worker, thread] of [
    ["wick.js", "worker.js", "threads-worker.js"],
    ["cpu.js", "cpu-worker.js", "cpu-threads-worker.js"],
  ]) {
    assert.deepEqual(workersOf(thread), []);
    assert.deepEqual(workersOf(worker), []);
    assert.deepEqual(workersOf(entry).sort(), [thread, worker]);
  }
});

test("docs/web-api.md is what the types say", () => {
  run(web, process.execPath, "reference.mjs", "--check");
});

/** A program of a user's, which takes the package by its name. */
const USER = `
import { Wick, WickError, type Session } from "libwick";
import { Wick as CpuWick } from "libwick/cpu";
import { Wick as StaticWick, WickError as StaticError } from "libwick/service-worker";
import { Wick as StaticCpuWick } from "libwick/cpu/service-worker";
import { OpenAI } from "libwick/openai";
export const client = new OpenAI({ fetch });
import { promptApi, type LanguageModelSession } from "libwick/prompt-api";
export const create = (wick: Wick): Promise<LanguageModelSession> =>
  promptApi((options) => wick.load("model.gguf", options)).create();
if (StaticError !== WickError) throw new Error("two of a kind");
const opened = [Wick.open({ backend: "cpu" }), CpuWick.open(), StaticWick.open({ backend: "cpu" }),
                StaticCpuWick.open()];
for (const wick of await Promise.all(opened)) {
  const { version, device } = wick.capabilities();
  console.log(version, device.backend);
  await wick.close();
}
export async function contents(session: Session): Promise<string[]> {
  const found: string[] = [];
  for await (const { spans } of session.chat([{ role: "user", content: "Hi" }]))
    for (const { kind, text } of spans) if (kind === "content") found.push(text);
  return found;
}
export const codes: string[] = [new WickError("IO", "none").code];
`;

/** The scripts that a bundle of a package's entry loads at once, as one text. */
async function atOnce(folder, entry) {
  const { outputFiles, metafile } = await build({
    stdin: { contents: `import { Wick } from "${entry}"; globalThis.Wick = Wick;`,
             resolveDir: folder },
    bundle: true, splitting: true, format: "esm", outdir: folder, write: false, metafile: true,
    external: ["node:*"], absWorkingDir: folder,
  });
  const reached = new Set(["stdin.js"]);
  for (const name of reached)
    for (const { path, kind } of metafile.outputs[name].imports)
      if (kind === "import-statement") reached.add(path);
  const files = outputFiles.filter(({ path }) => reached.has(basename(path)));
  return files.map(({ text }) => text).join();
}

test("what npm packs is installed, compiled against and run", { skip: longOnes }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "wick-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [{ filename, files }] = JSON.parse(
    run(web, "npm", "pack", "--json", "--pack-destination", folder));
  assert.ok(files.some(({ path }) => path === "LICENSE"));
  for (const name of ["wick.d.ts", "wick.js", "service-worker.js", "cpu-service-worker.js",
                      "worker.js", "threads-worker.js", "openai.js", "prompt-api.js", "cpu.js", "cpu-worker.js",
                      "cpu-threads-worker.js", ...MODULES])
    assert.ok(files.some(({ path }) => path === `dist/${name}`), name);
  assert.ok(files.every(({ path }) => /^(package.json|README.md|LICENSE|dist\/.*)$/.test(path)));
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  writeFileSync(join(folder, "user.ts"), USER);
  run(folder, "npm", "install", "--offline", "--no-audit", "--no-fund", filename);
  for (const resolution of [["nodenext"], ["esnext", "--moduleResolution", "bundler"]])
    run(folder, process.execPath, join(web, "node_modules/typescript/bin/tsc"), "--strict",
        "--target", "es2022", "--lib", "es2022,dom", "--module", ...resolution, "user.ts");
  assert.match(run(folder, process.execPath, "user.js"), /^(\d+\.\d+\.\d+ cpu\n){4}$/);
  for (const entry of ["libwick/service-worker", "libwick/cpu/service-worker"])
    assert.ok((await atOnce(folder, entry)).includes("model_open"), entry);
});
