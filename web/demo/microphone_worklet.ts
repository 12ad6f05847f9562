/** Of the audio's own thread: collects blocks of samples and posts them. */

interface Processor {
  readonly port: MessagePort;
}

declare const AudioWorkletProcessor: new () => Processor;
declare function registerProcessor(name: string, type: new (options: {
  processorOptions: { size: number };
}) => Processor): void;

class Blocks extends AudioWorkletProcessor {
  readonly #size: number;
  #block: Float32Array;
  #filled = 0;

  constructor({ processorOptions }: { processorOptions: { size: number } }) {
    super();
    this.#size = processorOptions.size;
    this.#block = new Float32Array(this.#size);
  }

  /** inputs: of each input its channels, 128 samples. */
  process([channels]: Float32Array[][]): boolean {
    for (const sample of channels?.[0] ?? []) {
      this.#block[this.#filled++] = sample;
      if (this.#filled < this.#size) continue;
      this.port.postMessage(this.#block, [this.#block.buffer]);
      this.#block = new Float32Array(this.#size);
      this.#filled = 0;
    }
    return true;
  }
}

registerProcessor("blocks", Blocks);

export {};
