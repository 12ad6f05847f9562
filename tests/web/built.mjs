// The modules of web/src one by one, which the package's bundle does not have apart.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "../../web/node_modules/esbuild/lib/main.js";

const source = fileURLToPath(new URL("../../web/src", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "wick-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
await build({
  entryPoints: readdirSync(source).filter((name) => name.endsWith(".ts"))
    .map((name) => join(source, name)),
  outdir: folder,
  format: "esm",
  target: "es2022",
});

/** All that web/src/NAME.ts exports. */
export const load = (name) => import(pathToFileURL(join(folder, `${name}.js`)).href);
