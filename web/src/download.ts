/**
 * A file on a server, read in order over as many connections as that takes. Bytes of two
 * connections belong together only where the server's answers say the same of the file: by a strong
 * ETag; where that is missing or hidden from the page, by size, Last-Modified and a comparison of
 * bytes that were there already. If-Range is not sent: a page would have to ask each server first
 * whether it may, and the answer's own ETag says as much.
 */
import { abortable, cancelled, joinBytes, linkedController } from "./byte_source.js";
import { messageOf, WickError } from "./errors.js";

/** How a server tells one version of a file from another: as much as it says, and does not hide. */
export interface Identity {
  /** Bytes. */
  size?: number;
  etag?: string;
  /** Last-Modified, as it was sent. */
  modified?: string;
}

export interface HttpOptions {
  /** In place of the browser's own. */
  fetch?: typeof fetch;
  /** Sent with each request, such as Authorization. */
  headers?: [string, string][];
  /** Milliseconds before the first new try (doubled for each further one). Default 500. */
  retryDelay?: number;
  /** Milliseconds without a byte after which a connection counts as lost. Default 30000. */
  stallTimeout?: number;
  /** Most connections at once for a large file. Default 4. */
  connections?: number;
  /** Bytes that one of them fetches at a time. Default 4 MiB. */
  segmentSize?: number;
}

/** The server has another file now than the one whose beginning is there. */
export class FileChangedError extends WickError {
  constructor(url: string) {
    super("IO", `${url} was changed on the server while it was being read; load it again`);
  }
}

/** A failure that another try may mend; without a cause, the server has answered. */
class ConnectionError extends Error {
  /** What the server asks to wait, in milliseconds. */
  readonly delay: number;

  constructor(message: string, cause?: unknown, delay = 0) {
    super(message, { cause });
    this.delay = delay;
  }
}

/** Of an address that has answered, and of one that never has. */
const MAX_TRIES = 6, MAX_FIRST_TRIES = 3;
const MAX_DELAY = 60000;
/** Milliseconds that a file in the cache waits for the server to say whether it is current. */
const HEAD_TIMEOUT = 3000;
/** Bytes before a connection's end that are compared where no ETag decides. */
const OVERLAP = 1 << 16;
const MAGIC = [0x47, 0x47, 0x55, 0x46]; // "GGUF"

/** W/"..." may stand for other bytes. */
const isCertain = (identity: Identity): boolean => identity.etag?.startsWith('"') ?? false;

/** What weak and strong tags of the same file have in common. */
const opaque = (etag: string | undefined): string | undefined => etag?.replace(/^W\//, "");

const sleep = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(cancelled(signal));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal.addEventListener("abort", stop, { once: true });
  });

/** Follows the words of a failed fetch, which do not say why it failed. */
export const CONNECT_HINT =
  "; is there a connection, and does the server allow this page to read from it (CORS)?";

/** Fails where nothing comes for too long, by the signal and by the connection's failure. */
export async function timed<T>(own: AbortController, { stallTimeout = 30000 }: HttpOptions,
                               work: Promise<T>): Promise<T> {
  let isStalled = false;
  const timer = setTimeout(() => {
    isStalled = true;
    own.abort();
  }, stallTimeout);
  try {
    return await abortable(work, own.signal);
  } catch (cause) {
    throw new ConnectionError(isStalled ? `nothing came for ${stallTimeout / 1000} s`
      : messageOf(cause), cause);
  } finally {
    clearTimeout(timer);
  }
}

/** What an answer says of its bytes. */
interface Answer {
  /** Where its body begins. */
  begin: number;
  /** Where it must end, if the server says so. */
  end: number | undefined;
  identity: Identity;
}

export class HttpFile {
  readonly url: string;
  /** What is known of the file: of the answers so far, or from an earlier time. */
  identity: Identity;
  /** Whether the server sends from any offset; undefined: there is no answer yet. */
  acceptsRanges: boolean | undefined;
  /** Bytes that have come before it was their turn. */
  ahead = 0;
  readonly #options: HttpOptions;

  constructor(url: string, options: HttpOptions, identity: Identity = {}) {
    this.url = url;
    this.#options = options;
    this.identity = { ...identity };
  }

