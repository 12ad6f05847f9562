// A server of model files that fails as it is told to by a file's address:
//   /model.gguf?id=NAME&size=100000&seed=1      who asks, bytes, which content (default 1)
//     cuts=1000,2500     the connection is cut where these bytes would follow, once each
//     change=2           from the second request on another file is there, of the same size
//     grow=2             ... and one of half more
//     ranges=no          Range is ignored
//     limit=4096         no answer to a Range is longer
//     etag=no|weak, modified=no   what does not say which file it is
//     hidden=1           another origin sees neither ETag nor Content-Range
//     hidden=range       it sees no Content-Range
//     wide=N             answers to requests with an end have N bytes more
//     chunked=1          no Content-Length
//     pause=5            milliseconds between two pieces of 8 KiB
//     stalls=5000,9000   nothing comes any more after these bytes, in one answer each
//     hold=5000          nothing comes after this byte until /go?id=NAME is asked for
//     status=404         no file; busy=2: 503 for the first two requests
//     kind=html|empty    something else; excess=1: a byte more than promised
//     redirect=1         by way of another address
//   /log?id=NAME         the requests so far as JSON: [{method, range}]
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { fileBytes } from "./file_bytes.mjs";

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

const PIECE = 8192;
const number = (query, name) => query.has(name) ? Number(query.get(name)) : undefined;

class Visitor {
  requests = [];
  cutsDone = new Set();
  stallsDone = new Set();
  go = new Promise((resolve) => {
    this.release = resolve;
  });

  /** Milliseconds for bytes to arrive before a cut: more where the same ones are wanted again. */
  get patience() {
    const { range } = this.requests.at(-1);
    const other = this.requests.findLastIndex((one) => one.range !== range);
    const repeats = this.requests.length - other - 2;
    return Math.min(2 * 4 ** repeats, 1000);
  }
}

function contentOf(query, nRequests) {
  const size = number(query, "size") ?? 100000, seed = number(query, "seed") ?? 1;
  if (query.get("kind") === "html") return new TextEncoder().encode("<!doctype html><p>Log in");
  if (query.get("kind") === "empty") return new Uint8Array();
  if (nRequests >= (number(query, "change") ?? Infinity)) return fileBytes(size, seed + 1000);
  if (nRequests >= (number(query, "grow") ?? Infinity)) return fileBytes(size * 1.5, seed + 1000);
  return fileBytes(size, seed);
}

function describe(query, bytes) {
  const hash = sha256(bytes).slice(0, 16);
  const headers = { "Content-Type": "application/octet-stream" };
  if (query.get("etag") !== "no")
    headers.ETag = query.get("etag") === "weak" ? `W/"${hash}"` : `"${hash}"`;
  if (query.get("modified") !== "no") {
    const seconds = parseInt(hash.slice(0, 6), 16);
    headers["Last-Modified"] = new Date(1.7e12 + seconds * 1000).toUTCString();
  }
  return headers;
}

/** Which bytes an answer has, and its status. */
function select(query, request, size) {
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
  if (range === null || query.get("ranges") === "no") return { status: 200, begin: 0, end: size };
  const begin = Number(range[1]);
  if (begin >= size) return { status: 416, begin: 0, end: 0 };
  const end = range[2] === "" ? size : Math.min(Number(range[2]) + 1 + (number(query, "wide") ?? 0), size);
  const limit = number(query, "limit") ?? Infinity;
  return { status: 206, begin, end: Math.min(end, begin + limit) };
}

const numbers = (query, name) =>
  (query.get(name) ?? "").split(",").filter((text) => text !== "").map(Number);

async function send(query, visitor, response, bytes, { begin, end }) {
  const { cutsDone, stallsDone } = visitor, pause = number(query, "pause") ?? 0;
  const hold = number(query, "hold");
  const cut = numbers(query, "cuts").filter((at) => at > begin && at < end && !cutsDone.has(at))
    .sort((a, b) => a - b)[0];
  const stall = numbers(query, "stalls").find((at) => at >= begin && !stallsDone.has(at));
  stallsDone.add(stall);
  for (let at = begin; at < end;) {
    if (at === hold) await visitor.go;
    if (at === stall || response.destroyed) return;
    const places = [cut, stall, hold].filter((place) => place > at);
    const next = Math.min(at + PIECE, ...places, end);
    await new Promise((resolve) => response.write(bytes.subarray(at, next), resolve));
    if (next === cut) {
      cutsDone.add(cut);
      await new Promise((resolve) => setTimeout(resolve, visitor.patience));
      response.destroy();
      return;
    }
    at = next;
    if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
  }
  if (query.has("excess")) response.write("!");
  response.end();
}

async function answer(request, response, visitors) {
  const url = new URL(request.url, "http://localhost");
  const query = url.searchParams;
  const id = query.get("id") ?? url.pathname;
  const visitor = visitors.get(id) ?? new Visitor();
  visitors.set(id, visitor);
  response.setHeader("Access-Control-Allow-Origin", "*");
  const shown = { "1": "", range: "ETag" }[query.get("hidden")] ?? "ETag, Content-Range";
  response.setHeader("Access-Control-Expose-Headers", shown);
  if (url.pathname === "/log") return void response.end(JSON.stringify(visitor.requests));
  if (url.pathname === "/go") {
    visitor.release();
    return void response.end();
  }
  if (query.has("redirect")) {
    query.delete("redirect");
    return void response.writeHead(302, { Location: url.pathname + url.search }).end();
  }
  visitor.requests.push({ method: request.method, range: request.headers.range });
  const isBusy = visitor.requests.length <= (number(query, "busy") ?? 0);
  const status = isBusy ? 503 : number(query, "status");
  if (status !== undefined) return void response.writeHead(status).end("no");
  const bytes = contentOf(query, visitor.requests.length);
  const chosen = select(query, request, bytes.length);
  const headers = describe(query, bytes);
  const length = chosen.end - chosen.begin + (query.has("excess") ? 1 : 0);
  if (!query.has("chunked")) headers["Content-Length"] = length;
  if (chosen.status === 206)
    headers["Content-Range"] = `bytes ${chosen.begin}-${chosen.end - 1}/${bytes.length}`;
  response.writeHead(chosen.status, headers);
  if (request.method === "HEAD") return void response.end();
  await send(query, visitor, response, bytes, chosen);
}

/** Serves on a free port: {base, close}. */
export async function startServer() {
  const visitors = new Map();
  const server = createServer((request, response) => {
    answer(request, response, visitors).catch(() => response.destroy());
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    base: `http://127.0.0.1:${server.address().port}`,
    close: () => new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    }),
  };
}
