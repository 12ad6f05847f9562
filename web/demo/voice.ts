/** When does somebody speak? Silero VAD 6.2 (MIT, Silero Team), block by block of 32 ms. */
import type { RnnWeights, Tensor, Wick } from "libwick";
import type { StoredTensor } from "./safetensors.js";

export const RATE = 16000, BLOCK = 512;
const CONTEXT = 64, BINS = 129;

export interface Stretch {
  from: number;
  to: number;
}

/** Speech begins at a probability of 0.5 and lasts until it falls below 0.35; in seconds. */
export function stretchesOf(probabilities: ArrayLike<number>): Stretch[] {
  const found: Stretch[] = [];
  let begin: number | undefined;
  for (let i = 0; i <= probabilities.length; i++) {
    const isSpeech = i < probabilities.length
      && probabilities[i]! >= (begin === undefined ? 0.5 : 0.35);
    if (isSpeech) begin ??= i;
    else if (begin !== undefined) {
      found.push({ from: begin * BLOCK / RATE, to: i * BLOCK / RATE });
      begin = undefined;
    }
  }
  return found;
}

export class VoiceDetector {
  readonly #wick: Wick;
  readonly #weights: Map<string, Tensor>;
  /** What the network remembers: samples before the next block, and the LSTM's state. */
  #before = new Float32Array(CONTEXT);
  #state: { h: Tensor; c: Tensor } | undefined;

  constructor(wick: Wick, data: Map<string, StoredTensor>) {
    this.#wick = wick;
    this.#weights = new Map([...data].map(([name, { values, shape }]) =>
      [name, wick.tensor(values, shape)]));
  }

  #weight(name: string): Tensor {
    return this.#weights.get(name)!;
  }

  /** Of whole blocks of samples, -1 to 1, after those before: the probability of speech in each. */
  async listen(samples: Float32Array): Promise<Float32Array> {
    const wick = this.#wick;
    const heard = new Float32Array(CONTEXT + samples.length);
    heard.set(this.#before);
    heard.set(samples, CONTEXT);
    this.#before = heard.slice(-CONTEXT);
    const last = this.#state;
    const { y, h, c } = await wick.scope(() => this.#compute(wick.tensor(heard), last));
    this.#state = { h, c };
    for (const tensor of Object.values(last ?? {})) tensor.dispose();
    try {
      return await y.read() as Float32Array;
    } finally {
      y.dispose();
    }
  }

  #compute(heard: Tensor, state: { h: Tensor; c: Tensor } | undefined) {
    const conv = (x: Tensor, name: string, stride: number): Tensor =>
      x.conv1d(this.#weight(`${name}.weight`), this.#weight(`${name}.bias`), { padding: 1, stride })
        .relu();
    // [blocks, 576], the end once more in reverse; a Fourier transform written as a convolution.
    const blocks = heard.unfold(0, CONTEXT + BLOCK, BLOCK).pad([0, 0], [0, CONTEXT], "reflect");
    const waves = blocks.unsqueeze(1).conv1d(this.#weight("stft_conv.weight"), undefined,
                                             { stride: 128 });
    let x = waves.narrow(1, 0, BINS).hypot(waves.narrow(1, BINS, BINS));
    for (const [name, stride] of [["conv1", 1], ["conv2", 2], ["conv3", 2], ["conv4", 1]] as const)
      x = conv(x, name, stride);
    const weights: RnnWeights = {
      wIh: this.#weight("lstm_cell.weight_ih"), wHh: this.#weight("lstm_cell.weight_hh"),
      bIh: this.#weight("lstm_cell.bias_ih"), bHh: this.#weight("lstm_cell.bias_hh"),
    };
    const { output, h, c } = x.squeeze(2).unsqueeze(0).lstm(weights, state?.h, state?.c);
    const y = output.relu().transpose(1, 2)
      .conv1d(this.#weight("final_conv.weight"), this.#weight("final_conv.bias")).sigmoid();
    return { y, h, c };
  }

  /** As if nothing was heard so far. */
  reset(): void {
    this.#before = new Float32Array(CONTEXT);
    for (const tensor of Object.values(this.#state ?? {})) tensor.dispose();
    this.#state = undefined;
  }

  dispose(): void {
    this.reset();
    for (const tensor of this.#weights.values()) tensor.dispose();
  }
}
