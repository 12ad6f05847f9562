// The demo's pages for tests: each in a context of Chromium's of its own.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "../../web/node_modules/esbuild/lib/main.js";
import { startDemoServer } from "../../web/serve.mjs";
import { startStaticServer } from "../../web/static_server.mjs";
import { Wick } from "../../web/dist/wick.js";
import { missing } from "./browser.mjs";
import { withTemplate } from "./fixtures.mjs";

export const skip = missing("chromium");

/** Begun by the first test: each has a context of its own, which shares nothing with the others. */
let browser;
const startedBrowser = () => browser ??= import("playwright-core").then(({ chromium }) =>
  chromium.launch({ executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"] }));
test.after(async () => (await browser)?.close());

/** Runs body with a page that fails the test for anything it complains about. */
export async function withPage(body, { viewport = { width: 1280, height: 800 },
                                start = startDemoServer } = {}) {
  const server = await start();
  const context = await (await startedBrowser()).newContext({ viewport });
  const complaints = [];
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
    await page.goto(server.base);
    await body({ page, server, complaints });
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
    await server.close();
  }
}

export const textOf = (page) => page.locator(".turn .body").last().textContent();

/** What a module of the demo exports, in the page: its policy wants the page's own address. */
export async function inPage(page, name, body, given) {
  const { outputFiles } = await build({ write: false, bundle: true, format: "esm",
    entryPoints: [fileURLToPath(new URL(`../../web/demo/${name}`, import.meta.url))] });
  await page.route("**/under-test.js", (route) => route.fulfill(
    { contentType: "text/javascript", body: outputFiles[0].text }));
  return page.evaluate(`(async () => (${body})(await import("./under-test.js"), ${
    JSON.stringify(given)}))()`);
}

/** What `wick serve` has inside, and a model behind the same API: {base, close}. */
export async function startServed(contextLength = 512) {
  const wick = await Wick.open({ backend: "cpu", threads: 1, api: true });
  const model = await wick.load([withTemplate("{% for m in messages %}{{ m.content }}{% endfor %}")]);
  const api = await model.api({ name: "tales", maxTokens: 40, contextLength });
  const files = await startStaticServer({ policy: "",
    routes: { "/": fileURLToPath(new URL("../../web/demo", import.meta.url)) } });
  const server = createServer(async (incoming, outgoing) => {
    const { method, url } = incoming;
    const given = new AbortController();
    outgoing.on("close", () => given.abort());
    try {
      const isApi = url.startsWith("/v1/");
      const body = method === "POST" ? await buffer(incoming) : null;
      const response = await (isApi ? api.fetch : fetch)(
        new URL(url === "/" ? "served.html" : url, files.base), { method, body, signal: given.signal });
      outgoing.writeHead(response.status, { "content-type": response.headers.get("content-type") });
      for await (const bytes of response.body) outgoing.write(bytes);
      outgoing.end();
    } catch {
      outgoing.destroy();
    }
  });
  await new Promise((resolve) => server.listen(0, "localhost", resolve));
  return {
    base: `http://localhost:${server.address().port}/`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await files.close();
      await wick.close();
    },
  };
}
