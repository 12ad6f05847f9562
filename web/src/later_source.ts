/**
 * A file of a split model after the first. The headers of all files are read before any data, and
 * browsers open few connections to a host at a time: so its beginning is fetched by a request of
 * its own, and the file is opened when its data are needed.
 */
import { abortable, type ByteSource, linkedController } from "./byte_source.js";
import { FileChangedError } from "./download.js";

/** Bytes of the beginning: far more than the header of such a file has. */
export const BEGINNING = 1 << 20;

export class LaterSource implements ByteSource {
  readonly name: string;
  readonly size: number | undefined;
  readonly isSequential = false;
  readonly #beginning: Uint8Array;
  readonly #open: (closing: AbortSignal) => Promise<ByteSource>;
  readonly #closing: AbortController;
  #file: Promise<ByteSource> | undefined;

  /** size: of the file that begins so; open: the file, until it is closed or the signal comes. */
  constructor(name: string, size: number | undefined, beginning: Uint8Array,
              signal: AbortSignal | undefined,
              open: (closing: AbortSignal) => Promise<ByteSource>) {
    this.name = name;
    this.size = size;
    this.#beginning = beginning;
    this.#closing = linkedController(signal);
    this.#open = open;
  }

  async read(offset: number, size: number, signal: AbortSignal): Promise<Uint8Array> {
    if (offset + size <= this.#beginning.length)
      return this.#beginning.subarray(offset, offset + size);
    this.#file ??= this.#openChecked();
    return (await abortable(this.#file, signal)).read(offset, size, signal);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await (await this.#file?.catch(() => undefined))?.close();
  }

  /** What was read of the beginning must be of the same file. */
  async #openChecked(): Promise<ByteSource> {
    const { signal } = this.#closing;
    let file: ByteSource | undefined;
    try {
      file = await this.#open(signal);
      const found = await file.read(0, this.#beginning.length, signal);
      const isSame = found.length === this.#beginning.length
        && found.every((byte, i) => byte === this.#beginning[i]);
      if (!isSame || file.size !== this.size) throw new FileChangedError(this.name);
      return file;
    } catch (error) {
      await file?.close();
      this.#file = undefined; // a later read tries again
      throw error;
    }
  }
}
