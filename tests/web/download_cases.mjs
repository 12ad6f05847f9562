// What the tests of downloads run in a page: sources and the cache over the browser's own storage,
// in the page's thread or, for most of them, in a worker of this same script. test_downloads.mjs
// bundles it with web/src, since the package has no door to openSource.
import { ModelCache } from "../../web/src/cache.ts";
import { WickError } from "../../web/src/errors.ts";
import { Sha256 } from "../../web/src/sha256.ts";
import { openSource, openSources } from "../../web/src/source.ts";
import { openStorage } from "../../web/src/storage.ts";
import { fileBytes } from "./file_bytes.mjs";
import { PART_SIZE, damagePart } from "./scenario_tools.mjs";
import { scenarios } from "./source_scenarios.mjs";

const openCache = () => ModelCache.open({ partSize: PART_SIZE });
const FILLER = "filler";

/**
 * Leaves so many bytes of the origin's quota, by a file of zeros beside the cache. Chromium does
 * not tell a page of its true quota, which is therefore given.
 */
async function exhaust(given, bytes) {
  const root = await navigator.storage.getDirectory();
  if (bytes === Infinity) return root.removeEntry(FILLER);
  const { usage, quota } = await navigator.storage.estimate();
  const zeros = new Uint8Array(Math.min(quota, given) - usage - bytes);
  const handle = await root.getFileHandle(FILLER, { create: true });
  if (handle.createSyncAccessHandle !== undefined) {
    const file = await handle.createSyncAccessHandle();
    file.write(zeros);
    file.close();
  } else {
    const stream = await handle.createWritable();
    await stream.write(zeros);
    await stream.close();
  }
}

async function clean() {
  const cache = await openCache();
  for (const { name } of await cache.list()) await cache.delete(name);
}

/** What is in progress until the page is closed. */
const kept = [];

const here = {
  kind: async () => (await openCache()).kind,

  /** Runs a scenario; throws where it fails. quota: of the origin, for those that exhaust it. */
  async scenario(base, index, quota) {
    await clean();
    const storage = await openStorage();
    await scenarios[index].run({
      base, openCache, fetch: fetch.bind(globalThis),
      exhaust: (bytes) => exhaust(quota, bytes),
      damage: (part) => damagePart(storage, part),
      wick: { openSource, openSources, ModelCache, Sha256, WickError },
    });
  },

  /** Begins a download and leaves it to itself; resolves when so many bytes of it can be read. */
  async begin(url, bytes) {
    const source = await openSource(url, { cache: await openCache(), retryDelay: 1 });
    kept.push(source);
    await source.read(0, bytes, new AbortController().signal);
  },

  /** Bytes that the cache has of a file. */
  async stored(url) {
    return (await (await openCache()).get(url))?.storedSize ?? 0;
  },

  /** Writes files while the garbage collector takes at once what nothing holds. */
  async writeAmidCollections(count) {
    const storage = await openStorage();
    const timer = setInterval(gc, 0); // milliseconds; Chromium has gc by a flag
    try {
      for (let i = 0; i < count; i++) await storage.write("collected", "file", fileBytes(1000));
    } finally {
      clearInterval(timer);
      await storage.remove("collected");
    }
  },

  /** Loads a file to its end through the cache: whether its bytes are the expected ones. */
  async load(url, size) {
    const source = await openSource(url, { cache: await openCache(), retryDelay: 1 });
    try {
      const expected = fileBytes(size);
      const bytes = await source.read(0, size + 1, new AbortController().signal);
      return bytes.length === size && bytes.every((byte, i) => byte === expected[i]);
    } finally {
      await source.close();
    }
  },
};

const isWorker = typeof WorkerGlobalScope !== "undefined";

async function answer({ data: { name, given }, ports: [port] }) {
  try {
    port.postMessage({ value: await here[name](...given) });
  } catch (error) {
    port.postMessage({ failure: `${error?.message}\n${error?.stack}` });
  }
}

let worker;

/** Runs a function of `here` in the page's worker. */
function inWorker(name, given) {
  worker ??= new Worker(import.meta.url, { type: "module" });
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve, reject) => {
    port1.onmessage = ({ data }) =>
      (data.failure === undefined ? resolve(data.value) : reject(new Error(data.failure)));
    worker.onerror = ({ message }) => reject(new Error(message || "the worker does not load"));
    worker.postMessage({ name, given }, [port2]);
  });
}

if (isWorker) {
  onmessage = answer;
} else {
  globalThis.cases = {
    page: (name, ...given) => here[name](...given),
    worker: (name, ...given) => inWorker(name, given),
  };
}
