// Sources and the cache in Node, over fakes of what browsers have, and over memory.
import assert from "node:assert/strict";
import test, { after, before, describe, it } from "node:test";
import { load } from "./built.mjs";
import { Disk, FakeCache, FakeDirectory, FakeLockManager, crossOriginFetch, makeLate }
  from "./fake_storage.mjs";
import { fileBytes } from "./file_bytes.mjs";
import { startServer } from "./server.mjs";
import { PART_SIZE, damagePart } from "./scenario_tools.mjs";
import { scenarios } from "./source_scenarios.mjs";

const { ModelCache } = await load("cache");
const { WickError } = await load("errors");
const { LeaseLocks, WebLocks } = await load("lock");
const { Sha256 } = await load("sha256");
const { openSource, openSources } = await load("source");
const { CacheApiStorage, MemoryStorage, OpfsStorage } = await load("storage");
const { receiveStream } = await load("stream");

let server;
before(async () => {
  server = await startServer();
});
after(() => server.close());

const LEASE = 1000; // milliseconds
const limit = { timeout: 120_000 }; // milliseconds, on machines that have much else to do
const kinds = {
  "worker": (disk) => new OpfsStorage(new FakeDirectory(disk, true)),
  "page": (disk) => new OpfsStorage(new FakeDirectory(disk, false)),
  "cache-api": (disk) => new CacheApiStorage(new FakeCache(disk)),
  "memory": () => new MemoryStorage(),
  "late": (disk) => {
    const storage = kinds.worker(disk);
    return { kind: storage.kind,
      ...makeLate(storage, ["folders", "read", "write", "remove"]) };
  },
};

async function makeEnvironment(kind) {
  const disk = new Disk(), storage = kinds[kind](disk), manager = new FakeLockManager();
  for (const folder of await storage.folders()) await storage.remove(folder);
  const isLeased = kind === "page" || kind === "memory";
  const openCache = async () => new ModelCache(storage,
    isLeased ? new LeaseLocks(storage, LEASE) : new WebLocks(manager), { partSize: PART_SIZE });
  const fetch = kind === "late" ? makeLate({ fetch: crossOriginFetch }, ["fetch"]).fetch
    : crossOriginFetch;
  return { base: server.base, openCache, fetch, disk, storage,
    damage: (index) => damagePart(storage, index),
    exhaust: async (bytes) => {
      disk.left = bytes;
    },
    wick: { openSource, openSources, ModelCache, Sha256, WickError } };
}

/** What a kind of storage can get wrong; all else is the same with any, and is run with two. */
const ofStorage = ({ name, needs }) => needs === "exhaust" || needs === "damage"
  || /plain|20 random|closed in the middle|two at once|takes over|listed/.test(name);

describe("scenarios", { concurrency: true }, () => {
  for (const kind of Object.keys(kinds)) describe(kind, { concurrency: false }, () => {
    for (const scenario of scenarios) {
      const { name, run, needs } = scenario;
      if (!["worker", "late"].includes(kind) && !ofStorage(scenario)) continue;
      if (needs === "nothing" && kind !== "worker") continue; // the same everywhere
      if (needs === "exhaust" && kind === "memory") continue; // which has no quota
      it(name, limit, async () => run(await makeEnvironment(kind)));
    }
  });
});

test("a file beside the folders, such as another context's probe, is none of them", async () => {
  const top = new FakeDirectory(new Disk(), true), storage = new OpfsStorage(top);
  await storage.write("entry", "part.0", new Uint8Array(8));
  await top.getFileHandle("probe", { create: true });
  assert.deepEqual(await storage.folders(), ["entry"]);
});

