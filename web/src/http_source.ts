/** An address as a source, without the cache. */
import {
  type ByteSource, linkedController, ProgressMeter, type ProgressListener,
} from "./byte_source.js";
import { HttpFile, type HttpOptions, type Identity } from "./download.js";
import { InOrder, outOfOrder } from "./in_order.js";

export interface HttpSourceOptions extends HttpOptions {
  signal?: AbortSignal;
  onProgress?: ProgressListener;
}

/** Where reading begins: with what is known of the file, and bytes that end there. */
interface Beginning {
  offset: number;
  identity?: Identity | undefined;
  known?: Uint8Array | undefined;
}

/** Nothing is kept, what is needed again is asked for again. */
export class HttpSource implements ByteSource {
  readonly name: string;
  readonly #file: HttpFile;
  readonly #meter: ProgressMeter;
  readonly #outer: AbortSignal | undefined;
  #connection = new AbortController();
  #bytes: InOrder;

  private constructor(url: string, options: HttpSourceOptions, from: Beginning) {
    this.name = url;
    this.#file = new HttpFile(url, options, from.identity);
    this.#meter = new ProgressMeter(options.onProgress);
    this.#outer = options.signal;
    this.#bytes = this.#connect(from.offset, from.known);
  }

  /** Once the server has sent its first bytes. */
  static async open(url: string, options: HttpSourceOptions,
                    from: Beginning = { offset: 0 }): Promise<HttpSource> {
    const source = new HttpSource(url, options, from);
    await source.#bytes.start(source.#connection.signal);
    return source;
  }

  get size(): number | undefined {
    return this.#file.identity.size;
  }

  get isSequential(): boolean {
    return this.#file.acceptsRanges === false;
  }

  async read(offset: number, size: number, signal: AbortSignal): Promise<Uint8Array> {
    if (offset !== this.#bytes.position) {
      if (this.isSequential) throw outOfOrder(this, this.#bytes.position, offset);
      await this.close();
      this.#bytes = this.#connect(offset);
    }
    const bytes = await this.#bytes.take(size, signal);
    this.#meter.update("download", this.#bytes.position + this.#file.ahead, this.size);
    return bytes;
  }

  close(): Promise<void> {
    this.#connection.abort();
    return this.#bytes.close();
  }

  #connect(offset: number, known?: Uint8Array): InOrder {
    const connection = this.#connection = linkedController(this.#outer);
    return new InOrder(this.#file.read(offset, connection.signal, known), offset);
  }
}
