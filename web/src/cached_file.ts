/**
 * A file that is read from the cache, or while it comes into it. One writer fills an entry; others
 * that want the same file read the parts as they are ready, and take over when the writer is gone.
 * Each part is checked against its hash before anybody reads it from the storage; one that is
 * damaged is fetched again alone.
 */
import {
  abortable, type ByteSource, cancelled, joinBytes, linkedController, ProgressMeter,
  type ProgressListener,
} from "./byte_source.js";
import { FileChangedError, HttpFile, type HttpOptions, type Identity } from "./download.js";
import { type Entry, type Manifest, storedSize } from "./entry.js";
import { WickError } from "./errors.js";
import type { Release } from "./lock.js";
import { Partial } from "./partial.js";
import { sha256 } from "./sha256.js";
import { estimateStorage, quotaError } from "./storage.js";

export interface CachedFileOptions extends HttpOptions {
  /** Of the file, in hex. */
  sha256?: string;
  /** What is complete in the cache, and not wanted any more. */
  outdated?: Manifest;
  onProgress?: ProgressListener;
  /** Ends all, as close does. */
  signal?: AbortSignal;
}

/**
 * The last bytes that have arrived are withheld from the reader until the whole file is there and
 * checked: so a wrong file never loads, even if padding follows its last tensor.
 */
const HELD_BACK = 1 << 16;
/** Milliseconds between two looks at what another writer has done. */
const LOOK_INTERVAL = 300;
/** Of a file that changes again and again. */
const MAX_BEGINNINGS = 3;

export class CachedFile implements ByteSource {
  readonly name: string;
  readonly isSequential = false;
  readonly #entry: Entry;
  readonly #options: CachedFileOptions;
  readonly #meter: ProgressMeter;
  readonly #closing: AbortController;
  readonly #wasComplete: boolean;
  #manifest: Manifest;
  /** Of what this source downloads. */
  #partial: Partial | undefined;
  /** Parts in use: the one that is read, and the next. */
  readonly #parts = new Map<number, Promise<Uint8Array>>();
  /** Parts that come, in use or not. */
  readonly #reads = new Set<Promise<Uint8Array>>();
  /** The server still has the file whose beginning is there. */
  #isConfirmed = false;
  #isRead = false;
  #failure: unknown;
  #filling: Promise<void> = Promise.resolve();
  #changed!: Promise<void>;
  #wake!: () => void;

  private constructor(entry: Entry, manifest: Manifest, options: CachedFileOptions) {
    this.name = manifest.name;
    this.#entry = entry;
    this.#manifest = manifest;
    this.#wasComplete = manifest.sha256 !== undefined;
    this.#options = options;
    this.#meter = new ProgressMeter(options.onProgress);
    this.#closing = linkedController(options.signal);
    this.#renew();
  }

  /** A file that is complete in the cache. */
  static complete(entry: Entry, manifest: Manifest, options: CachedFileOptions): CachedFile {
    return new CachedFile(entry, manifest, options);
  }

