// What sources and the cache must survive: each scenario gets {base, openCache, fetch, wick} and
// throws where something is wrong. They run in Node over fake storage and in browsers over their
// own; `needs` names what of these a scenario must have, or is "nothing" where it leaves the cache
// alone.
//   base       of the server (server.mjs)
//   openCache  () => ModelCache of small parts; each call as another tab would
//   fetch      of a page
//   wick       { openSource, openSources, ModelCache, Sha256, WickError }
//   exhaust    (bytes) => Promise: so many more may be stored
//   damage     (partIndex) => Promise: a stored part of the only entry changes

import { fileBytes } from "./file_bytes.mjs";
import {
  PART_SIZE, SIZE, check, checkBytes, checkCached, checkChanged, checkClean, failure, file, load,
  loadBegin, never, options, pause, readAll, sha256,
} from "./scenario_tools.mjs";

const random = (n, limit) => Array.from({ length: n }, () => 1 + Math.floor(Math.random() * limit));

/** So that files of tests are worth several connections. */
const SHARED = { segmentSize: 10000 };

/**
 * Opens a file by work(address) over several connections, however late its reader is: the first one
 * has only the beginning until n have been asked for. What the work gives, and the file.
 */
async function sharing(env, query, n, work) {
  const one = file(env, `hold=8192&${query}`);
  const [result] = await Promise.all([work(one.url), (async () => {
    while ((await one.log()).length < n) await pause(10);
    await one.go();
  })()]);
  return { ...one, result };
}

/** Files, each of which comes whole: [what, query, options]. */
const WHOLE = [
  ["a plain download", ""],
  ["a connection cut at 20 random places", () => `cuts=${random(20, SIZE - 2)}`],
  ["a connection cut at the ends of parts",
    `cuts=${[PART_SIZE, PART_SIZE + 1, 2 * PART_SIZE - 1, 3 * PART_SIZE]}`],
  ["cuts where the server says nothing of which file it is",
    () => `etag=no&modified=no&cuts=${random(20, SIZE - 2)}`],
  ["cuts where headers are hidden from the page", () => `hidden=1&cuts=${random(20, SIZE - 2)}`],
  ["cuts with a weak ETag", () => `etag=weak&cuts=${random(20, SIZE - 2)}`],
  ["a server that ignores Range", () => `ranges=no&cuts=${random(5, SIZE - 2)}`],
  ["a server that ignores Range and hides ETag",
    () => `ranges=no&hidden=1&cuts=${random(5, SIZE - 2)}`],
  ["answers of 30,000 bytes at most", "limit=30000"],
  ["no Content-Length", () => `chunked=1&ranges=no&cuts=${random(3, SIZE - 2)}`],
  ["slow answers", "pause=5"],
  ["a server that falls silent once", "stalls=200000"],
  ["a server that is busy at first", "busy=2"],
  ["a redirect", "redirect=1"],
  ["several connections", "pause=1", SHARED],
  ["several connections, cut at 20 random places", () => `cuts=${random(20, SIZE - 2)}`, SHARED],
  ["several connections, of which one falls silent", "stalls=200000", SHARED],
  ["several connections, answers of 3,000 bytes at most", "limit=3000", SHARED],
  ["several connections where Content-Range is hidden", "hidden=range&pause=1", SHARED],
];

const queryOf = (query) => (typeof query === "function" ? query() : query);

/** Work whose failure tells the address, and so the random places in it. */
async function telling(url, work) {
  try {
    await work();
  } catch (error) {
    throw new Error(`${url}: ${error.message}`, { cause: error });
  }
}

const throughCache = WHOLE.map(([what, query, more]) => ({
  name: `${what}, through the cache`,
  async run(env) {
    const expected = fileBytes(SIZE), one = file(env, queryOf(query));
    await telling(one.url, async () => {
      checkBytes(await load(env, one.url, more), expected);
      await checkCached(env, one, expected);
    });
  },
}));

