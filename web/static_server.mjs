// A server of files as any host has them: folders by the beginning of their addresses, Range, other
// origins; a strict content security policy, and cross-origin isolation where it is asked for.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { pipeline } from "node:stream/promises";

/** All that a page with the package needs, and nothing looser. */
export const POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; "
  + "worker-src 'self'; connect-src 'self'";

const TYPES = {
  ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
  ".js": "text/javascript", ".mjs": "text/javascript", ".map": "application/json",
  ".json": "application/json", ".webmanifest": "application/manifest+json",
  ".wasm": "application/wasm", ".svg": "image/svg+xml", ".png": "image/png",
};

/** The file that an address names; undefined: none. */
function fileOf(routes, path) {
  const route = Object.keys(routes).filter((begin) => path.startsWith(begin))
    .sort((a, b) => b.length - a.length)[0];
  const rest = route === undefined ? "" : normalize(path.slice(route.length));
  if (route === undefined || rest.startsWith("..")) return undefined;
  return join(routes[route], rest === "." || rest.endsWith("/") ? join(rest, "index.html") : rest);
}

/** The part of a file that a request asks for. */
function partOf(range, size) {
  const asked = /^bytes=(\d+)-(\d*)$/.exec(range ?? "");
  if (!asked) return { status: 200, begin: 0, end: size };
  const begin = Number(asked[1]), end = asked[2] === "" ? size : Number(asked[2]) + 1;
  return begin < size ? { status: 206, begin, end: Math.min(end, size) }
    : { status: 416, begin: 0, end: 0 };
}

async function answer({ method, url, headers }, response, options) {
  const { routes, policy, isIsolated, onFile } = options;
  if (policy) response.setHeader("Content-Security-Policy", policy);
  if (isIsolated) {
    response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
    response.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
    response.setHeader("Cross-Origin-Resource-Policy", "cross-origin");
  }
  response.setHeader("Access-Control-Allow-Origin", "*");
  response.setHeader("Access-Control-Expose-Headers", "ETag, Content-Range");
  const file = fileOf(routes, decodeURIComponent(new URL(url, "http://localhost").pathname));
  const about = file && await stat(file).catch(() => undefined);
  if (!about?.isFile()) return void response.writeHead(404).end("there is no such file");
  onFile(file);
  const { status, begin, end } = partOf(headers.range, about.size);
  response.writeHead(status, {
    "Content-Type": TYPES[extname(file)] ?? "application/octet-stream",
    "Content-Length": end - begin,
    "Accept-Ranges": "bytes",
    "Cache-Control": "no-cache", // a new build is to be seen at once
    "ETag": `"${about.size}-${about.mtimeMs}"`,
    "Last-Modified": about.mtime.toUTCString(),
    ...(status === 206 && { "Content-Range": `bytes ${begin}-${end - 1}/${about.size}` }),
  });
  if (method === "HEAD" || begin === end) return void response.end();
  await pipeline(createReadStream(file, { start: begin, end: end - 1 }), response);
}

/**
 * Serves on a free port, or on the given one: {base, close}. routes: folders by the beginning of
 * the addresses below them ({ "/dist/": "web/dist" }); onFile: called with the path of each file that
 * is asked for.
 */
export async function startStaticServer({ routes, policy = POLICY, isIsolated = false, port = 0,
                                          onFile = () => undefined }) {
  const options = { routes, policy, isIsolated, onFile };
  const server = createServer((request, response) =>
    void answer(request, response, options).catch(() => response.destroy()));
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "localhost", resolve);
  });
  return {
    base: `http://localhost:${server.address().port}/`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
