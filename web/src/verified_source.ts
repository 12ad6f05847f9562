/** A source whose bytes are hashed as they are read in order, and held to a SHA-256 at the end. */
import { type ByteSource, joinBytes } from "./byte_source.js";
import { hashError, Sha256 } from "./sha256.js";

/**
 * The last bytes of the file are given to the reader only after the whole file is verified. Without
 * this, a reader that leaves out the padding after the last tensor would never reach the check.
 */
const HELD_BACK = 1 << 16;
/** Bytes that are skipped at a time. */
const SKIP = 1 << 20;

export class VerifiedSource implements ByteSource {
  readonly name: string;
  readonly #inner: ByteSource;
  readonly #expected: string;
  readonly #hash = new Sha256();
  /** Bytes given to the reader so far, and those after them that are hashed already. */
  #position = 0;
  #ahead: Uint8Array = new Uint8Array();
  #hasEnded = false;

  constructor(inner: ByteSource, expected: string) {
    this.name = inner.name;
    this.#inner = inner;
    this.#expected = expected.toLowerCase();
  }

  get size(): number | undefined {
    return this.#inner.size;
  }

  get isSequential(): boolean {
    return this.#inner.isSequential;
  }

  async read(offset: number, size: number, signal: AbortSignal): Promise<Uint8Array> {
    while (offset > this.#position) { // what the reader skips is hashed, too
      const skipped = await this.#advance(Math.min(offset - this.#position, SKIP), signal);
      if (skipped.length === 0) return skipped;
    }
    if (offset === this.#position) return this.#advance(size, signal);
    const again = await this.#inner.read(offset, Math.min(size, this.#position - offset), signal);
    if (again.length === size) return again;
    const begin = again.slice();
    return joinBytes(begin, await this.#advance(size - begin.length, signal));
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  async #advance(size: number, signal: AbortSignal): Promise<Uint8Array> {
    while (!this.#hasEnded && this.#ahead.length < size + HELD_BACK) {
      const wanted = size + HELD_BACK - this.#ahead.length;
      const bytes = await this.#inner.read(this.#hash.size, wanted, signal);
      this.#hash.add(bytes);
      this.#ahead = joinBytes(this.#ahead, bytes);
      this.#hasEnded = bytes.length < wanted;
    }
    if (this.#hasEnded) this.#verify();
    const bytes = this.#ahead.subarray(0, size);
    this.#ahead = this.#ahead.subarray(bytes.length);
    this.#position += bytes.length;
    return bytes;
  }

  #verify(): void {
    const found = this.#hash.digest();
    if (found !== this.#expected)
      throw hashError(this.name, found, this.#expected);
  }
}
