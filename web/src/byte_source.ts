/** Sources that the engine reads a model from, and reports of their progress. */
import { CancelledError } from "./errors.js";

/** Bytes of a file, read in file order; the engine owns it and calls close once. */
export interface ByteSource {
  /** For messages: a URL or the name of a file. */
  readonly name: string;
  /** Bytes, when known. */
  readonly size: number | undefined;
  /** Offsets only ever grow without gaps: it cannot be read again. */
  readonly isSequential: boolean;
  /**
   * The bytes at an offset, fewer only at the end. One read at a time; the view may be of memory
   * that is used again at the next read.
   */
  read(offset: number, size: number, signal: AbortSignal): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** How far a download is. */
export interface DownloadProgress {
  /** Whether a server is asked, its bytes come, or those of the cache are checked. */
  phase: "connect" | "download" | "verify";
  /** Bytes that are there. */
  done: number;
  /** Bytes of the file, when known. */
  total: number | undefined;
  /** Of the last seconds. */
  bytesPerSecond: number;
  /** When the rate stays as it is, and the size is known. */
  secondsLeft: number | undefined;
}

export type ProgressListener = (progress: DownloadProgress) => void;

/** Milliseconds: of the rate, and between two reports. */
const WINDOW = 5000, INTERVAL = 100;

/** Counts bytes and reports, not more often than a person can read. */
export class ProgressMeter {
  readonly #listener: ProgressListener | undefined;
  #samples: { time: number; done: number }[] = [];
  #reported = -Infinity;

  constructor(listener: ProgressListener | undefined) {
    this.#listener = listener;
  }

  update(phase: DownloadProgress["phase"], done: number, total: number | undefined): void {
    if (this.#listener === undefined) return;
    const time = performance.now();
    this.#samples.push({ time, done });
    while (this.#samples.length > 2 && this.#samples[1]!.time < time - WINDOW)
      this.#samples.shift();
    if (time - this.#reported < INTERVAL && done !== total) return;
    this.#reported = time;
    const first = this.#samples[0]!;
    const seconds = (time - first.time) / 1000;
    const bytesPerSecond = seconds > 0 ? Math.max(done - first.done, 0) / seconds : 0;
    const secondsLeft = total === undefined || bytesPerSecond === 0 ? undefined
      : (total - done) / bytesPerSecond;
    this.#listener({ phase, done, total, bytesPerSecond, secondsLeft });
  }
}

/** The result of work, unless the signal comes first: the work itself goes on. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(cancelled(signal));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** A controller that the outer signal aborts, too; its own abort takes it off that signal. */
export function linkedController(outer: AbortSignal | undefined): AbortController {
  const own = new AbortController();
  const stop = (): void => own.abort(outer?.reason);
  if (outer?.aborted) stop();
  outer?.addEventListener("abort", stop, { signal: own.signal });
  return own;
}

/** What a read that was stopped fails with. */
export function cancelled(signal: AbortSignal): CancelledError {
  return new CancelledError("reading the model was stopped", { cause: signal.reason });
}

export function joinBytes(...pieces: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}
