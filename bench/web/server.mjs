// The pages' server: what is measured, cross-origin isolated so that engines may use threads, and
// how many bytes of each engine were asked for.
import { createReadStream, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { brotliCompressSync } from "node:zlib";

const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript",
  ".wasm": "application/wasm", ".gguf": "application/octet-stream",
};

/** Serves folders: { prefix: path }. A prefix may name a file. */
export async function openServer(folders) {
  const asked = new Set();
  const pathOf = (url) => {
    const path = normalize(decodeURIComponent(url.split("?")[0]));
    const prefix = Object.keys(folders).find((name) => path.startsWith(name));
    return prefix && join(folders[prefix], path.slice(prefix.length));
  };
  const server = createServer((request, response) => {
    const path = pathOf(request.url);
    const size = path && statSync(path, { throwIfNoEntry: false })?.size;
    if (size === undefined) {
      response.writeHead(404).end();
      return;
    }
    asked.add(path);
    response.writeHead(200, {
      "content-type": TYPES[extname(path)] ?? "text/plain", "content-length": size,
      "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp",
      "cache-control": "no-store",
    });
    createReadStream(path).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `http://localhost:${server.address().port}`,
    /** Bytes of a folder's scripts and modules that pages asked for since the last call. */
    downloaded(prefix) {
      const paths = [...asked].filter((path) =>
        path.startsWith(folders[prefix]) && /\.(m?js|wasm)$/.test(path));
      asked.clear();
      return paths.reduce((sum, path) => sum + brotliSize(path), 0);
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

const sizes = new Map();

function brotliSize(path) {
  if (!sizes.has(path)) sizes.set(path, brotliCompressSync(readFileSync(path)).length);
  return sizes.get(path);
}
