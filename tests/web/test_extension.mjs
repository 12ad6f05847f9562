// The background of an extension for Chromium: a service worker that is one of its files, with the
// package's entry for it.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { browsers, missing, startExtension } from "./browser.mjs";
import { stories } from "./fixtures.mjs";

const pathOf = (name) => fileURLToPath(new URL(`../../${name}`, import.meta.url));

const manifest = {
  manifest_version: 3, name: "Wick", version: "1",
  background: { service_worker: "background.js", type: "module" },
  content_security_policy: { extension_pages: "script-src 'self' 'wasm-unsafe-eval'" },
};
const background = `import { Wick } from "./libwick/service-worker.js";
globalThis.generate = async (prompt, maxTokens) => {
  const wick = await Wick.open({ backend: "cpu", math: "exact" });
  const model = await wick.load(chrome.runtime.getURL("model.gguf"));
  const session = await model.session({ temperature: 0, maxTokens });
  const tokens = [];
  for await (const { id } of session.generate(prompt)) tokens.push(id);
  await wick.close();
  return tokens;
};
`;

const skip = browsers.includes("chromium") ? missing("chromium") : "runs in Chromium";

test("the background of an extension generates", { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "wick-"));
  t.after(() => rmSync(folder, { recursive: true }));
  cpSync(pathOf("web/dist"), join(folder, "libwick"), { recursive: true });
  cpSync(pathOf(stories.path), join(folder, "model.gguf"));
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "background.js"), background);
  const extension = await startExtension(folder);
  t.after(extension.close);
  const tokens = await extension.background.evaluate(async ([prompt, maxTokens]) => {
    while (!globalThis.generate) await new Promise((run) => setTimeout(run, 20)); // it still loads
    return globalThis.generate(prompt, maxTokens);
  }, [stories.prompt, 20]);
  assert.deepEqual(tokens, stories.tokens.slice(0, 20));
});
