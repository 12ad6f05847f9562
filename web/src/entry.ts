/**
 * A file in the cache: its parts, and a manifest that says which are there. The manifest has two
 * slots that are written in turn, each with a hash of its own: whenever a write is cut off, the one
 * before stands.
 */
import type { Identity } from "./download.js";
import type { Locks, Release } from "./lock.js";
import { sha256 } from "./sha256.js";
import type { Storage } from "./storage.js";

export interface Manifest {
  readonly name: string;
  identity: Identity;
  /** Bytes, a multiple of 64. */
  readonly partSize: number;
  /** The SHA-256 of each part that is whole; the last of a complete file may be shorter. */
  readonly parts: string[];
  /** The state of the file's hash after these parts. */
  state: string;
  /** What is there of the next part, with the hash of the file up to its end. */
  tail?: { size: number; sha256: string };
  /** Of the whole file. Only a complete one has it. */
  sha256?: string;
  /** When a byte was last written: milliseconds since 1970. */
  date: number;
}

/** Bytes of the file that are there. */
export function storedSize(manifest: Manifest): number {
  if (manifest.sha256 !== undefined) return manifest.identity.size ?? 0;
  return manifest.parts.length * manifest.partSize + (manifest.tail?.size ?? 0);
}

interface Stored {
  sequence: number;
  manifest: Manifest;
}

const SLOTS = ["manifest.0", "manifest.1"] as const;
const HASH_SIZE = 64;

export class Entry {
  readonly folder: string;
  readonly #storage: Storage;
  readonly #locks: Locks;

  constructor(storage: Storage, locks: Locks, folder: string) {
    this.#storage = storage;
    this.#locks = locks;
    this.folder = folder;
  }

  get kind(): Storage["kind"] {
    return this.#storage.kind;
  }

  /** Names may be URLs, and long: the folder is called by their hash. */
  static async of(storage: Storage, locks: Locks, name: string): Promise<Entry> {
    const hash = await sha256(new TextEncoder().encode(name));
    return new Entry(storage, locks, hash.slice(0, 32));
  }

  /** Who writes holds it. undefined: somebody else does. */
  tryLock(): Promise<Release | undefined> {
    return this.#locks.tryLock(this.folder);
  }

  /** Work that writes and does not wait for its turn. undefined: somebody else writes. */
  async exclusively<T>(work: () => Promise<T>): Promise<T | undefined> {
    const release = await this.tryLock();
    if (release === undefined) return undefined;
    try {
      return await work();
    } finally {
      await release();
    }
  }

  /** undefined: nothing there can be used. */
  async load(): Promise<Manifest | undefined> {
    return (await this.#newest())?.manifest;
  }

  async save(manifest: Manifest): Promise<void> {
    const sequence = ((await this.#newest())?.sequence ?? -1) + 1;
    const json = new TextEncoder().encode(JSON.stringify({ sequence, manifest }));
    const bytes = new Uint8Array(HASH_SIZE + json.length);
    bytes.set(new TextEncoder().encode(await sha256(json)));
    bytes.set(json, HASH_SIZE);
    await this.#storage.write(this.folder, SLOTS[sequence % SLOTS.length]!, bytes);
  }

  /** All that is there of a part, unchecked. */
  readPart(index: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    return this.#storage.read(this.folder, `part.${index}`);
  }

  async writePart(index: number, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#storage.write(this.folder, `part.${index}`, bytes);
  }

  async clear(): Promise<void> {
    await this.#storage.remove(this.folder);
  }

  async #newest(): Promise<Stored | undefined> {
    const slots = await Promise.all(SLOTS.map((slot) => this.#readSlot(slot)));
    return slots.sort((a, b) => (b?.sequence ?? -1) - (a?.sequence ?? -1))[0];
  }

  async #readSlot(slot: string): Promise<Stored | undefined> {
    const bytes = await this.#storage.read(this.folder, slot);
    if (bytes === undefined || bytes.length <= HASH_SIZE) return undefined;
    const json = bytes.slice(HASH_SIZE);
    const hash = new TextDecoder().decode(bytes.subarray(0, HASH_SIZE));
    if (hash !== await sha256(json)) return undefined;
    return JSON.parse(new TextDecoder().decode(json)) as Stored;
  }
}
