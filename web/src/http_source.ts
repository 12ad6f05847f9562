/** An address as a source, without the cache. */
import {
  type ByteSource, linkedController, ProgressMeter, type ProgressListener,
} from "./byte_source.js";
import { HttpFile, type HttpOptions } from "./download.js";
import { InOrder, outOfOrder } from "./in_order.js";

export interface HttpSourceOptions extends HttpOptions {
  signal?: AbortSignal;
  onProgress?: ProgressListener;
}

/** Nothing is kept, what is needed again is asked for again. */
export class HttpSource implements ByteSource {
  readonly name: string;
  readonly #file: HttpFile;
  readonly #meter: ProgressMeter;
  readonly #outer: AbortSignal | undefined;
  #connection = new AbortController();
  #bytes: InOrder;

  private constructor(url: string, options: HttpSourceOptions) {
    this.name = url;
    this.#file = new HttpFile(url, options);
    this.#meter = new ProgressMeter(options.onProgress);
    this.#outer = options.signal;
    this.#bytes = this.#connect(0);
  }

  /** Once the server has sent its first bytes. */
  static async open(url: string, options: HttpSourceOptions): Promise<HttpSource> {
    const source = new HttpSource(url, options);
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
      this.#connection.abort();
      this.#bytes = this.#connect(offset);
    }
    const bytes = await this.#bytes.take(size, signal);
    this.#meter.update("download", this.#bytes.position, this.size);
    return bytes;
  }

  close(): Promise<void> {
    this.#connection.abort();
    return Promise.resolve();
  }

  #connect(offset: number): InOrder {
    const connection = this.#connection = linkedController(this.#outer);
    return new InOrder(this.#file.read(offset, connection.signal), offset);
  }
}