  /**
   * The bytes from offset on, over several connections where that is worth it and certain to be of
   * one file. known: bytes that end there, to be compared where no ETag decides. When the first
   * bytes come, `identity` says what they belong to; FileChangedError before that.
   */
  async *read(offset: number, signal: AbortSignal,
              known: Uint8Array = new Uint8Array()): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    let at = offset;
    for await (const bytes of this.#readRange(offset, undefined, signal, known)) {
      at += bytes.length;
      yield bytes;
      if (this.#isWorthSharing(at)) break;
    }
    if (this.#isWorthSharing(at)) yield* this.#readShared(at, signal);
  }

  /** Many bytes are to come, and each answer says by its ETag that they are of this file. */
  #isWorthSharing(at: number): boolean {
    const { size = 0 } = this.identity;
    return this.acceptsRanges === true && isCertain(this.identity)
      && this.#connections > 1 && size - at > 2 * this.#connections * this.#segmentSize;
  }

  get #connections(): number {
    return this.#options.connections ?? 4;
  }

  get #segmentSize(): number {
    return this.#options.segmentSize ?? 4 << 20;
  }

  /** Segments of the rest, as many at a time as there may be connections, in their order. */
  async *#readShared(begin: number, outer: AbortSignal): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const own = linkedController(outer);
    const size = this.identity.size!;
    const coming: Segment[] = [];
    try {
      for (let next = begin; next < size || coming.length > 0;) {
        while (next < size && coming.length < this.#connections) {
          const end = Math.min(next + this.#segmentSize, size);
          const file = new HttpFile(this.url, this.#options, this.identity);
          file.acceptsRanges = true;
          const bytes = file.#readRange(next, end, own.signal);
          coming.push(new Segment(bytes, (n) => (this.ahead += n)));
          next = end;
        }
        yield* coming[0]!.pieces();
        coming.shift();
      }
    } finally {
      own.abort();
      this.ahead = 0;
    }
  }

  /** end undefined: to the end of the file. */
  async *#readRange(offset: number, end: number | undefined, signal: AbortSignal,
                    known: Uint8Array = new Uint8Array()):
  AsyncGenerator<Uint8Array<ArrayBuffer>> {
    let at = offset, tries = 0;
    while (at === 0 || at < (end ?? this.identity.size ?? Infinity)) {
      let failure: ConnectionError | undefined;
      const begin = at;
      try {
        for await (const bytes of this.#connection(at, end, known, signal)) {
          at += bytes.length;
          tries = 0;
          known = (bytes.length < OVERLAP ? joinBytes(known, bytes) : bytes).slice(-OVERLAP);
          yield bytes;
        }
      } catch (error) {
        if (signal.aborted) throw cancelled(signal);
        if (!(error instanceof ConnectionError)) throw error;
        failure = error;
      }
      if (failure === undefined && at > begin) continue; // a server that sends so much at a time
      // So that comparing much over a bad connection comes to an end.
      known = known.slice(-Math.max(OVERLAP, known.length >> 2));
      if (++tries >= this.#maxTries) throw this.#giveUp(at, failure);
      const delay = (this.#options.retryDelay ?? 500) * 2 ** (tries - 1);
      await sleep(Math.max(delay, failure?.delay ?? 0), signal);
    }
  }

  /**
   * False: the server has another file now. True where it cannot be asked, or does not tell: no
   * reason to give up what is there.
   */
  async isCurrent(signal?: AbortSignal): Promise<boolean> {
    const own = linkedController(signal);
    const timer = setTimeout(() => own.abort(), HEAD_TIMEOUT);
    try {
      const response = await abortable(this.#request("HEAD", "0-", own.signal), own.signal);
      if (response.ok) this.#compare(readAnswer(response, 0).identity);
      return true;
    } catch (error) {
      return !(error instanceof FileChangedError);
    } finally {
      clearTimeout(timer);
      own.abort();
    }
  }

  /** One request; ends early, or throws ConnectionError, where the connection does. */
  async *#connection(at: number, end: number | undefined, known: Uint8Array,
                     outer: AbortSignal): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    outer.throwIfAborted();
    const own = linkedController(outer);
    try {
      const overlap = isCertain(this.identity) ? new Uint8Array() : known;
      const begin = at - overlap.length;
      const range = `${begin}-${end === undefined ? "" : end - 1}`;
      const response = await timed(own, this.#options, this.#request("GET", range, own.signal));
      const answer = this.#check(response, begin, end);
      if (end !== undefined && (answer.begin !== begin || !isCertain(this.identity)))
        throw new FileChangedError(this.url); // or the server no longer says what it sends
      if (response.body === null) throw new ConnectionError("the answer has no body");
      const reader = response.body.getReader();
      try {
        yield* this.#body(reader, answer, at, overlap, own);
      } finally {
        void reader.cancel().catch(() => undefined); // the failure is reported already
      }
    } finally {
      own.abort();
    }
  }

  get #maxTries(): number {
    return this.acceptsRanges === undefined ? MAX_FIRST_TRIES : MAX_TRIES;
  }

  async #request(method: string, range: string, signal: AbortSignal): Promise<Response> {
    // Without a Range a server might compress, and lengths would mean nothing.
    const headers = { ...Object.fromEntries(this.#options.headers ?? []), Range: `bytes=${range}` };
    const get = this.#options.fetch ?? fetch;
    return get(this.url, { method, headers, signal, cache: "no-store" });
  }

  #check(response: Response, begin: number, end: number | undefined): Answer {
    const { status } = response;
    if (status === 416) throw begin > 0 ? new FileChangedError(this.url) : this.#empty();
    if (status !== 200 && status !== 206) throw this.#refusal(response);
    const answer = readAnswer(response, begin, end);
    this.acceptsRanges = status === 206;
    if (status === 206 && answer.begin !== begin)
      throw new WickError("IO", `${this.url}: the server sent bytes from ${answer.begin} on, not `
        + `from ${begin}`);
    if (end !== undefined && answer.end !== undefined && answer.end > end)
      throw new WickError("IO", `${this.url}: the server sent bytes up to ${answer.end}, not ${end}`);
    this.#compare(answer.identity);
    return answer;
  }

  /** Takes over what the answer says of the file, unless it contradicts what is known. */
  #compare(found: Identity): void {
    const { size, etag, modified } = this.identity;
    const differs = <T>(a: T | undefined, b: T | undefined): boolean =>
      a !== undefined && b !== undefined && a !== b;
    const isSame = isCertain(found) && found.etag === etag;
    if (differs(size, found.size) || differs(opaque(etag), opaque(found.etag))
      || (!isSame && differs(modified, found.modified)))
      throw new FileChangedError(this.url);
    if (isCertain(this.identity) && found.etag === undefined) {
      this.identity = { size, modified }; // hidden now: bytes decide, in another request
      throw new ConnectionError("the server says no ETag any more");
    }
    this.identity = { ...this.identity, ...found };
  }

  #refusal(response: Response): Error {
    const { status } = response;
    const answer = `the server answered ${status} ${response.statusText}`.trimEnd();
    const text = `${this.url}: ${answer}`;
    if (status === 404 || status === 410)
      return new WickError("NOT_FOUND", `${text}: there is no such file; check the address`);
    if (status === 401 || status === 403)
      return new WickError("NOT_FOUND", `${text}: it asks for a login or an agreement; give what `
        + "it wants in the option 'headers', as { Authorization: \"Bearer ...\" }");
    if (status !== 408 && status !== 429 && status < 500) return new WickError("IO", text);
    const delay = Number(response.headers.get("Retry-After") ?? 0) * 1000;
    return new ConnectionError(answer, undefined,
                               delay > 0 ? Math.min(delay, MAX_DELAY) : 0);
  }

  /** The bytes of a body from `at` on; overlap: bytes before `at` that the body must repeat. */
  async *#body(reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>, answer: Answer,
               at: number, overlap: Uint8Array,
               own: AbortController): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    let position = answer.begin;
    for (;;) {
      const { done, value } = await timed(own, this.#options, reader.read());
      if (done) break;
      this.#sniff(position, value);
      if (answer.end !== undefined && position + value.length > answer.end)
        throw new WickError("FORMAT", `${this.url} sends more than the ${answer.end} bytes that it `
          + "promised");
      if (!agrees(value, position, overlap, at - overlap.length))
        throw new FileChangedError(this.url);
      position += value.length;
      const fresh = Math.min(value.length, position - at);
      if (fresh > 0) yield value.subarray(value.length - fresh);
    }
    if (position < (answer.end ?? 0)) throw new ConnectionError("the connection ended early");
    if (position === 0) throw this.#empty();
    if (answer.end === undefined) this.identity.size = position;
  }

  /** Rejects a login page, or an error page with status 200. */
  #sniff(position: number, bytes: Uint8Array): void {
    for (let i = position; i < MAGIC.length && i - position < bytes.length; i++) {
      if (bytes[i - position] === MAGIC[i]) continue;
      const isPage = i === 0 && bytes[0] === 0x3c; // "<"
      throw new WickError("FORMAT", `what ${this.url} sends is `
        + (isPage ? "a web page, not a GGUF file: look at it in a browser" : "not a GGUF file"));
    }
  }

  #empty(): WickError {
    return new WickError("FORMAT", `${this.url} is empty`);
  }

  #giveUp(at: number, failure: ConnectionError | undefined): WickError {
    const total = this.identity.size === undefined ? "" : ` of ${this.identity.size}`;
    const hasAnswered = this.acceptsRanges !== undefined || failure?.cause === undefined;
    const hint = hasAnswered ? "" : CONNECT_HINT;
    return new WickError("IO", `${this.url}: ${failure?.message ?? "no more bytes come"}; tried `
      + `${this.#maxTries} times, ${at}${total} bytes have come${hint}`, { cause: failure });
  }
}

