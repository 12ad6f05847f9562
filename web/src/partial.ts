/** What has come of a file: the part under way is in memory, the others are stored. */
import { joinBytes } from "./byte_source.js";
import type { Entry, Manifest } from "./entry.js";
import { hashError, Sha256, sha256 } from "./sha256.js";

/** Milliseconds after which an unfinished part is stored, too: a closed tab loses no more. */
const CHECKPOINT = 2000;
/** Fewer bytes than this say little of which file they are of. */
const TELLING = 1 << 16;

export class Partial {
  readonly manifest: Manifest;
  readonly #entry: Entry;
  #tail: Uint8Array<ArrayBuffer>;
  #fill = 0;
  #hash = new Sha256();
  #checkpoint = Date.now();

  private constructor(entry: Entry, manifest: Manifest) {
    this.#entry = entry;
    this.manifest = manifest;
    this.#tail = new Uint8Array(manifest.partSize);
  }

  /** A file of which nothing is there. */
  static async begin(entry: Entry, name: string, partSize: number): Promise<Partial> {
    const state = new Sha256().suspend();
    const partial = new Partial(entry, { name, identity: {}, partSize, parts: [], state,
      date: Date.now() });
    await entry.save(partial.manifest);
    return partial;
  }

  /** Goes on with what is there. The bytes of a part that was not stored whole are checked. */
  static async resume(entry: Entry, manifest: Manifest): Promise<Partial> {
    const partial = new Partial(entry, manifest);
    const size = manifest.parts.length * manifest.partSize;
    partial.#hash = Sha256.resume(manifest.state, size);
    const { tail } = manifest;
    if (tail === undefined) return partial;
    delete manifest.tail;
    const stored = (await entry.readPart(manifest.parts.length))?.subarray(0, tail.size);
    if (stored?.length !== tail.size) return partial;
    const hash = Sha256.resume(manifest.state, size).add(stored);
    if (hash.digest() !== tail.sha256) return partial;
    partial.#tail.set(stored);
    partial.#fill = tail.size;
    partial.#hash = hash;
    return partial;
  }

  get size(): number {
    return this.#hash.size;
  }

  /** The part under way: what is there of it. */
  get tail(): Uint8Array<ArrayBuffer> {
    return this.#tail.subarray(0, this.#fill);
  }

  /** Enough of the last bytes to tell whether a server still has this file. */
  async lastBytes(): Promise<Uint8Array> {
    const n = this.manifest.parts.length;
    if (this.#fill >= TELLING || n === 0) return this.tail;
    const part = await this.#entry.readPart(n - 1);
    if (part === undefined || await sha256(part) !== this.manifest.parts[n - 1]) return this.tail;
    return joinBytes(part, this.tail);
  }

  async append(bytes: Uint8Array): Promise<void> {
    const { partSize } = this.manifest;
    for (let at = 0; at < bytes.length;) {
      const piece = bytes.subarray(at, at + partSize - this.#fill);
      this.#hash.add(piece);
      this.#tail.set(piece, this.#fill);
      this.#fill += piece.length;
      at += piece.length;
      if (this.#fill === partSize) await this.#endPart();
    }
    if (Date.now() - this.#checkpoint > CHECKPOINT) await this.checkpoint();
  }

  /** Stores what is there of the part under way. */
  async checkpoint(): Promise<void> {
    const { manifest } = this;
    if (this.#fill > 0) {
      const tail = { size: this.#fill, sha256: this.#hash.digest() };
      await this.#entry.writePart(manifest.parts.length, this.tail);
      manifest.tail = tail;
    }
    await this.#save();
  }

  /** All bytes have come. MISMATCH: not those that were expected. */
  async finish(expected: string | undefined): Promise<void> {
    const found = this.#hash.digest();
    const { manifest } = this;
    if (expected !== undefined && found !== expected.toLowerCase())
      throw hashError(manifest.name, found, expected);
    if (this.#fill > 0) await this.#storePart();
    await this.#save(found);
    manifest.sha256 = found;
  }

  async #endPart(): Promise<void> {
    this.manifest.state = this.#hash.suspend();
    await this.#storePart();
    await this.#save();
  }

  async #storePart(): Promise<void> {
    const { parts } = this.manifest;
    const [hash] = await Promise.all([sha256(this.tail),
      this.#entry.writePart(parts.length, this.tail)]);
    delete this.manifest.tail;
    parts.push(hash);
    this.#tail = new Uint8Array(this.manifest.partSize); // readers may still look at the old one
    this.#fill = 0;
  }

  /** sha256: of the file, once it is complete. */
  async #save(sha256?: string): Promise<void> {
    this.manifest.date = this.#checkpoint = Date.now();
    await this.#entry.save({ ...this.manifest, sha256 });
  }
}