test("the cache of this context is memory in Node, and is read without being written", async () => {
  const url = `${server.base}/default.gguf?size=300000`, expected = fileBytes(300000);
  const signal = new AbortController().signal;
  const readOnly = await openSource(url, { cache: "read" });
  await readOnly.close();
  const cache = await ModelCache.open();
  assert.equal(cache.kind, "memory");
  assert.equal(await cache.get(url), undefined);
  const source = await openSource(url);
  assert.deepEqual(await source.read(0, 400000, signal), expected);
  await source.close();
  const fetch = () => Promise.reject(new TypeError("no network"));
  const again = await openSource(url, { cache: "read", fetch });
  assert.deepEqual(await again.read(0, 400000, signal), expected);
  await again.close();
  assert.equal(await cache.delete(url), true);
});

test("a file that another tab writes just now is as if it was not there", async () => {
  const changed = () => Promise.reject(new DOMException("changed", "NotReadableError"));
  const getFile = async () => ({ arrayBuffer: changed });
  const directory = { getFileHandle: async () => ({ getFile }) };
  const storage = new OpfsStorage({ getDirectoryHandle: async () => directory });
  assert.equal(await storage.read("folder", "manifest.0"), undefined);
});

test("what a cut-off write leaves of a manifest is not believed", async () => {
  const { storage, openCache } = await makeEnvironment("worker");
  const url = `${server.base}/model.gguf?size=300000`;
  const signal = new AbortController().signal;
  const source = await openSource(url, { cache: await openCache() });
  await source.read(0, 400000, signal);
  await source.close();
  const [folder] = await storage.folders();
  const slots = await Promise.all([0, 1].map((i) => storage.read(folder, `manifest.${i}`)));
  const newest = slots[1].length > slots[0].length ? 1 : 0;
  await storage.write(folder, `manifest.${newest}`, slots[newest].slice(0, -10));
  const [entry] = await (await openCache()).list();
  assert.equal(entry.isComplete, false);
  assert.equal(entry.storedSize, 4 * PART_SIZE);
  await storage.write(folder, `manifest.${1 - newest}`, new Uint8Array(10));
  assert.deepEqual(await (await openCache()).list(), []);
  assert.deepEqual(await storage.folders(), []);
});

test("a lease ends with its time, and two never have it", async () => {
  const storage = new OpfsStorage(new FakeDirectory());
  const duration = 1000; // milliseconds
  const locks = new LeaseLocks(storage, duration);
  const releases = await Promise.all([locks.tryLock("a"), locks.tryLock("a"), locks.tryLock("b")]);
  assert.equal(releases.slice(0, 2).filter((release) => release !== undefined).length, 1);
  assert.notEqual(releases[2], undefined);
  await new Promise((resolve) => setTimeout(resolve, 2 * duration));
  assert.equal(await locks.tryLock("a"), undefined); // renewed
  for (const release of releases) await release?.();
  const gone = { owner: "closed tab", until: Date.now() + duration };
  await storage.write("locks", "a", new TextEncoder().encode(JSON.stringify(gone)));
  assert.equal(await locks.tryLock("a"), undefined);
  await new Promise((resolve) => setTimeout(resolve, duration + 50));
  const release = await locks.tryLock("a");
  assert.notEqual(release, undefined);
  await release();
});

/** Runs work with a navigator and caches of a browser. */
async function inBrowser(navigator, caches, work) {
  const FileSystemFileHandle = { prototype: { createWritable: undefined } };
  const globals = { navigator, caches, FileSystemFileHandle };
  const before = Object.keys(globals)
    .map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]);
  for (const [name, value] of Object.entries(globals))
    Object.defineProperty(globalThis, name, { value, configurable: true });
  try {
    await work();
  } finally {
    for (const [name, old] of before) {
      delete globalThis[name];
      if (old !== undefined) Object.defineProperty(globalThis, name, old);
    }
  }
}

test("the best place that there is is taken", async () => {
  const refused = async () => {
    throw new DOMException("private window", "SecurityError");
  };
  const caches = { open: async () => new FakeCache() };
  const kindIn = async (storage, cachesThere) => {
    let kind;
    await inBrowser({ storage }, cachesThere, async () => {
      ({ kind } = await ModelCache.open());
    });
    return kind;
  };
  assert.equal(await kindIn({ getDirectory: async () => new FakeDirectory() }, caches), "opfs");
  assert.equal(await kindIn({ getDirectory: refused }, caches), "cache-api");
  assert.equal(await kindIn({}, caches), "cache-api");
  assert.equal(await kindIn(undefined, { open: refused }), "memory");
});

