/** What a model is loaded from, opened as sources of bytes. */
import {
  type ByteSource, cancelled, ProgressMeter, type ProgressListener,
} from "./byte_source.js";
import { cacheName, ModelCache } from "./cache.js";
import { CachedFile, type CachedFileOptions } from "./cached_file.js";
import { HttpFile, type HttpOptions } from "./download.js";
import type { Entry, Manifest } from "./entry.js";
import { WickError } from "./errors.js";
import { HttpSource } from "./http_source.js";
import { hubAddress } from "./hub.js";
import { BEGINNING, LaterSource } from "./later_source.js";
import { isAddress, type FileSource, type ModelSource } from "./model_source.js";
import { BlobSource, MemorySource, StreamSource } from "./plain_source.js";
import { hashError } from "./sha256.js";
import { CacheOrServer, openUncached, type WarningOptions } from "./uncached_source.js";
import { VerifiedSource } from "./verified_source.js";

export type { ByteSource, DownloadProgress } from "./byte_source.js";

export interface SourceOptions extends HttpOptions, WarningOptions {
  /**
   * Whether addresses are read through the cache (default). false: straight from the server.
   * "read": what is complete there is used, nothing is stored. Or a cache that was opened before.
   */
  cache?: boolean | "read" | ModelCache;
  /** Of the file, in hex, or one for each file of a split model: nothing else is loaded. */
  sha256?: string | readonly string[];
  /** Ends opening, and what the source does afterwards. */
  signal?: AbortSignal;
  onProgress?: ProgressListener;
}

/** NAME-00001-of-00003.gguf: what llama.cpp calls the files of a split model. */
const PART_NAME = /-(\d{5})-of-(\d{5})\.gguf$/;

/** All files of the model that an address is the first of. */
function listParts(url: string | URL): string[] {
  const first = new URL(cacheName(url));
  const found = PART_NAME.exec(first.pathname);
  if (found === null || Number(found[1]) !== 1) return [first.href];
  return Array.from({ length: Number(found[2]) }, (_, i) => {
    const part = new URL(first);
    const number = String(i + 1).padStart(5, "0");
    part.pathname = first.pathname.replace(PART_NAME, `-${number}-of-${found[2]!}.gguf`);
    return part.href;
  });
}

/** The files of a model, each of which `openSource` opens. */
async function listFiles(source: ModelSource, options: SourceOptions): Promise<FileSource[]> {
  if (Array.isArray(source)) return [...source as readonly FileSource[]];
  const one = source as FileSource;
  if (!isAddress(one)) return [one];
  return listParts(await hubAddress(String(one), options, await cacheOf(options)));
}

/**
 * Opens all files of a model; progress is of all together. The caller closes each. The core makes
 * one model of them (wick_source_join_start).
 */
export async function openSources(source: ModelSource,
                                  options: SourceOptions = {}): Promise<ByteSource[]> {
  if ([source].flat().some((file) => isAddress(file as FileSource)))
    options.onProgress?.({ phase: "connect", done: 0, total: undefined, bytesPerSecond: 0,
      secondsLeft: undefined });
  const files = await listFiles(source, options);
  const hashes = options.sha256 === undefined ? [] : [options.sha256].flat();
  if (files.length === 0) throw new WickError("ARGUMENT", "a model has at least one file");
  if (hashes.length > 0 && hashes.length !== files.length)
    throw new WickError("ARGUMENT", `${hashes.length} hashes are given for ${files.length} files`);
  const listeners = shareProgress(files.length, options.onProgress);
  const opened = await Promise.allSettled(files.map((file, i) => {
    const own = { ...options, sha256: hashes[i], onProgress: listeners[i] };
    return i > 0 && isAddress(file) ? openLater(file, own) : openSource(file, own);
  }));
  const failed = opened.find(({ status }) => status === "rejected");
  if (failed === undefined) return opened.map((one) => (one as Opened).value);
  await Promise.all(opened.map((one) => one.status === "fulfilled" && one.value.close()));
  throw (failed as PromiseRejectedResult).reason;
}

type Opened = PromiseFulfilledResult<ByteSource>;

