/** What a model can be loaded from. */
import { cacheName, pageUrl } from "./cache.js";
import { kindOf, WickError } from "./errors.js";

/** One file: an address, a File, bytes, a stream, or the name of an entry of the cache. */
export type FileSource =
  | string | URL | Blob | ArrayBuffer | Uint8Array | ReadableStream<Uint8Array>
  | { cached: string };

/** A model: one file, or all files of a split one in their order. */
export type ModelSource = FileSource | readonly (string | URL)[] | readonly Blob[];

export const isAddress = (source: FileSource): source is string | URL =>
  typeof source === "string" || source instanceof URL;

/** By their names: those of a frame are of other classes. */
const isFile = (source: FileSource): boolean =>
  /^\[object (Blob|File|ArrayBuffer|Uint8Array|ReadableStream)\]$/
    .test(Object.prototype.toString.call(source));

/** As it goes to a worker, which has another base, and to which no URL passes. */
export function plainSource(source: ModelSource): ModelSource {
  return Array.isArray(source) ? source.map(plainFile) as string[] | Blob[]
    : plainFile(source as FileSource);
}

/** Callers in JavaScript may give anything. */
function plainFile(source: FileSource): FileSource {
  const absolute = (url: string | URL) =>
    pageUrl() === undefined ? String(url) : cacheName(url);
  if (isAddress(source)) return absolute(source);
  if (isFile(source)) return source;
  const { cached } = (source ?? {}) as { cached?: string };
  if (cached !== undefined) return { cached: absolute(cached) };
  throw new WickError("ARGUMENT", "a model is loaded from an address, a File, bytes, a stream (as "
    + `the body of a Response) or { cached }, not from ${kindOf(source)}`);
}
