/** Bytes that come in pieces, as reads of the sizes that are asked for. */
import { abortable, type ByteSource, cancelled, joinBytes } from "./byte_source.js";
import { WickError } from "./errors.js";

export class InOrder {
  position: number;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #pieces: Uint8Array[] = [];
  #buffered = 0;
  #next: Promise<IteratorResult<Uint8Array>> | undefined;

  constructor(chunks: AsyncIterator<Uint8Array>, position: number) {
    this.#chunks = chunks;
    this.position = position;
  }

  /** Waits for the first bytes. */
  async start(signal: AbortSignal): Promise<void> {
    await this.#pull(signal);
  }

  async take(size: number, signal: AbortSignal): Promise<Uint8Array> {
    if (signal.aborted) throw cancelled(signal);
    while (this.#buffered < size && await this.#pull(signal));
    const taken: Uint8Array[] = [];
    for (let missing = size; missing > 0 && this.#buffered > 0;) {
      const first = this.#pieces[0]!;
      const piece = first.subarray(0, missing);
      if (piece.length === first.length) this.#pieces.shift();
      else this.#pieces[0] = first.subarray(piece.length);
      this.#buffered -= piece.length;
      missing -= piece.length;
      this.position += piece.length;
      taken.push(piece);
    }
    return taken.length === 1 ? taken[0]! : joinBytes(...taken);
  }

  /** Ends what the pieces come from. */
  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  /** False: there is no more. A failure stays. */
  async #pull(signal: AbortSignal): Promise<boolean> {
    this.#next ??= this.#chunks.next();
    const { done, value } = await abortable(this.#next, signal);
    this.#next = undefined;
    if (done) return false;
    this.#pieces.push(value);
    this.#buffered += value.length;
    return true;
  }
}

/** What a read elsewhere than at the position of such bytes fails with. */
export const outOfOrder = (source: ByteSource, position: number, offset: number): WickError =>
  new WickError("STATE", `${source.name} is read in order: at ${position}, not at ${offset}`);