test("a file that is larger than the quota is not begun", async () => {
  const { openCache, storage } = await makeEnvironment("worker");
  const estimate = async () => ({ usage: 50000, quota: 150000 });
  await inBrowser({ storage: { estimate } }, undefined, async () => {
    const url = `${server.base}/model.gguf?size=300000`;
    const warnings = [], onWarning = (message) => warnings.push(message);
    await (await openSource(url, { cache: await openCache(), onWarning })).close();
    assert.match(warnings.join(), /300000 bytes are needed, 100000 bytes are left/);
  });
  assert.deepEqual(await storage.folders(), []);
});

/* ---- Storage and servers that fail ---- */

/** Storage in memory whose next operation that `isNext(operation, file, bytes)` picks fails. */
class FailingStorage extends MemoryStorage {
  isNext = () => false;

  async #perhaps(...which) {
    if (!this.isNext(...which)) return;
    this.isNext = () => false;
    throw new DOMException("it failed", "NotReadableError");
  }

  async read(folder, file) {
    await this.#perhaps("read", file);
    return super.read(folder, file);
  }

  async write(folder, file, bytes) {
    await this.#perhaps("write", file, bytes);
    return super.write(folder, file, bytes);
  }

  async remove(folder) {
    await this.#perhaps("remove");
    return super.remove(folder);
  }
}

/** A cache over such storage, and a file on the server that counts its requests. */
async function makeFailing(t, id, query = "") {
  const storage = new FailingStorage();
  const cache = new ModelCache(storage, new WebLocks(new FakeLockManager()),
                               { partSize: PART_SIZE });
  const url = `${server.base}/model.gguf?id=${id}&size=300000&${query}`;
  t.after(() => cache.delete(url));
  const requests = async () => (await (await fetch(`${server.base}/log?id=${id}`)).json())
    .filter(({ method }) => method === "GET").length;
  return { storage, cache, url, requests };
}

async function loads(url, options, expected = fileBytes(300000)) {
  const source = await openSource(url, { retryDelay: 1, ...options });
  try {
    const bytes = await source.read(0, expected.length + 1, new AbortController().signal);
    assert.deepEqual(bytes, expected);
  } finally {
    await source.close();
  }
}

test("a failure to read under the lock gives the lock back", limit, async (t) => {
  const { storage, cache, url } = await makeFailing(t, "lock");
  let reads = 0;
  storage.isNext = (operation) => operation === "read" && ++reads > 2; // two slots before the lock
  await assert.rejects(openSource(url, { cache }), { name: "NotReadableError" });
  await loads(url, { cache });
});

test("a failure to remove an old file gives the lock back", limit, async (t) => {
  const { storage, cache, url } = await makeFailing(t, "remove");
  await loads(url, { cache });
  storage.isNext = (operation) => operation === "remove";
  const sha256 = "0".repeat(64); // another file is wanted now
  await assert.rejects(openSource(url, { cache, sha256 }), { name: "NotReadableError" });
  await loads(url, { cache });
});

test("a manifest that cannot be stored at the end fails the load", limit,
     async (t) => {
  const { storage, cache, url, requests } = await makeFailing(t, "manifest");
  storage.isNext = (operation, file, bytes) => operation === "write" && file.startsWith("manifest")
    && JSON.parse(new TextDecoder().decode(bytes.slice(64))).manifest.sha256 !== undefined;
  await assert.rejects(loads(url, { cache }), { name: "NotReadableError" });
  assert.equal(await requests(), 1);
  assert.equal(await cache.get(url), undefined);
  await loads(url, { cache });
});