const streamed = WHOLE.map(([what, query, more]) => ({
  name: `${what}, without the cache`,
  needs: "nothing",
  async run(env) {
    const expected = fileBytes(SIZE), { url } = file(env, queryOf(query));
    await telling(url, async () => {
      const hash = sha256(env, expected);
      checkBytes(await load(env, url, { ...more, cache: false, sha256: hash }), expected);
      checkBytes(await load(env, url, { ...more, cache: "read" }), expected);
    });
  },
}));

const failing = [
  ["404", "status=404", "NOT_FOUND", "answered 404"],
  ["403", "status=403", "NOT_FOUND", "answered 403"],
  ["a page for people", "kind=html", "FORMAT"],
  ["an empty body", "kind=empty", "FORMAT"],
  ["an empty body without a length", "kind=empty&chunked=1&ranges=no", "FORMAT"],
  ["more bytes than promised", "excess=1", "FORMAT"],
  ["a server that stays busy", "busy=100", "IO", "answered 503"],
  ["500", "status=500", "IO", "answered 500"],
].map(([what, query, code, words = ""]) => ({
  name: `${what} is a clear error and leaves nothing`,
  async run(env) {
    for (const cache of [undefined, false]) {
      const { url } = file(env, query);
      const error = await failure(env, code,
                                  () => load(env, url, cache === false ? { cache } : {}));
      const { message } = error;
      check(message.includes(url) && message.includes(words) && !message.includes("CORS"), message);
    }
    await checkClean(env);
  },
}));

/** How a download is gone on with: [what, query, whether exactly where it stopped]. */
const resumed = [
  ["by its ETag", "", true],
  ["by its bytes, where headers are hidden", "hidden=1", false],
  ["by its bytes alone", "etag=no&modified=no", false],
  ["where Range is ignored", "ranges=no", true],
].map(([what, query, isExact]) => ({
  name: `a download that was closed in the middle of a part goes on ${what}`,
  async run(env) {
    const expected = fileBytes(SIZE), one = file(env, `hold=230000&${query}`);
    await loadBegin(env, one.url, 150000);
    await one.go();
    const entry = await (await env.openCache()).get(one.url);
    check(!entry.isComplete && entry.storedSize >= 150000, JSON.stringify(entry));
    await failure(env, "NOT_FOUND", () => load(env, { cached: one.url }));
    checkBytes(await load(env, one.url), expected);
    const { range } = (await one.log()).at(-1);
    const begin = Number(/\d+/.exec(range)[0]);
    check(isExact ? begin === entry.storedSize : begin >= 150000 - 2 * PART_SIZE, range);
    await checkCached(env, one, expected);
  },
}));

const changed = ["", "hidden=1", "etag=no", "etag=no&modified=no", "ranges=no"].flatMap((query) => [
  {
    name: `a file that changed since the last time (${query}) is begun anew`,
    async run(env) {
      const one = file(env, `hold=230000&change=2&${query}`);
      await loadBegin(env, one.url, 150000);
      await one.go();
      const expected = fileBytes(SIZE, 1001);
      checkBytes(await load(env, one.url), expected);
      await checkCached(env, one, expected);
    },
  },
  {
    name: `a file that changes under way (${query}) never loads mixed`,
    async run(env) {
      const one = file(env, `change=2&cuts=200000&${query}`);
      const expected = fileBytes(SIZE, 1001);
      const found = await load(env, one.url).catch((error) => error);
      if (found instanceof Uint8Array) checkBytes(found, expected); // begun anew before any read
      else checkChanged(env, one.url, found);
      checkBytes(await load(env, one.url), expected);
      await checkCached(env, one, expected);
    },
  },
  {
    name: `a file that changes under way (${query}) never loads mixed in a tab that follows`,
    async run(env) {
      const one = file(env, `hold=230000&cuts=240000&change=2&${query}`);
      const open = async () => env.wick.openSource(one.url, // its hold is no stall
        options(env, await env.openCache(), { stallTimeout: 30000 }));
      const [first, second] = [await open(), await open()];
      try {
        await first.read(0, 150000, never());
        checkBytes(await second.read(0, 1000, never()), fileBytes(SIZE).subarray(0, 1000));
        await one.go();
        checkChanged(env, one.url, await failure(env, "IO", () => readAll(first)));
        await failure(env, "IO", () => readAll(second));
      } finally {
        await Promise.all([first.close(), second.close()]);
      }
      const expected = fileBytes(SIZE, 1001);
      checkBytes(await load(env, one.url), expected);
      await checkCached(env, one, expected);
    },
  },
]);

