/**
 * Where the cache keeps its files: small ones in one level of folders, written and read whole. The
 * origin's private file system, else the Cache API, else memory.
 */
import { OutOfMemoryError } from "./errors.js";

/** A write that was cut off may leave anything in its file, but harms no other. */
export interface Storage {
  readonly kind: "opfs" | "cache-api" | "memory";
  folders(): Promise<string[]>;
  /** undefined: there is no such file. */
  read(folder: string, file: string): Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** Replaces what is there. OUT_OF_MEMORY: the origin's quota is used up. */
  write(folder: string, file: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** A folder that is not there is no error. */
  remove(folder: string): Promise<void>;
}

/** Bytes of this origin on the disk and how many there may be, if the browser reports it. */
export interface StorageEstimate {
  usage?: number;
  quota?: number;
}

export async function estimateStorage(): Promise<StorageEstimate> {
  // Without an origin there is none, and Firefox (153) never answers a worker that asks.
  if (globalThis.origin === "null") return {};
  try {
    return (await globalThis.navigator?.storage?.estimate()) ?? {};
  } catch {
    return {}; // a context that may not ask: writing will tell
  }
}

/**
 * Asks the browser, which may ask the user, not to clear this origin's storage when the disk is
 * full. Workers cannot. Nothing waits for the answer: it only matters later.
 */
export function askToPersist(): void {
  globalThis.navigator?.storage?.persist?.().catch(() => undefined);
}

/** The best place that this context has. */
export async function openStorage(): Promise<Storage> {
  try {
    const root = await globalThis.navigator?.storage?.getDirectory?.();
    // Pages of older Safari have neither way to write.
    const isWritable = ["createSyncAccessHandle", "createWritable"]
      .some((way) => way in FileSystemFileHandle.prototype);
    if (root !== undefined && isWritable)
      return new OpfsStorage(await root.getDirectoryHandle("wick", { create: true }));
  } catch {
    // Firefox refuses in private windows, Safari in some frames: the next kind.
  }
  try {
    if (globalThis.caches !== undefined) return new CacheApiStorage(await caches.open("wick"));
  } catch {
    // Refused, as above.
  }
  return new MemoryStorage();
}

const isNamed = (error: unknown, name: string): boolean =>
  error instanceof Error && error.name === name;

async function checked(bytes: number, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (cause) {
    if (!isNamed(cause, "QuotaExceededError")) throw cause;
    throw await quotaError(bytes, cause);
  }
}

/** The sentence for bytes that find no room. */
export async function quotaError(bytes: number, cause?: unknown): Promise<OutOfMemoryError> {
  const { usage, quota } = await estimateStorage();
  const told = usage !== undefined && quota !== undefined ? Math.max(quota - usage, 0) : Infinity;
  // Chromium reports 10 GiB left to every page, regardless of the disk.
  const left = told < bytes ? told : undefined;
  const there = left === undefined ? "" : `, ${left} bytes are left`;
  return new OutOfMemoryError(`the browser has no room in this page's storage: ${bytes} `
    + `bytes are needed${there}; delete models from the cache, or load without it`,
  { cause, bytesRequested: bytes, bytesAvailable: left });
}

/* ---- The origin's private file system ---- */

/** In workers only, so TypeScript's library for pages lacks it. */
interface SyncAccessHandle {
  write(bytes: Uint8Array, options: { at: number }): number;
  truncate(size: number): void;
  flush(): void;
  close(): void;
}

type FileHandle = FileSystemFileHandle & { createSyncAccessHandle?(): Promise<SyncAccessHandle> };
type DirectoryHandle = FileSystemDirectoryHandle & { values(): AsyncIterable<FileSystemHandle> };

/** undefined where it is not there, or another tab writes it just now. */
async function ifFound<T>(handle: Promise<T>): Promise<T | undefined> {
  try {
    return await handle;
  } catch (error) {
    if (isNamed(error, "NotFoundError") || isNamed(error, "NotReadableError")) return undefined;
    throw error;
  }
}

export class OpfsStorage implements Storage {
  readonly kind = "opfs";
  readonly #top: FileSystemDirectoryHandle;

  constructor(top: FileSystemDirectoryHandle) {
    this.#top = top;
  }

