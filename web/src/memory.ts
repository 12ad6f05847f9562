/**
 * The module's memory: views are made again at each use, since growing detaches older ones. Places
 * are 32-bit words of the module, which JavaScript sees as signed: negative from 2 GiB on.
 */
export class Memory {
  readonly #memory: WebAssembly.Memory;
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder();

  constructor(memory: WebAssembly.Memory) {
    this.#memory = memory;
  }

  get size(): number {
    return this.#memory.buffer.byteLength;
  }

  bytes(at: number, size: number): Uint8Array {
    return new Uint8Array(this.#memory.buffer, at >>> 0, size);
  }

  words(at: number, n: number): Uint32Array {
    return new Uint32Array(this.#memory.buffer, at >>> 0, n);
  }

  floats(at: number, n: number): Float32Array {
    return new Float32Array(this.#memory.buffer, at >>> 0, n);
  }

  doubles(at: number, n: number): Float64Array {
    return new Float64Array(this.#memory.buffer, at >>> 0, n);
  }

  /** UTF-8 of size bytes, or up to a zero. */
  text(at: number, size?: number): string {
    const length = size ?? this.bytes(at, this.size - (at >>> 0)).indexOf(0);
    // A copy: shared memory cannot be decoded.
    return this.#decoder.decode(this.bytes(at, length).slice());
  }

  /** Copies text to a place of `capacity` bytes: cut at a character, terminated. */
  putText(at: number, capacity: number, text: string): void {
    const room = this.bytes(at, capacity);
    const encoded = this.#encoder.encode(text);
    let size = Math.min(encoded.length, capacity - 1);
    while (size < encoded.length && size > 0 && (encoded[size]! & 0xc0) === 0x80) size--;
    room.set(encoded.subarray(0, size));
    room[size] = 0;
  }
}
