/**
 * The service worker: keeps the files of this version of the demo, and nothing else. It adds the
 * headers that browsers ask of pages with threads, which many static hosts cannot send:
 * from its second visit on a page is cross-origin isolated.
 */

/** Set by build.mjs: a hash of all files, and their paths. */
declare const VERSION: string;
declare const FILES: string[];

interface Extendable extends Event {
  waitUntil(work: Promise<unknown>): void;
}

interface FetchLike extends Extendable {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}

interface Scope {
  readonly registration: { readonly scope: string };
  readonly clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: Extendable) => void): void;
  addEventListener(type: "fetch", listener: (event: FetchLike) => void): void;
  addEventListener(type: "message", listener: (event: Extendable) => void): void;
}

const scope = globalThis as unknown as Scope;
const PREFIX = `wick-demo ${scope.registration.scope} `;
const NAME = PREFIX + VERSION;

async function install(): Promise<void> {
  const cache = await caches.open(NAME);
  await cache.addAll(FILES.map((file) => new Request(file, { cache: "reload" })));
}

async function removeOthers(): Promise<void> {
  const names = await caches.keys();
  const old = names.filter((name) => name.startsWith(PREFIX) && name !== NAME);
  await Promise.all(old.map((name) => caches.delete(name)));
  await scope.clients.claim();
}

/** The path of a file that is kept; undefined: the network's. */
function keptPath({ method, url }: Request): string | undefined {
  if (method !== "GET" || !url.startsWith(scope.registration.scope)) return undefined;
  const path = new URL(url).href.slice(scope.registration.scope.length).replace(/[?#].*$/, "");
  const file = path === "" ? "index.html" : path;
  return FILES.includes(file) ? file : undefined;
}

function isolated({ body, status, statusText, headers }: Response): Response {
  const own = new Headers(headers);
  own.set("Cross-Origin-Opener-Policy", "same-origin");
  own.set("Cross-Origin-Embedder-Policy", "credentialless");
  return new Response(body, { status, statusText, headers: own });
}

scope.addEventListener("install", (event) => event.waitUntil(install()));
scope.addEventListener("activate", (event) => event.waitUntil(removeOthers()));
scope.addEventListener("message", (event) => event.waitUntil(scope.skipWaiting()));
scope.addEventListener("fetch", (event) => {
  const path = keptPath(event.request);
  if (path === undefined) return;
  event.respondWith(caches.open(NAME).then(async (cache) =>
    isolated(await cache.match(path) ?? await fetch(event.request))));
});