/** Bytes that come by themselves, and wait until they are read. */
class Segment {
  readonly #pieces: Uint8Array<ArrayBuffer>[] = [];
  readonly #count: (bytes: number) => void;
  #end: { error?: unknown } | undefined;
  #wake: () => void = () => undefined;

  /** count: of bytes that come, and again, negative, that go. */
  constructor(bytes: AsyncIterable<Uint8Array<ArrayBuffer>>, count: (bytes: number) => void) {
    this.#count = count;
    void this.#collect(bytes).then(() => (this.#end = {}), (error) => (this.#end = { error }))
      .then(() => this.#wake());
  }

  async #collect(bytes: AsyncIterable<Uint8Array<ArrayBuffer>>): Promise<void> {
    for await (const piece of bytes) {
      this.#pieces.push(piece);
      this.#count(piece.length);
      this.#wake();
    }
  }

  async *pieces(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    for (;;) {
      for (let piece; (piece = this.#pieces.shift()) !== undefined;) {
        this.#count(-piece.length);
        yield piece;
      }
      if (this.#end !== undefined) break;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    if ("error" in this.#end) throw this.#end.error;
  }
}

/** until: what was asked for; undefined: all there is. */
function readAnswer(response: Response, begin: number, until?: number): Answer {
  const text = (name: string): string | undefined => response.headers.get(name) ?? undefined;
  const identity: Identity = {};
  const etag = text("ETag"), modified = text("Last-Modified");
  if (etag !== undefined) identity.etag = etag;
  if (modified !== undefined) identity.modified = modified;
  const range = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(text("Content-Range") ?? "");
  const length = text("Content-Encoding") === undefined ? text("Content-Length") : undefined;
  if (response.status === 206 && range !== null) {
    if (range[3] !== "*") identity.size = Number(range[3]);
    return { begin: Number(range[1]), end: Number(range[2]) + 1, identity };
  }
  const first = response.status === 206 ? begin : 0;
  const end = length === undefined ? undefined : first + Number(length);
  if (end !== undefined && until === undefined) identity.size = end;
  return { begin: first, end, identity };
}

/** Whether bytes at a position have what is known at another, where the two meet. */
function agrees(bytes: Uint8Array, position: number, known: Uint8Array, knownAt: number): boolean {
  const begin = Math.max(position, knownAt);
  const end = Math.min(position + bytes.length, knownAt + known.length);
  for (let i = begin; i < end; i++)
    if (bytes[i - position] !== known[i - knownAt]) return false;
  return true;
}