  async folders(): Promise<string[]> {
    const names: string[] = [];
    // Not the probe of another context, which is a file.
    for await (const { name, kind } of (this.#top as DirectoryHandle).values())
      if (kind === "directory") names.push(name);
    return names;
  }

  async read(folder: string, file: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const directory = await ifFound(this.#top.getDirectoryHandle(folder));
    const handle = directory && await ifFound(directory.getFileHandle(file));
    const content = handle && await ifFound(handle.getFile().then((found) => found.arrayBuffer()));
    return content && new Uint8Array(content);
  }

  async write(folder: string, file: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await checked(bytes.length, async () => {
      const directory = await this.#top.getDirectoryHandle(folder, { create: true });
      const handle: FileHandle = await directory.getFileHandle(file, { create: true });
      if (handle.createSyncAccessHandle !== undefined)
        writeAll(await openHeld(handle), bytes);
      else
        await writeStream(await handle.createWritable(), bytes);
    });
  }

  async remove(folder: string): Promise<void> {
    await ifFound(this.#top.removeEntry(folder, { recursive: true }));
  }
}

/** Of files that are being opened. */
const heldHandles = new Set<FileHandle>();

/**
 * Chromium (156) does not hold the handle while createSyncAccessHandle is under way: where it is
 * collected meanwhile, the promise never settles. Nor does a function that waits hold what it no
 * longer uses.
 */
async function openHeld(handle: FileHandle): Promise<SyncAccessHandle> {
  heldHandles.add(handle);
  try {
    return await handle.createSyncAccessHandle!();
  } finally {
    heldHandles.delete(handle);
  }
}

function writeAll(handle: SyncAccessHandle, bytes: Uint8Array): void {
  try {
    handle.truncate(0);
    const size = handle.write(bytes, { at: 0 });
    if (size < bytes.length) throw new DOMException("the disk is full", "QuotaExceededError");
    handle.flush();
  } finally {
    handle.close();
  }
}

async function writeStream(stream: FileSystemWritableFileStream,
                           bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  try {
    await stream.write(bytes);
  } catch (error) {
    await stream.abort().catch(() => undefined); // the first failure is reported
    throw error;
  }
  await stream.close();
}

/* ---- The Cache API ---- */

/** Files are stored as answers to requests to a host that cannot exist, so none is ever sent. */
const HOST = "https://wick.invalid/";

export class CacheApiStorage implements Storage {
  readonly kind = "cache-api";
  readonly #cache: Cache;

  constructor(cache: Cache) {
    this.#cache = cache;
  }

  async folders(): Promise<string[]> {
    const requests = await this.#cache.keys();
    const names = requests.map(({ url }) => url.slice(HOST.length).split("/")[0]!);
    return [...new Set(names)];
  }

  async read(folder: string, file: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const answer = await this.#cache.match(`${HOST}${folder}/${file}`);
    return answer && new Uint8Array(await answer.arrayBuffer());
  }

  async write(folder: string, file: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await checked(bytes.length,
                  () => this.#cache.put(`${HOST}${folder}/${file}`, new Response(bytes)));
  }

  async remove(folder: string): Promise<void> {
    const requests = await this.#cache.keys();
    await Promise.all(requests.filter(({ url }) => url.startsWith(`${HOST}${folder}/`))
      .map((request) => this.#cache.delete(request)));
  }
}

/* ---- Memory ---- */

/** Bytes: models beside themselves in memory would take it from what they need. */
const MOST_REMEMBERED = 256 << 20;

/** Of this page or worker: what each opening of the cache finds again until the page is closed. */
const remembered = new Map<string, Map<string, Uint8Array<ArrayBuffer>>>();

export class MemoryStorage implements Storage {
  readonly kind = "memory";

  folders(): Promise<string[]> {
    return Promise.resolve([...remembered.keys()]);
  }

  read(folder: string, file: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    return Promise.resolve(remembered.get(folder)?.get(file));
  }

  async write(folder: string, file: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const files = remembered.get(folder) ?? new Map<string, Uint8Array<ArrayBuffer>>();
    const size = [...remembered.values()].flatMap((those) => [...those.values()])
      .reduce((sum, { length }) => sum + length, bytes.length - (files.get(file)?.length ?? 0));
    if (size > MOST_REMEMBERED) throw await quotaError(bytes.length);
    remembered.set(folder, files.set(file, bytes.slice()));
  }

  remove(folder: string): Promise<void> {
    remembered.delete(folder);
    return Promise.resolve();
  }
}
