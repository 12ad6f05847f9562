/** Files, bytes in memory and streams as sources. */
import { abortable, type ByteSource } from "./byte_source.js";
import { kindOf, WickError } from "./errors.js";
import { InOrder, outOfOrder } from "./in_order.js";
import { streamError } from "./stream.js";

export class BlobSource implements ByteSource {
  readonly isSequential = false;
  readonly name: string;
  readonly size: number;
  readonly #blob: Blob;

  constructor(blob: Blob) {
    this.name = blob instanceof File ? blob.name : "a Blob";
    this.size = blob.size;
    this.#blob = blob;
  }

  async read(offset: number, size: number, signal: AbortSignal): Promise<Uint8Array> {
    const piece = this.#blob.slice(offset, offset + size).arrayBuffer();
    try {
      return new Uint8Array(await abortable(piece, signal));
    } catch (cause) {
      if (cause instanceof WickError) throw cause;
      throw new WickError("IO", `${this.name} cannot be read any more; it may have been changed or `
        + "removed: pick it again", { cause });
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

export class MemorySource implements ByteSource {
  readonly isSequential = false;
  readonly name = "memory";
  readonly size: number;
  readonly #bytes: Uint8Array;

  constructor(bytes: ArrayBuffer | Uint8Array) {
    this.#bytes = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
    this.size = this.#bytes.length;
  }

  async read(offset: number, size: number, signal: AbortSignal): Promise<Uint8Array> {
    return abortable(Promise.resolve(this.#bytes.subarray(offset, offset + size)), signal);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

export class StreamSource implements ByteSource {
  readonly isSequential = true;
  readonly name = "a stream";
  readonly size = undefined;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #bytes: InOrder;

  constructor(stream: ReadableStream<Uint8Array>) {
    if (stream.locked)
      throw new WickError("ARGUMENT", "the stream is locked: somebody else reads it");
    const reader = stream.getReader();
    this.#reader = reader;
    const next = async (): Promise<IteratorResult<Uint8Array>> => {
      const { done, value } = await reader.read().catch((reason: unknown) => {
        throw streamError(reason);
      });
      if (done) return { done, value: undefined };
      if (value instanceof Uint8Array) return { done, value };
      throw new WickError("ARGUMENT", `a stream of Uint8Array is read, not of ${kindOf(value)}`);
    };
    this.#bytes = new InOrder({ next }, 0);
  }

  async read(offset: number, size: number, signal: AbortSignal): Promise<Uint8Array> {
    if (offset !== this.#bytes.position) throw outOfOrder(this, this.#bytes.position, offset);
    return this.#bytes.take(size, signal);
  }

  /** Nobody waits for the stream's own end, which may never come; its reader has the failure. */
  async close(): Promise<void> {
    void this.#reader.cancel().catch(() => undefined);
  }
}