  /** A file that comes into the cache, from the address that its name is. */
  static async fill(entry: Entry, name: string, partSize: number,
                    options: CachedFileOptions): Promise<CachedFile> {
    const manifest: Manifest = { name, identity: {}, partSize, parts: [], state: "", date: 0 };
    const file = new CachedFile(entry, manifest, options);
    file.#filling = file.#fillAlone().catch((error: unknown) => {
      file.#failure = error;
    }).finally(() => file.#tell());
    // What fails at once (no such file, a page for people) fails here; what is there says its size.
    while (!file.#isConfirmed && !file.#isComplete) await file.#change();
    return file;
  }

  get size(): number | undefined {
    return this.#manifest.identity.size;
  }

  get identity(): Identity {
    return this.#manifest.identity;
  }

  async read(offset: number, size: number, signal: AbortSignal): Promise<Uint8Array> {
    if (signal.aborted) throw cancelled(signal);
    while (!this.#canRead(offset, size)) await this.#change(signal);
    this.#isRead = true;
    const end = this.#isComplete ? Math.min(offset + size, this.size ?? 0) : offset + size;
    const { partSize } = this.#manifest;
    const first = Math.floor(offset / partSize);
    const piece = async (index: number): Promise<Uint8Array> => {
      const bytes = await abortable(this.#part(index), signal);
      return bytes.subarray(Math.max(offset - index * partSize, 0), end - index * partSize);
    };
    const pieces: Uint8Array[] = [];
    for (let index = first; index * partSize < end; index++) pieces.push(await piece(index));
    if (this.#isComplete && end === this.size) this.#parts.clear(); // often that was all
    return pieces.length === 1 ? pieces[0]! : joinBytes(...pieces);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled([this.#filling, ...this.#reads]); // who may have the lock
    this.#parts.clear();
  }

  get #isComplete(): boolean {
    return this.#manifest.sha256 !== undefined;
  }

  #canRead(offset: number, size: number): boolean {
    if (this.#isComplete) return true;
    const there = this.#partial?.size ?? storedSize(this.#manifest);
    return this.#isConfirmed && offset + size <= there - HELD_BACK;
  }

  /* ---- Parts ---- */

  #part(index: number): Promise<Uint8Array> {
    if (this.#partial !== undefined && index === this.#manifest.parts.length)
      return Promise.resolve(this.#partial.tail);
    for (const other of this.#parts.keys())
      if (other !== index && other !== index + 1) this.#parts.delete(other);
    const part = this.#storedPart(index);
    if (index + 1 < this.#manifest.parts.length) void this.#storedPart(index + 1);
    return part;
  }

  #storedPart(index: number): Promise<Uint8Array> {
    const found = this.#parts.get(index);
    if (found !== undefined) return found;
    const part = this.#readPart(index);
    this.#parts.set(index, part);
    this.#reads.add(part);
    void part.catch(() => this.#parts.delete(index)) // a later read tries again
      .finally(() => this.#reads.delete(part));
    return part;
  }

  async #readPart(index: number): Promise<Uint8Array> {
    const bytes = await this.#checkedPart(index) ?? await this.#repair(index);
    if (this.#wasComplete) {
      const done = Math.min((index + 1) * this.#manifest.partSize, this.size ?? Infinity);
      this.#meter.update("verify", done, this.size);
    }
    return bytes;
  }

  async #checkedPart(index: number): Promise<Uint8Array | undefined> {
    const bytes = await this.#entry.readPart(index);
    if (bytes === undefined) return undefined;
    return await sha256(bytes) === this.#manifest.parts[index] ? bytes : undefined;
  }

  /** Fetches one part again, once the file is complete: until then it may start again. */
  async #repair(index: number): Promise<Uint8Array> {
    const signal = this.#closing.signal;
    while (!this.#isComplete) await this.#change(signal);
    const release = await this.#lock(signal);
    try {
      return await this.#checkedPart(index) ?? await this.#fetchPart(index, signal);
    } finally {
      await release();
    }
  }

  async #fetchPart(index: number, signal: AbortSignal): Promise<Uint8Array> {
    const { partSize, identity, parts } = this.#manifest;
    const begin = index * partSize;
    const part = new Uint8Array(Math.min(partSize, (identity.size ?? Infinity) - begin));
    let at = 0;
    try {
      const http = new HttpFile(this.name, { ...this.#options, connections: 1 }, identity);
      for await (const bytes of http.read(begin, signal)) {
        const piece = bytes.subarray(0, part.length - at);
        part.set(piece, at);
        at += piece.length;
        if (at === part.length) break;
      }
      if (await sha256(part) !== parts[index]) throw new FileChangedError(this.name);
    } catch (error) {
      if (error instanceof FileChangedError && await this.#isKept()) await this.#entry.clear();
      if (!(error instanceof WickError)) throw error;
      throw new WickError(error.code, `part ${index + 1} of ${this.name} is damaged or gone in the `
        + `cache and was fetched again, but ${error.message}`, { cause: error });
    }
    if (await this.#isKept()) await this.#entry.writePart(index, part);
    return part;
  }

  /** Whether the entry is still this file: others may have removed or replaced it. */
  async #isKept(): Promise<boolean> {
    return (await this.#entry.load())?.sha256 === this.#manifest.sha256;
  }

  /* ---- Filling ---- */

  async #fillAlone(): Promise<void> {
    const signal = this.#closing.signal;
    const release = await this.#lock(signal);
    this.#isConfirmed = false;
    try {
      for (let i = 0; !this.#isComplete && i < MAX_BEGINNINGS; i++) await this.#fillOnce(signal, i);
    } finally {
      await release();
    }
  }

  /** Waits for the lock; meanwhile what its holder stores can be read. */
  async #lock(signal: AbortSignal): Promise<Release> {
    for (;;) {
      const release = await this.#entry.tryLock();
      try {
        if (!this.#isComplete) this.#adopt(await this.#entry.load());
        if (signal.aborted) throw cancelled(signal);
      } catch (error) {
        await release?.();
        throw error;
      }
      if (release !== undefined) return release;
      const pause = new Promise<void>((resolve) => setTimeout(resolve, LOOK_INTERVAL));
      await abortable(pause, signal);
    }
  }

  /** What another writer has stored by now. */
  #adopt(manifest: Manifest | undefined): void {
    if (manifest === undefined || !this.#isWanted(manifest)) return; // it will be replaced
    delete manifest.tail; // its writer may be at it
    this.#replaceManifest(manifest);
    this.#isConfirmed = manifest.parts.length > 0;
    this.#meter.update("download", storedSize(manifest), this.size);
    this.#tell();
  }

  /** Not another version that is complete. */
  #isWanted({ sha256: found, date }: Manifest): boolean {
    const { sha256: expected, outdated } = this.#options;
    if (found === undefined) return true;
    return date !== outdated?.date && (expected === undefined || found === expected.toLowerCase());
  }

  /** By one that goes on with what has been read: bytes of two versions never mix. */
  #replaceManifest(manifest: Manifest): void {
    const goesOn = this.#manifest.parts.every((hash, i) => manifest.parts[i] === hash);
    if (this.#isRead && !goesOn)
      throw new WickError("IO", `the download of ${this.name} started again while it was being `
        + "read; load it again");
    this.#manifest = manifest;
  }

  /** Starts again if the server has another file now and none of the previous one was read. */
  async #fillOnce(signal: AbortSignal, nth: number): Promise<void> {
    try {
      const partial = await this.#open();
      await this.#download(partial, signal);
      await partial.finish(this.#options.sha256);
      this.#meter.update("download", partial.size, partial.size);
      this.#partial = undefined;
    } catch (error) {
      await this.#settle(error);
      const canBegin = error instanceof FileChangedError && !this.#isRead;
      if (!canBegin || nth + 1 === MAX_BEGINNINGS) throw error;
    }
  }

  async #open(): Promise<Partial> {
    const found = await this.#entry.load();
    const canResume = found !== undefined && found.sha256 === undefined;
    if (!canResume) await this.#entry.clear();
    this.#partial = canResume ? await Partial.resume(this.#entry, found)
      : await Partial.begin(this.#entry, this.name, this.#manifest.partSize);
    this.#replaceManifest(this.#partial.manifest);
    return this.#partial;
  }

  async #download(partial: Partial, signal: AbortSignal): Promise<void> {
    const { manifest } = partial;
    const known = await partial.lastBytes(); // the server may say less of its file than it did
    const http = new HttpFile(this.name, this.#options, manifest.identity);
    const isWhole = partial.size > 0 && partial.size === manifest.identity.size;
    if (isWhole && this.#options.sha256 === undefined && !await http.isCurrent(signal))
      throw new FileChangedError(this.name); // no answer to a request for bytes would tell
    for await (const bytes of http.read(partial.size, signal, known)) {
      manifest.identity = { ...http.identity };
      if (!this.#isConfirmed) await this.#confirm(partial);
      await partial.append(bytes);
      this.#meter.update("download", partial.size + http.ahead, this.size);
      this.#tell();
    }
    manifest.identity = { ...http.identity };
  }

  /** The first bytes have come: now the size is known, and that what is there belongs to them. */
  async #confirm(partial: Partial): Promise<void> {
    const { usage, quota } = await estimateStorage();
    const needed = (this.size ?? 0) - partial.size;
    if (this.#entry.kind !== "memory" && needed > (quota ?? Infinity) - (usage ?? 0))
      throw await quotaError(needed);
    this.#isConfirmed = true;
  }

  /** What becomes of a download that has failed: it can be gone on with, or is gone. */
  async #settle(error: unknown): Promise<void> {
    const partial = this.#partial;
    this.#isConfirmed = false;
    const isMended = error instanceof WickError && !(error instanceof FileChangedError)
      && ["CANCELLED", "IO", "NOT_FOUND"].includes(error.code);
    try {
      if (partial === undefined || partial.size === 0 || !isMended) await this.#entry.clear();
      else await partial.checkpoint();
    } catch {
      await this.#entry.clear(); // no room for what has come since the last part
    }
  }

  /** Waits for the next news of a download. Fails as the download has. */
  #change(signal?: AbortSignal): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    return signal === undefined ? this.#changed : abortable(this.#changed, signal);
  }

  #renew(): void {
    this.#changed = new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #tell(): void {
    const wake = this.#wake;
    this.#renew();
    wake();
  }
}