test("a file that came whole, but was not finished, is still compared with the server's",
     limit, async (t) => {
  for (const [id, query, seed] of [["same", "", 1], ["changed", "change=2", 1001]]) {
    const { cache, url, requests } = await makeFailing(t, id, query);
    const stop = new AbortController(), { signal } = stop;
    const onProgress = ({ done, total }) => done === total && stop.abort();
    await assert.rejects(loads(url, { cache, signal, onProgress }), { code: "CANCELLED" });
    const { storedSize, isComplete } = await cache.get(url);
    assert.deepEqual({ storedSize, isComplete }, { storedSize: 300000, isComplete: false });
    await loads(url, { cache }, fileBytes(300000, seed));
    assert.equal(await requests(), seed === 1 ? 1 : 2);
  }
});

test("what another tab has replaced meanwhile is not removed", limit, async (t) => {
  const { cache, url, requests } = await makeFailing(t, "replaced", "change=2");
  const changed = fileBytes(300000, 1001);
  await loads(url, { cache });
  let nRequests;
  const late = async (...request) => {
    const answer = await fetch(...request);
    if (nRequests === undefined) {
      await loads(url, { cache }, changed);
      nRequests = await requests();
    }
    return answer;
  };
  await loads(url, { cache, fetch: late }, changed);
  assert.equal(await requests(), nRequests);
});

test("a read that meets the end of its download tells why that ended", limit,
     async (t) => {
  const { storage, cache, url, requests } =
    await makeFailing(t, "meets", "change=2&hold=190000&cuts=200000");
  const source = await openSource(url, { cache, retryDelay: 1 });
  let tell;
  const removed = new Promise((resolve) => {
    tell = resolve;
  });
  const { read, remove } = MemoryStorage.prototype;
  storage.read = async (folder, file) => {
    if (file === "part.0") await removed;
    return read.call(storage, folder, file);
  };
  storage.remove = async (folder) => {
    await remove.call(storage, folder);
    tell();
  };
  const begin = source.read(0, 1000, new AbortController().signal);
  await fetch(url.replace("model.gguf", "go"));
  await assert.rejects(begin, ({ code, message }) => code === "IO"
    && message.startsWith(`${url} was changed on the server`));
  await source.close();
  assert.equal(await requests(), 2);
});

test("a file that another tab deletes or replaces under a reader", limit, async () => {
  const { storage, openCache } = await makeEnvironment("worker");
  const cache = await openCache(), { signal } = new AbortController();
  const old = fileBytes(300000), changed = fileBytes(300000, 1001);
  const hash = (bytes) => new Sha256().add(bytes).digest();

  const deleted = `${server.base}/model.gguf?id=deleted&size=300000`;
  await loads(deleted, { cache });
  let source = await openSource(deleted, { cache });
  assert.equal(await cache.delete(deleted), true);
  assert.deepEqual(await source.read(0, 300001, signal), old); // from the server
  await source.close();
  assert.deepEqual(await storage.folders(), []);

  const replaced = `${server.base}/model.gguf?id=replaced-under&size=300000&change=2`;
  await loads(replaced, { cache });
  source = await openSource(replaced, { cache, sha256: hash(old) });
  await loads(replaced, { cache, sha256: hash(changed) }, changed);
  await assert.rejects(source.read(0, 300001, signal), { code: "IO", message: /was changed/ });
  await source.close();
  assert.equal((await cache.get(replaced)).sha256, hash(changed));
});

test("what follows a stored beginning is compared where the ETag is hidden by now",
     limit, async (t) => {
  const { cache, url } = await makeFailing(t, "hides", "change=2&hold=190000");
  const source = await openSource(url, { cache });
  await source.read(0, 100000, new AbortController().signal);
  await source.close();
  await fetch(url.replace("model.gguf", "go"));
  const hiding = async (...request) => {
    const response = await fetch(...request), headers = new Headers(response.headers);
    for (const name of ["ETag", "Last-Modified"]) headers.delete(name);
    return Object.assign(new Response(response.body, { status: response.status, headers }),
                         { response });
  };
  await loads(url, { cache, fetch: hiding }, fileBytes(300000, 1001));
});

