/** A file that is read through the cache for as long as that has room, then from the server. */
import type { ByteSource } from "./byte_source.js";
import type { CachedFile, CachedFileOptions } from "./cached_file.js";
import { messageOf, OutOfMemoryError } from "./errors.js";
import { HttpSource } from "./http_source.js";
import { VerifiedSource } from "./verified_source.js";

/** Bytes of the last reads, which distinguish two versions of a file. */
const KNOWN = 1 << 16;

export interface WarningOptions {
  /** What went otherwise than asked for, and does not hinder. */
  onWarning?: (message: string) => void;
}

type Options = CachedFileOptions & WarningOptions;

/** The file from the server alone, since the cache has no room; what else failed is thrown. */
export async function openUncached(url: string, options: Options, reason: unknown,
                                   from?: Parameters<typeof HttpSource.open>[2]):
Promise<ByteSource> {
  if (!(reason instanceof OutOfMemoryError)) throw reason;
  options.onWarning?.(`${url} is loaded without being kept: ${messageOf(reason)}`);
  const { sha256 } = options;
  if (sha256 === undefined) return HttpSource.open(url, options, from);
  return new VerifiedSource(await HttpSource.open(url, options), sha256); // of all its bytes
}

export class CacheOrServer implements ByteSource {
  readonly name: string;
  readonly #options: Options;
  readonly #cached: CachedFile;
  #source: ByteSource;
  /** The bytes before the end of the last read. */
  #known = new Uint8Array();
  #position = 0;

  constructor(cached: CachedFile, options: Options) {
    this.name = cached.name;
    this.#options = options;
    this.#cached = this.#source = cached;
  }

  get size(): number | undefined {
    return this.#source.size;
  }

  get isSequential(): boolean {
    return this.#source.isSequential;
  }

  async read(offset: number, size: number, signal: AbortSignal): Promise<Uint8Array> {
    const bytes = await this.#source.read(offset, size, signal).catch(async (reason: unknown) => {
      if (this.#source !== this.#cached || !(reason instanceof OutOfMemoryError)) throw reason;
      const { identity } = this.#cached;
      await this.#cached.close();
      const known = offset === this.#position ? this.#known : undefined;
      this.#source = await openUncached(this.name, this.#options, reason,
                                        { offset, identity, known });
      return this.#source.read(offset, size, signal);
    });
    this.#position = offset + bytes.length;
    if (bytes.length > 0) this.#known = bytes.slice(-KNOWN);
    return bytes;
  }

  close(): Promise<void> {
    return this.#source.close();
  }
}
