/**
 * SHA-256 (FIPS 180-4) of bytes that come in pieces, which crypto.subtle cannot do, with a state
 * that can be stored: a download that was interrupted goes on hashing where it stopped.
 */
import { WickError } from "./errors.js";

const BLOCK = 64;

/** The first 32 bits of the fractional parts of roots of primes: square roots, cube roots. */
const primes = (n: number): number[] => {
  const found: number[] = [];
  for (let i = 2; found.length < n; i++) if (found.every((p) => i % p !== 0)) found.push(i);
  return found;
};
/**
 * Integer roots: Math.cbrt is not exact to the last bit everywhere. `scaled` is prime * 2^(32 k);
 * Newton's method from above.
 */
const rootBits = (prime: number, k: 2 | 3): number => {
  const scaled = BigInt(prime) << BigInt(32 * k);
  const n = BigInt(k);
  let root = 1n << BigInt(Math.ceil((32 * k + 9) / k));
  for (;;) {
    const next = ((n - 1n) * root + scaled / root ** (n - 1n)) / n;
    if (next >= root) return Number(BigInt.asUintN(32, root)) | 0;
    root = next;
  }
};
const ROUND_WORDS = Int32Array.from(primes(64), (p) => rootBits(p, 3));
const START = Int32Array.from(primes(8), (p) => rootBits(p, 2));

export class Sha256 {
  readonly #state = START.slice();
  readonly #words = new Int32Array(64);
  readonly #block = new Uint8Array(BLOCK);
  #size = 0;

  /** Bytes hashed so far. */
  get size(): number {
    return this.#size;
  }

  add(bytes: Uint8Array): this {
    let at = 0;
    const filled = this.#size % BLOCK;
    this.#size += bytes.length;
    if (filled > 0) {
      at = Math.min(BLOCK - filled, bytes.length);
      this.#block.set(bytes.subarray(0, at), filled);
      if (filled + at < BLOCK) return this;
      this.#compress(new DataView(this.#block.buffer), 0, BLOCK);
    }
    const whole = at + Math.floor((bytes.length - at) / BLOCK) * BLOCK;
    if (whole > at)
      this.#compress(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), at, whole);
    this.#block.set(bytes.subarray(whole));
    return this;
  }

  /** The hash of the bytes added so far, in hex; more can be added afterwards. */
  digest(): string {
    const end = new Sha256();
    end.#state.set(this.#state);
    end.#block.set(this.#block);
    end.#size = this.#size;
    const filled = this.#size % BLOCK;
    const padding = new Uint8Array((filled < BLOCK - 8 ? BLOCK : 2 * BLOCK) - filled);
    const view = new DataView(padding.buffer);
    padding[0] = 0x80;
    view.setBigUint64(padding.length - 8, BigInt(this.#size) * 8n);
    end.add(padding);
    return end.#stateText();
  }

  /** What `Sha256.resume` goes on from. Only between blocks of 64 bytes. */
  suspend(): string {
    if (this.#size % BLOCK !== 0) throw new RangeError("a hash is suspended between blocks");
    return this.#stateText();
  }

  /** After size bytes, which gave this state. */
  static resume(state: string, size: number): Sha256 {
    const hash = new Sha256();
    for (let i = 0; i < 8; i++) hash.#state[i] = parseInt(state.slice(8 * i, 8 * i + 8), 16);
    hash.#size = size;
    return hash;
  }

  #stateText(): string {
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #compress(view: DataView, begin: number, end: number): void {
    const w = this.#words, state = this.#state;
    for (let at = begin; at < end; at += BLOCK) {
      for (let i = 0; i < 16; i++) w[i] = view.getInt32(at + 4 * i);
      schedule(w);
      rounds(w, state);
    }
  }
}

function schedule(w: Int32Array): void {
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15]!, y = w[i - 2]!;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0;
  }
}

function rounds(w: Int32Array, state: Int32Array): void {
  let a = state[0]!, b = state[1]!, c = state[2]!, d = state[3]!;
  let e = state[4]!, f = state[5]!, g = state[6]!, h = state[7]!;
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + (g ^ (e & (f ^ g))) + ROUND_WORDS[i]! + w[i]!) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) | (c & (a | b)))) | 0;
    h = g, g = f, f = e, e = (d + t1) | 0;
    d = c, c = b, b = a, a = (t1 + t2) | 0;
  }
  state[0]! += a, state[1]! += b, state[2]! += c, state[3]! += d;
  state[4]! += e, state[5]! += f, state[6]! += g, state[7]! += h;
}

export const hashError = (name: string, found: string, expected: string): WickError =>
  new WickError("MISMATCH", `${name} has the SHA-256 ${found}, but ${expected} was expected: it `
    + "was damaged on its way, or is another file");

/** The SHA-256 of bytes that are all there, in hex: by the browser, where the page is secure. */
export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const subtle = globalThis.crypto?.subtle;
  if (subtle === undefined) return new Sha256().add(bytes).digest();
  const hash = new Uint8Array(await subtle.digest("SHA-256", bytes));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