/** A file whose data are wanted later than its header. */
async function openLater(url: string | URL, options: SourceOptions): Promise<ByteSource> {
  const signal = options.signal ?? new AbortController().signal;
  const { onProgress } = options;
  if (await (await cacheOf(options))?.has(url)) return openSource(url, options);
  const first = await HttpSource.open(cacheName(url),
                                      { ...options, onProgress: undefined, connections: 1 });
  try {
    const { name, size, isSequential } = first;
    const beginning = await first.read(0, BEGINNING, signal);
    if (isSequential || beginning.length < BEGINNING) return await openSource(url, options);
    onProgress?.({ phase: "download", done: 0, total: size, bytesPerSecond: 0,
      secondsLeft: undefined });
    return new LaterSource(name, size, beginning, options.signal,
                           (closing) => openSource(url, { ...options, signal: closing }));
  } finally {
    await first.close();
  }
}

/** One listener for each of n files. */
function shareProgress(n: number, listener: ProgressListener | undefined): ProgressListener[] {
  if (listener === undefined || n === 1) return listener === undefined ? [] : [listener];
  const done = new Array<number>(n).fill(0);
  const totals = new Array<number | undefined>(n).fill(undefined);
  const meter = new ProgressMeter(listener);
  return done.map((_, i) => (progress) => {
    done[i] = progress.done;
    totals[i] = progress.total;
    const isKnown = totals.every((total) => total !== undefined);
    const sum = (terms: (number | undefined)[]): number =>
      terms.reduce<number>((a, b) => a + (b ?? 0), 0);
    meter.update(progress.phase, sum(done), isKnown ? sum(totals) : undefined);
  });
}

/**
 * Opens one file. Returns as soon as its first bytes can be read: those of a download are read
 * while the others come.
 */
export async function openSource(source: FileSource,
                                 options: SourceOptions = {}): Promise<ByteSource> {
  if (options.signal?.aborted) throw cancelled(options.signal);
  const hash = options.sha256 === undefined ? undefined : [options.sha256].flat()[0];
  if (hash !== undefined && !/^[0-9a-f]{64}$/i.test(hash))
    throw new WickError("ARGUMENT", `'${hash}' is no SHA-256, which has 64 hexadecimal digits`);
  if (isAddress(source)) return openUrl(cacheName(source), hash, options);
  if ("cached" in source) return openCached(source.cached, hash, options);
  const file = "size" in source ? new BlobSource(source)
    : "getReader" in source ? new StreamSource(source)
      : new MemorySource(source);
  return hash === undefined ? file : new VerifiedSource(file, hash);
}

/** undefined: none is wanted. */
async function cacheOf({ cache = true }: SourceOptions): Promise<ModelCache | undefined> {
  if (cache === false) return undefined;
  return cache instanceof ModelCache ? cache : ModelCache.open();
}

async function openUrl(url: string, hash: string | undefined,
                       options: SourceOptions): Promise<ByteSource> {
  const own = { ...options, sha256: hash };
  const cache = await cacheOf(options);
  if (cache !== undefined) {
    const entry = await cache.entry(url);
    const found = await findComplete(entry);
    if (found !== undefined && await isWanted(found, url, own))
      return CachedFile.complete(entry, found, own);
    if (options.cache !== "read")
      return CachedFile.fill(entry, url, cache.partSize, { ...own, outdated: found })
        .then((file) => new CacheOrServer(file, own), (reason) => openUncached(url, own, reason));
  }
  const file = await HttpSource.open(url, options);
  return hash === undefined ? file : new VerifiedSource(file, hash);
}

async function findComplete(entry: Entry): Promise<Manifest | undefined> {
  const found = await entry.load();
  return found?.sha256 === undefined ? undefined : found;
}

/** Of a complete file: by the hash that is given, else by what the server says. */
async function isWanted(found: Manifest, url: string,
                        options: CachedFileOptions): Promise<boolean> {
  if (options.sha256 !== undefined) return options.sha256.toLowerCase() === found.sha256;
  return new HttpFile(url, options, found.identity).isCurrent(options.signal);
}

async function openCached(name: string, hash: string | undefined,
                          options: SourceOptions): Promise<ByteSource> {
  const entry = await (await cacheOf(options) ?? await ModelCache.open()).entry(name);
  const found = await entry.load();
  if (found === undefined)
    throw new WickError("NOT_FOUND", `${name} is not in the cache; load it from its address`);
  if (found.sha256 === undefined)
    throw new WickError("NOT_FOUND", `${name} is not complete in the cache; load it from its `
      + "address, which goes on with it");
  if (hash !== undefined && hash.toLowerCase() !== found.sha256)
    throw hashError(`${name} in the cache`, found.sha256, hash);
  return CachedFile.complete(entry, found, { ...options, sha256: hash });
}