test("two tabs that find a file outdated both load the new one", limit, async (t) => {
  const { storage, cache, url, requests } = await makeFailing(t, "outdated", "change=2");
  await loads(url, { cache });
  storage.remove = async (folder) => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    await MemoryStorage.prototype.remove.call(storage, folder);
  };
  const changed = fileBytes(300000, 1001);
  await Promise.all([1, 2].map(() => loads(url, { cache }, changed)));
  assert.equal(await requests(), 2);
});

test("closing waits for a part that is fetched again and no longer needed", limit,
     async () => {
  const { storage, openCache, damage } = await makeEnvironment("page");
  const cache = await openCache(), { signal } = new AbortController();
  const url = `${server.base}/model.gguf?id=closes&size=400000`;
  await loads(url, { cache }, fileBytes(400000));
  await damage(1);
  let tell;
  const asked = new Promise((resolve) => {
    tell = resolve;
  });
  const silent = (address, init) => {
    if (init.method === "HEAD") return fetch(address, init);
    tell();
    return new Promise(() => undefined);
  };
  const source = await openSource(url, { cache, fetch: silent });
  await source.read(0, 1000, signal); // and part 1 is read ahead
  await asked;
  const { write } = OpfsStorage.prototype; // giving the lock back takes its time, too
  storage.write = async (...given) => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return write.apply(storage, given);
  };
  await source.read(4 * PART_SIZE, 1000, signal);
  await source.close();
  assert.equal(await cache.delete(url), true);
  assert.deepEqual((await storage.folders()).filter((folder) => folder !== "locks"), []);
});

test("closing a split model ends an opening that a silent server holds up", limit,
     async (t) => {
  const { cache, url } = await makeFailing(t, "first");
  const size = 1600000, second = `${server.base}/model.gguf?id=second&size=${size}`;
  let asked = 0;
  const silent = (address, init) =>
    (String(address) === second && ++asked > 1 ? new Promise(() => undefined)
      : fetch(address, init));
  const sources = await openSources([url, second], { cache, fetch: silent });
  const read = sources[1].read(0, size, new AbortController().signal);
  const failed = assert.rejects(read, { code: "CANCELLED" });
  while (asked < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  for (const source of sources) await source.close();
  await failed;
  assert.equal(await cache.delete(second), false);
});

test("a reader that stops leaves the opening to the next one", limit, async (t) => {
  const { cache, url } = await makeFailing(t, "stops");
  const size = 1600000, second = `${server.base}/model.gguf?id=next&size=${size}`;
  t.after(() => cache.delete(second));
  const sources = await openSources([url, second], { cache });
  const stopped = new AbortController();
  const read = sources[1].read(0, size, stopped.signal);
  stopped.abort();
  await assert.rejects(read, { code: "CANCELLED" });
  const bytes = await sources[1].read(0, size, new AbortController().signal);
  assert.deepEqual(bytes, fileBytes(size));
  for (const source of sources) await source.close();
});

test("a fetch that ignores its signal holds up no file that is there", limit,
     async (t) => {
  const { cache, url } = await makeFailing(t, "deaf");
  await loads(url, { cache });
  await loads(url, { cache, fetch: () => new Promise(() => undefined) });
});

test("an answer that ends before its first byte is no empty file", limit, async () => {
  const url = `${server.base}/model.gguf?id=first-byte&size=300000`;
  let asked = 0;
  const early = async (...request) => {
    const answer = await fetch(...request), { status, headers } = answer;
    return ++asked > 1 ? answer : new Response(new Blob().stream(), { status, headers });
  };
  await loads(url, { cache: false, fetch: early });
  assert.equal(asked, 2);
});

test("a piece of a stream that does not arrive fails the stream", limit, async () => {
  const { port1, port2 } = new MessageChannel();
  const reader = receiveStream(port1).getReader();
  const read = reader.read();
  port2.on("message", () => port1.dispatchEvent(new Event("messageerror")));
  await assert.rejects(read, { code: "OUT_OF_MEMORY" });
  port2.close();
});
