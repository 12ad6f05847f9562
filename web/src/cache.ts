/** The models that this origin keeps: what is there, and how much room it takes. */
import { Entry, storedSize } from "./entry.js";
import { WickError } from "./errors.js";
import { LEASE_FOLDER, type Locks, openLocks } from "./lock.js";
import { estimateStorage, openStorage, type Storage, type StorageEstimate } from "./storage.js";

/** A file in the cache. */
export interface CacheEntry {
  /** The address that it came from. */
  name: string;
  /** Bytes of the file, when known. */
  size: number | undefined;
  /** Bytes that are there. */
  storedSize: number;
  /** False: a download that was interrupted; loading its address goes on with it. */
  isComplete: boolean;
  /** Of a complete file, in hex. */
  sha256: string | undefined;
  /** When a byte was last written. */
  date: Date;
}

export interface CacheOptions {
  /** Bytes of a part: what is hashed, stored and, when damaged, fetched again as one. */
  partSize?: number;
}

const PART_SIZE = 16 << 20;

/** Protocols of files on the disk; C:\model.gguf parses as an address, too. */
const ON_DISK = /^(file|[a-z]):/;

/** What addresses are relative to; undefined: to nothing, as in Node. */
export const pageUrl = (): string | undefined =>
  globalThis.document?.baseURI ?? globalThis.location?.href;

/** The name that an address has in the cache: absolute, without a fragment. */
export function cacheName(url: string | URL): string {
  try {
    const absolute = new URL(url, pageUrl());
    if (ON_DISK.test(absolute.protocol)) throw new TypeError("it is on the disk");
    absolute.hash = "";
    return absolute.href;
  } catch (cause) {
    throw new WickError("ARGUMENT", `'${url}' is not an address that can be fetched: give a file `
      + "of the disk as a File or Blob (in Node: await fs.openAsBlob(path))", { cause });
  }
}

export class ModelCache {
  /** Bytes of a part of files that come into the cache. */
  readonly partSize: number;
  readonly #storage: Storage;
  readonly #locks: Locks;

  /** Of a place of your own; most callers want `ModelCache.open`. */
  constructor(storage: Storage, locks: Locks, options: CacheOptions = {}) {
    this.partSize = options.partSize ?? PART_SIZE;
    if (this.partSize <= 0 || this.partSize % 64 !== 0)
      throw new WickError("ARGUMENT", `${this.partSize} is no size of parts: a multiple of 64 is`);
    this.#storage = storage;
    this.#locks = locks;
  }

  /** The cache of this origin, which all its pages and workers share. */
  static async open(options?: CacheOptions): Promise<ModelCache> {
    const storage = await openStorage();
    return new ModelCache(storage, openLocks(storage), options);
  }

  /** Where it keeps its files; "memory" ends with the page. */
  get kind(): Storage["kind"] {
    return this.#storage.kind;
  }

  /** What is there, complete or not. Removes what was begun and cannot be used. */
  async list(): Promise<CacheEntry[]> {
    const folders = (await this.#storage.folders()).filter((name) => name !== LEASE_FOLDER);
    const entries = await Promise.all(folders.map((folder) => this.#describe(folder)));
    return entries.filter((entry) => entry !== undefined)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The entry of an address or name. */
  async get(name: string | URL): Promise<CacheEntry | undefined> {
    return this.#describe((await this.entry(name)).folder);
  }

  /** Whether it is there, and complete. */
  async has(name: string | URL): Promise<boolean> {
    return (await this.get(name))?.isComplete ?? false;
  }

  /** Bytes of all entries. */
  async size(): Promise<number> {
    return (await this.list()).reduce((sum, entry) => sum + entry.storedSize, 0);
  }

  /** What this origin uses of the disk, not only for models, and how much it may. */
  estimate(): Promise<StorageEstimate> {
    return estimateStorage();
  }

  /** False: there is none. STATE: it is being downloaded just now. */
  async delete(name: string | URL): Promise<boolean> {
    const entry = await this.entry(name);
    const wasThere = await entry.exclusively(async () => {
      const isThere = await entry.load() !== undefined;
      await entry.clear();
      return isThere;
    });
    if (wasThere !== undefined) return wasThere;
    throw new WickError("STATE", `${cacheName(name)} is being downloaded just now, perhaps by `
      + "another tab; stop that first");
  }

  /** Where an address has its files. For sources; others want `get`. */
  entry(name: string | URL): Promise<Entry> {
    return Entry.of(this.#storage, this.#locks, cacheName(name));
  }

  async #describe(folder: string): Promise<CacheEntry | undefined> {
    const entry = new Entry(this.#storage, this.#locks, folder);
    const manifest = await entry.load();
    if (manifest === undefined) {
      await this.#sweep(entry);
      return undefined;
    }
    const { name, identity, sha256, date } = manifest;
    return { name, size: identity.size, storedSize: storedSize(manifest),
      isComplete: sha256 !== undefined, sha256, date: new Date(date) };
  }

  /** Removes what no manifest speaks of, unless somebody is about to write one. */
  async #sweep(entry: Entry): Promise<void> {
    await entry.exclusively(async () => {
      if (await entry.load() === undefined) await entry.clear();
    });
  }
}
