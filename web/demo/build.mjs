// usage: node build.mjs
// Makes web/demo/dist of this folder and web/dist: the demo as static files for any host.
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist"), engine = join(here, "../dist");

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
execFileSync(process.execPath,
             [join(here, "../node_modules/typescript/bin/tsc"), "--project", here],
             { stdio: "inherit" });

const common = { absWorkingDir: here, outdir: dist, bundle: true, minify: true, target: "es2022",
  legalComments: "none", logLevel: "warning" };
await build({ ...common, entryPoints: ["chat.ts", "test.ts", "tensors.ts"], format: "esm",
  // The package stays as it is, beside the page.
  alias: { libwick: "./wick.js" }, external: ["./wick.js"] });
await build({ ...common, entryPoints: ["theme.js", "microphone_worklet.ts"], format: "iife" });

const copy = (from, pattern) => readdirSync(from).filter((name) => pattern.test(name))
  .forEach((name) => copyFileSync(join(from, name), join(dist, name)));
copy(here, /^(?!served).*\.(html|css|svg|webmanifest)$/); // not the page of the server
copyFileSync(join(here, "models.json"), join(dist, "models.json"));
copy(engine, /^(?!cpu|wick-cpu|wick-api|openai|prompt-api).*\.(js|wasm)$/); // what the page loads
copy(join(here, "data"), /./);
const fixtures = join(here, "../../tests/data");
copyFileSync(join(fixtures, "stories260K.gguf"), join(dist, "stories260K.gguf"));
copyFileSync(join(fixtures, "real/digits.safetensors"), join(dist, "digits.safetensors"));

// The service worker is another one as soon as a byte of what it keeps is.
const files = readdirSync(dist).sort();
const hash = createHash("sha256");
for (const file of files) hash.update(file).update(readFileSync(join(dist, file)));
const version = hash.digest("hex").slice(0, 16);
await build({ ...common, entryPoints: ["sw.ts"], format: "iife",
  define: { VERSION: JSON.stringify(version), FILES: JSON.stringify(files) } });
