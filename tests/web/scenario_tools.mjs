// What scenarios (source_scenarios.mjs) load and check with.
export const PART_SIZE = 1 << 16;
export const SIZE = 400000;

export const check = (isTrue, message) => {
  if (!isTrue) throw new Error(message);
};

export function checkBytes(found, expected) {
  check(found.length === expected.length, `${found.length} bytes, not ${expected.length}`);
  for (let i = 0; i < found.length; i++)
    if (found[i] !== expected[i]) check(false, `byte ${i} differs`);
}

export const pause = (milliseconds) =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

export const never = () => new AbortController().signal;

export async function readAll(source, size = 50000, begin = 0) {
  const pieces = [];
  for (let at = begin; ;) {
    const bytes = await source.read(at, size, never());
    pieces.push(bytes.slice());
    at += bytes.length;
    if (bytes.length < size) return new Uint8Array(await new Blob(pieces).arrayBuffer());
  }
}

/** The error that work fails with, which must be a WickError of this code. */
export async function failure({ wick }, code, work) {
  try {
    await work();
  } catch (error) {
    check(error instanceof wick.WickError, `not a WickError: ${error?.stack}`);
    check(error.code === code, `${error.code}, not ${code}: ${error.message}`);
    return error;
  }
  throw new Error(`did not fail with ${code}`);
}

let counter = 0;
/** The address of a file of its own, and how to read its log. */
export function file({ base }, query = "", size = SIZE) {
  const id = `${Date.now()}-${counter++}`;
  const url = `${base}/model.gguf?id=${id}&size=${size}&${query}`;
  return { url, log: async () => (await fetch(`${base}/log?id=${id}`)).json(),
    go: () => fetch(`${base}/go?id=${id}`) };
}

export const options = (env, cache, more = {}) =>
  ({ cache, fetch: env.fetch, retryDelay: 1, stallTimeout: 2000, ...more });

export const sha256 = ({ wick }, bytes) => new wick.Sha256().add(bytes).digest();

/** Loads by a cache as another tab would, to its end. */
export async function load(env, url, more) {
  const source = await env.wick.openSource(url, options(env, await env.openCache(), more));
  try {
    return await readAll(source);
  } finally {
    await source.close();
  }
}

/** The entry is complete, and another tab reads it without asking for a byte. */
export async function checkCached(env, { url, log }, expected) {
  const cache = await env.openCache();
  const entry = await cache.get(url);
  check(entry?.isComplete, `the entry is ${JSON.stringify(entry)}`);
  check(entry.size === expected.length && entry.storedSize === expected.length, "size");
  check(entry.sha256 === sha256(env, expected), "hash");
  const before = (await log()).filter(({ method }) => method === "GET").length;
  checkBytes(await load(env, { cached: url }), expected);
  checkBytes(await load(env, url), expected);
  const after = (await log()).filter(({ method }) => method === "GET").length;
  check(before === after, "the server was asked again");
}

export async function checkClean(env) {
  const entries = await (await env.openCache()).list();
  check(entries.length === 0, `left behind: ${JSON.stringify(entries)}`);
}

/** The server's change is what an error tells, not what followed from it. */
export function checkChanged({ wick }, url, error) {
  check(error instanceof wick.WickError && error.code === "IO"
    && error.message.startsWith(`${url} was changed on the server`), String(error));
}

/** Reads to `bytes` or more, then closes as a tab that is closed does. */
export async function loadBegin(env, url, bytes, more) {
  const source = await env.wick.openSource(url, options(env, await env.openCache(), more));
  await source.read(0, bytes, never());
  await source.close();
}

/** Changes a part of the only entry of a storage; the first one becomes shorter, too. */
export async function damagePart(storage, index) {
  const folder = (await storage.folders()).find((name) => name !== "locks");
  const bytes = (await storage.read(folder, `part.${index}`)).slice();
  bytes[100] ^= 1;
  await storage.write(folder, `part.${index}`, index === 0 ? bytes.slice(0, 1000) : bytes);
}

