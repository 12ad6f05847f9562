// usage: node serve.mjs [--port N] [--isolated]
// Serves the demo (demo/dist, see demo/build.mjs) on localhost, with the models that lie in the
// repository's folder under models/. --isolated: with the headers that let pages use threads.
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startStaticServer } from "./static_server.mjs";

const folder = (path) => fileURLToPath(new URL(path, import.meta.url));

/** As the chat has it, too: models come from anywhere; the script is that of demo/sandbox.js. */
const POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval' "
  + "'sha256-3mzl4NkOzOipJ8ZL0wZnjivChzZiVH8MCNJgGGadbvo='; worker-src 'self' blob:; connect-src 'self' https:";

/** {base, close} of a server of the demo; port 0: one that is free. */
export const startDemoServer = (options = {}) => startStaticServer({
  routes: { "/": folder("demo/dist"), "/models/": folder("../models") }, policy: POLICY, ...options,
});

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const { values } = parseArgs({ options: {
      port: { type: "string", default: "8080" }, isolated: { type: "boolean", default: false } } });
    const { base } = await startDemoServer(
      { port: Number(values.port), isIsolated: values.isolated });
    console.log(`The demo is at ${base} (Ctrl+C ends it).`);
  } catch (reason) {
    console.error(`serve: ${reason.message}`);
    process.exitCode = 1;
  }
}