const others = [
  {
    name: "a file that grew since it was complete is fetched anew",
    async run(env) {
      const one = file(env, "grow=2");
      checkBytes(await load(env, one.url), fileBytes(SIZE));
      const expected = fileBytes(1.5 * SIZE, 1001);
      checkBytes(await load(env, one.url), expected);
      await checkCached(env, one, expected);
    },
  },
  {
    name: "the given hash is held to, and decides what is kept",
    async run(env) {
      const expected = fileBytes(SIZE), one = file(env, "change=2");
      const right = sha256(env, expected), wrong = sha256(env, fileBytes(SIZE, 2));
      const { url } = file(env);
      await failure(env, "MISMATCH", () => load(env, url, { sha256: wrong }));
      await checkClean(env);
      await failure(env, "MISMATCH", () => load(env, url, { cache: false, sha256: wrong }));
      checkBytes(await load(env, one.url, { sha256: right.toUpperCase() }), expected);
      const n = (await one.log()).length;
      checkBytes(await load(env, one.url, { sha256: right }), expected);
      check((await one.log()).length === n, "the server was asked though the hash was known");
      await failure(env, "MISMATCH", () => load(env, { cached: one.url }, { sha256: wrong }));
      const next = fileBytes(SIZE, 1001);
      checkBytes(await load(env, one.url, { sha256: sha256(env, next) }), next);
      await checkCached(env, one, next);
      await failure(env, "ARGUMENT", () => load(env, one.url, { sha256: "abc" }));
      await failure(env, "ARGUMENT", () => load(env, "https://"));
    },
  },
  {
    name: "bytes can be read while the others come, the last ones when all is checked",
    async run(env) {
      const one = file(env, "hold=100000");
      const cache = await env.openCache();
      const source = await env.wick.openSource(one.url, options(env, cache));
      check(source.size === SIZE, `size ${source.size}`);
      checkBytes(await source.read(0, 1000, never()), fileBytes(SIZE).subarray(0, 1000));
      check(!(await cache.has(one.url)), "complete already");
      await one.go();
      checkBytes(await source.read(SIZE - 10, 100, never()), fileBytes(SIZE).subarray(SIZE - 10));
      check(await cache.has(one.url), "not complete");
      checkBytes(await source.read(PART_SIZE - 5, 2 * PART_SIZE, never()),
                 fileBytes(SIZE).subarray(PART_SIZE - 5, 3 * PART_SIZE - 5));
      check((await source.read(SIZE, 10, never())).length === 0, "bytes after the end");
      await source.close();
    },
  },
  {
    name: "a read is stopped by its signal, and the source can still be read",
    async run(env) {
      for (const cache of [await env.openCache(), false]) {
        const { url, go } = file(env, "hold=100000");
        const source = await env.wick.openSource(url, options(env, cache));
        const aborter = new AbortController();
        setTimeout(() => aborter.abort(), 20);
        await failure(env, "CANCELLED", () => source.read(0, 300000, aborter.signal));
        await failure(env, "CANCELLED", () => source.read(0, 10, aborter.signal));
        await go();
        checkBytes(await readAll(source), fileBytes(SIZE));
        await source.close();
      }
    },
  },
  {
    name: "opening is stopped by the options' signal",
    async run(env) {
      for (const cache of [await env.openCache(), false]) {
        const aborter = new AbortController();
        const signal = aborter.signal;
        setTimeout(() => aborter.abort(), 50);
        await failure(env, "CANCELLED",
                      () => load(env, file(env, "stalls=0").url, { cache, signal }));
        await failure(env, "CANCELLED", () => load(env, file(env).url, { cache, signal }));
      }
      await checkClean(env);
    },
  },
  {
    name: "progress says how far it is, at what rate",
    async run(env) {
      const { url } = file(env, "pause=2"), seen = [];
      await load(env, url, { onProgress: (progress) => seen.push(progress) });
      const last = seen.at(-1);
      check(seen.length > 1 && last.done === SIZE && last.total === SIZE, JSON.stringify(last));
      check(last.phase === "download" && last.bytesPerSecond > 0 && last.secondsLeft === 0, "rate");
      seen.length = 0;
      await load(env, url, { onProgress: (progress) => seen.push(progress) });
      check(seen.at(-1).phase === "verify" && seen.at(-1).done === SIZE, JSON.stringify(seen));
    },
  },
  {
    name: "two at once download once",
    async run(env) {
      const expected = fileBytes(SIZE), one = file(env, "pause=2");
      const both = await Promise.all([load(env, one.url), load(env, one.url)]);
      for (const bytes of both) checkBytes(bytes, expected);
      const gets = (await one.log()).filter(({ method }) => method === "GET");
      check(gets.length === 1, `${gets.length} downloads`);
      await checkCached(env, one, expected);
    },
  },
  {
    name: "the second of two takes over when the first is closed",
    async run(env) {
      const expected = fileBytes(SIZE), one = file(env, "hold=250000");
      const first = await env.wick.openSource(one.url, options(env, await env.openCache()));
      const second = load(env, one.url);
      await first.read(0, 150000, never());
      await failure(env, "STATE", async () => (await env.openCache()).delete(one.url));
      await first.close();
      await one.go();
      checkBytes(await second, expected);
      await checkCached(env, one, expected);
    },
  },
  {
    name: "the server is not needed for what is in the cache",
    async run(env) {
      const { url } = file(env), expected = fileBytes(SIZE);
      await load(env, url);
      const offline = () => Promise.reject(new TypeError("no network"));
      checkBytes(await load(env, url, { fetch: offline }), expected);
      const error = await failure(env, "IO", () => load(env, file(env).url, { fetch: offline }));
      check(error.message.includes("CORS"), error.message);
    },
  },
  {
    name: "entries are listed, sized and deleted",
    async run(env) {
      const first = file(env), second = file(env, "", 100000);
      await load(env, first.url);
      await load(env, second.url);
      const cache = await env.openCache();
      check(await cache.size() === SIZE + 100000, `${await cache.size()} bytes`);
      check((await cache.list()).length === 2, "two entries");
      check(await cache.delete(first.url), "was not there");
      check(!(await cache.delete(first.url)), "was there twice");
      check(!(await cache.has(first.url)) && await cache.has(second.url), "the wrong one");
      await cache.delete(second.url);
      await checkClean(env);
    },
  },
  {
    name: "a quota that is too small is told once, and the file comes without the cache",
    needs: "exhaust",
    async run(env) {
      const expected = fileBytes(SIZE), hash = sha256(env, expected);
      // With its size known, and without, where it ends in the middle.
      for (const query of ["", "chunked=1&ranges=no", "chunked=1&ranges=no&etag=no&modified=no"])
        for (const more of [{}, { sha256: hash }]) {
          const warnings = [], { url } = file(env, query);
          await env.exhaust(100000);
          const onWarning = (message) => warnings.push(message);
          checkBytes(await load(env, url, { onWarning, ...more }), expected);
          check(warnings.length === 1 && warnings[0].startsWith(`${url} is loaded without`)
            && /\d+ bytes are needed/.test(warnings[0]), warnings.join("\n"));
          await env.exhaust(Infinity);
          await checkClean(env);
        }
      checkBytes(await load(env, file(env).url), expected);
    },
  },
  {
    name: "a file that changed when the quota was used up never loads mixed",
    needs: "exhaust",
    async run(env) {
      for (const query of ["", "&etag=no&modified=no"]) {
        const { url, go } = file(env, `chunked=1&ranges=no&hold=150000&change=2${query}`);
        await env.exhaust(200000);
        const source = await env.wick.openSource(url, options(env, await env.openCache()));
        const begin = await source.read(0, 50000, never());
        await go();
        const error = await failure(env, "IO", () => readAll(source, 50000, begin.length));
        checkChanged(env, url, error);
        await source.close();
        await env.exhaust(Infinity);
      }
    },
  },
  {
    name: "several connections fetch what is worth it, of one version of the file",
    needs: "nothing",
    async run(env) {
      const count = async (query, more) => {
        const one = file(env, query);
        checkBytes(await load(env, one.url, { cache: false, ...SHARED, ...more }), fileBytes(SIZE));
        return (await one.log()).length;
      };
      const shared = { cache: false, ...SHARED };
      const { result, log } = await sharing(env, "", 2, (url) => load(env, url, shared));
      checkBytes(result, fileBytes(SIZE));
      check((await log()).length > 15, "one connection only");
      check(await count("", { connections: 1 }) === 1, "several connections, not one");
      check(await count("", { segmentSize: SIZE / 8 }) === 1, "several for a small file");
      check(await count("hidden=1") === 1, "several, and nobody knows of which file");
      const wide = await sharing(env, "wide=1000", 2,
        (address) => failure(env, "IO", () => load(env, address, shared)));
      check(wide.result.message.includes("sent bytes up to"), wide.result.message);
      for (const query of ["change=3", "change=8"]) {
        const { url, result: error } = await sharing(env, query, 2,
          (address) => failure(env, "IO", () => load(env, address, shared)));
        checkChanged(env, url, error);
      }
    },
  },
  {
    name: "what came ahead and was not read is no progress of another reading",
    needs: "nothing",
    async run(env) {
      const seen = [], onProgress = (progress) => seen.push(progress);
      const { result: source } = await sharing(env, "pause=40", 5, async (url) => {
        const opened = await env.wick.openSource(url,
          options(env, false, { segmentSize: 32768, onProgress }));
        await opened.read(0, 20000, never());
        return opened;
      });
      await pause(500); // all segments that are under way come, and are dropped
      checkBytes(await readAll(source), fileBytes(SIZE));
      await source.close();
      check(seen.every(({ done, total }) => done <= total), JSON.stringify(seen));
    },
  },
  {
    name: "headers and a function of the caller's own go with each request",
    needs: "nothing",
    async run(env) {
      const seen = [];
      const own = (address, init) => {
        seen.push(new Headers(init.headers).get("x-own"));
        return env.fetch(address, { ...init, headers: { Range: init.headers.Range } });
      };
      const headers = [["x-own", "yes"]];
      const { result } = await sharing(env, "", 2,
        (url) => load(env, url, { cache: false, ...SHARED, headers, fetch: own }));
      checkBytes(result, fileBytes(SIZE));
      check(seen.length > 1 && seen.every((value) => value === "yes"), seen.join());
    },
  },
  {
    name: "models of the hub are found by their names",
    needs: "nothing",
    async run(env) {
      const hub = "https://huggingface.co/";
      const siblings = ["README.md", "m-Q4_K_M.gguf", "m-q8_0-00001-of-00002.gguf",
        "m-q8_0-00002-of-00002.gguf", "mmproj-f16.gguf", "sub/m f16.gguf"]
        .map((rfilename) => ({ rfilename }));
      let isOffline = false;
      const asked = [];
      const own = (address, init) => {
        asked.push(address);
        if (isOffline) return Promise.reject(new TypeError("no network"));
        if (address === `${hub}api/models/o/r`)
          return Promise.resolve(new Response(JSON.stringify({ siblings })));
        if (address.startsWith(`${hub}api/`))
          return Promise.resolve(new Response("", { status: 401 }));
        return env.fetch(`${env.base}/model.gguf?id=hub&size=${SIZE}`, init);
      };
      const cache = await env.openCache();
      const names = async (name) => {
        const sources = await env.wick.openSources(name, options(env, cache, { fetch: own }));
        for (const source of sources) await source.close();
        return sources.map((source) => source.name.replace(`${hub}o/r/resolve/main/`, ""));
      };
      const is = async (name, ...expected) => {
        const found = await names(name);
        check(found.join() === expected.join(), `${name}: ${found.join()}`);
      };
      await is("hf:o/r", "m-Q4_K_M.gguf");
      const parts = ["m-q8_0-00001-of-00002.gguf", "m-q8_0-00002-of-00002.gguf"];
      await is("hf:o/r:q8_0", ...parts);
      await is("hf:o/r:m-q8_0", ...parts);
      await is("hf:o/r:sub/m f16", "sub/m%20f16.gguf");
      asked.length = 0;
      await is("hf:o/r:m-Q4_K_M.gguf", "m-Q4_K_M.gguf");
      check(!asked.some((address) => address.includes("/api/")), "it asked which files there are");
      for (const wrong of ["hf:o/r:q4_k", "hf:o/r:f16", "hf:o/none"]) {
        const error = await failure(env, "NOT_FOUND", () => names(wrong));
        check(/hf:o\/r:m-Q4_K_M\.gguf|wants a token/.test(error.message), error.message);
      }
      for (const wrong of ["hf:", "hf:o", "hf:o/r/m.gguf", "hf:o/r:100%"])
        await failure(env, "ARGUMENT", () => names(wrong));
      const source = await env.wick.openSources("hf:o/r", options(env, cache, { fetch: own }));
      await readAll(source[0]);
      await source[0].close();
      isOffline = true;
      await is("hf:o/r", "m-Q4_K_M.gguf"); // as it is in the cache
      await failure(env, "IO", () => names("hf:o/r2"));
    },
  },
  {
    name: "a hub that does not answer is given up, by the signal or after a while",
    needs: "nothing",
    async run(env) {
      const silent = () => new Promise(() => undefined);
      const controller = new AbortController();
      const open = (more) =>
        env.wick.openSources("hf:o/r", { cache: false, fetch: silent, ...more });
      const opening = failure(env, "CANCELLED", () => open({ signal: controller.signal }));
      controller.abort();
      await opening;
      const { message } = await failure(env, "IO", () => open({ stallTimeout: 50 }));
      check(message.includes("nothing came for 0.05 s; is there a connection"), message);
    },
  },
  {
    name: "a damaged or missing part is fetched again alone",
    needs: "damage",
    async run(env) {
      const expected = fileBytes(SIZE), one = file(env);
      await load(env, one.url);
      for (const part of [0, 3, Math.floor(SIZE / PART_SIZE)]) {
        const n = (await one.log()).length;
        await env.damage(part);
        checkBytes(await load(env, one.url), expected);
        const gets = (await one.log()).slice(n).filter(({ method }) => method === "GET");
        check(gets.length === 1, `${gets.length} requests`);
        check(gets[0].range === `bytes=${part * PART_SIZE}-`, gets[0].range);
        await checkCached(env, one, expected);
      }
    },
  },
  {
    name: "a damaged part of a file that is gone is a clear error",
    needs: "damage",
    async run(env) {
      const one = file(env);
      await load(env, one.url);
      await env.damage(2);
      const gone = (url, more) => env.fetch(`${url}&status=404`, more);
      const error = await failure(env, "NOT_FOUND", () => load(env, one.url, { fetch: gone }));
      check(error.message.includes("part 3"), error.message);
    },
  },
  {
    name: "files, bytes and streams are read as they are",
    async run(env) {
      const expected = fileBytes(SIZE), hash = sha256(env, expected);
      const stream = () => new Blob([expected]).stream();
      for (const make of [() => expected, () => expected.buffer, () => new Blob([expected]),
        stream]) {
        checkBytes(await load(env, make()), expected);
        checkBytes(await load(env, make(), { sha256: hash }), expected);
        await failure(env, "MISMATCH",
                      () => load(env, make(), { sha256: hash.replace(/./g, "0") }));
      }
      const source = await env.wick.openSource(stream());
      check(source.isSequential, "a stream cannot be read again");
      await source.read(0, 10, never());
      await failure(env, "STATE", () => source.read(0, 10, never()));
      await source.close();
    },
  },
  {
    name: "what was read can be read again from the server",
    async run(env) {
      const expected = fileBytes(SIZE);
      for (const query of ["", "hidden=1"]) {
        const { url } = file(env, query);
        const source = await env.wick.openSource(url, options(env, false,
          { sha256: sha256(env, expected) }));
        check(!source.isSequential, "sequential");
        await source.read(0, 70000, never());
        await source.read(70000, 70000, never());
        checkBytes(await source.read(100, 200000, never()), expected.subarray(100, 200100));
        checkBytes(await readAll(source, 50000, 200100), expected.subarray(200100));
        await source.close();
      }
      const source = await env.wick.openSource(file(env, "ranges=no").url, options(env, false));
      check(source.isSequential, "not sequential");
      await source.close();
    },
  },
  {
    name: "a split model is opened as its files, from the first one's name or a list",
    async run(env) {
      const cache = await env.openCache();
      const base = `${env.base}/m-00001-of-00003.gguf?id=${Date.now()}-parts&size=100000`;
      const urls = [1, 2, 3].map((i) => base.replace("00001", `0000${i}`));
      for (const given of [base, urls]) {
        const seen = [];
        const sources = await env.wick.openSources(given,
          options(env, cache, { onProgress: (progress) => seen.push(progress) }));
        check(seen[0].phase === "connect" && seen[0].done === 0, JSON.stringify(seen[0]));
        check(sources.map(({ name }) => name).join() === urls.join(), "names");
        for (const source of sources) {
          checkBytes(await readAll(source), fileBytes(100000));
          await source.close();
        }
        check(seen.at(-1).done === 300000 && seen.at(-1).total === 300000, JSON.stringify(seen));
      }
      const large = 1600000;
      const list = [1, 2, 3].map(() => file(env, "", large));
      for (const nth of [1, 2]) {
        const sources = await env.wick.openSources(list.map(({ url }) => url), options(env, cache));
        for (const source of sources) { // the headers, then all data
          check(source.size === large, `size ${source.size}`);
          checkBytes(await source.read(0, 256 << 10, never()), fileBytes(256 << 10));
        }
        for (const source of sources) checkBytes(await readAll(source, 1 << 19), fileBytes(large));
        for (const source of sources) await source.close();
        for (const [i, { log }] of list.entries()) {
          const gets = (await log()).filter(({ method }) => method === "GET");
          check(gets.length === (i === 0 ? 1 : 2), `${gets.length} requests of load ${nth}`);
        }
      }
      const [first, changing] = [file(env, "", large), file(env, "change=2", large)];
      const mixed = await env.wick.openSources([first.url, changing.url], options(env, cache));
      await mixed[1].read(0, 1000, never());
      await failure(env, "IO", () => mixed[1].read(0, 1500000, never()));
      for (const source of mixed) await source.close();
      await failure(env, "NOT_FOUND", () => env.wick.openSources(
        [first.url, file(env, "status=404").url], options(env, cache)));
      await failure(env, "ARGUMENT",
                    () => env.wick.openSources(urls, { sha256: ["0".repeat(64)] }));
      await failure(env, "ARGUMENT", () => env.wick.openSources([]));
    },
  },
];

export const scenarios = [...throughCache, ...streamed, ...failing, ...resumed, ...changed,
  ...others];
