/** Training a classifier of handwritten digits from scratch. */
import type { Tensor, Wick } from "libwick";
import type { StoredTensor } from "./safetensors.js";

const BATCH = 64, RATE = 3e-3;
/** Shapes of the parameters: two convolutions, each with scale and shift of its norm; a layer. */
const SHAPES = [[16, 1, 3, 3], [16], [16], [32, 4, 3, 3], [32], [32], [10, 128], [10]];
const SCALES = [1, 4];
/** Losses that are being read while the next steps are given. */
const MOST_READING = 4;

export interface Watcher {
  /** The loss of a step, before it. */
  onStep(step: number, loss: number): void;
  /** Of the test images: the share that is read right, and what each of them is read as. */
  onEpoch(epoch: number, accuracy: number, read: Uint32Array): void;
}

export class DigitTrainer {
  readonly stepsOfEpoch: number;
  readonly #wick: Wick;
  readonly #images: Tensor;
  readonly #labels: Tensor;
  readonly #train: Tensor;
  readonly #test: Tensor;
  readonly #params: Tensor[];

  constructor(wick: Wick, data: Map<string, StoredTensor>, seed: number) {
    const tensor = (name: string): Tensor => {
      const { values, shape } = data.get(name)!;
      return wick.tensor(values, shape);
    };
    this.#wick = wick;
    wick.setSeed(seed);
    const images = tensor("images"), train = tensor("train_index"), test = tensor("test_index");
    this.#images = images.cast("f32").div(16);
    this.#labels = tensor("labels");
    this.#train = train.cast("u32");
    this.#test = test.cast("u32");
    for (const given of [images, train, test]) given.dispose();
    this.stepsOfEpoch = Math.floor(data.get("train_index")!.values.length / BATCH);
    this.#params = SHAPES.map((shape, i) => {
      const bound = 1 / Math.sqrt(shape.slice(1).reduce((a, b) => a * b, 1));
      return bound < 1 ? wick.rand(shape, -bound, bound)
        : SCALES.includes(i) ? wick.ones(shape) : wick.zeros(shape);
    });
  }

  /** images [n, 1, 8, 8]: the logits of ten digits, [n, 10]. */
  #classify(images: Tensor): Tensor {
    const [conv1, scale1, shift1, conv2, scale2, shift2, linear, bias] = this.#params as
      [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor];
    return images.conv2d(conv1, undefined, { padding: 1 }).groupNorm(4, scale1, shift1).relu()
      .maxPool2d(2)
      .conv2d(conv2, undefined, { padding: 1, groups: 4 }).groupNorm(4, scale2, shift2).gelu()
      .avgPool2d(2).flatten(1).linear(linear, bias);
  }

  async train(nEpochs: number, signal: AbortSignal, { onStep, onEpoch }: Watcher): Promise<void> {
    const optimizer = this.#wick.optimizer(this.#params, { kind: "adamw", weightDecay: 1e-2 });
    try {
      for (let epoch = 0; epoch < nEpochs; epoch++) {
        await this.#wick.scope(() =>
          this.#trainEpoch(optimizer, epoch, RATE * (nEpochs - epoch) / nEpochs, signal, onStep));
        const { accuracy, read } = await this.#wick.scope(() => this.#measure());
        onEpoch(epoch + 1, accuracy, read);
      }
    } finally {
      optimizer.dispose();
    }
  }

  async #trainEpoch(optimizer: ReturnType<Wick["optimizer"]>, epoch: number, rate: number,
                    signal: AbortSignal, onStep: Watcher["onStep"]): Promise<void> {
    const wick = this.#wick;
    const order = this.#train.indexSelect(0, wick.rand([this.stepsOfEpoch * BATCH]).argsort(0));
    const reading: Promise<void>[] = [];
    let told: Promise<void> = Promise.resolve();
    for (let i = 0; i < this.stepsOfEpoch; i++) {
      signal.throwIfAborted();
      const loss = await wick.scope(() => {
        const batch = order.narrow(0, i * BATCH, BATCH);
        const tape = wick.tape().watch(...this.#params);
        const error = this.#classify(this.#images.indexSelect(0, batch))
          .crossEntropy(this.#labels.indexSelect(0, batch));
        optimizer.step(tape.grad(error, this.#params), rate);
        tape.end();
        return error;
      });
      const value = loss.item(), before = told;
      told = value.then(async (read) => {
        await before; // in their order
        onStep(epoch * this.stepsOfEpoch + i + 1, read);
      });
      reading.push(told);
      if (reading.length >= MOST_READING) await reading.shift();
    }
    await Promise.all(reading);
  }

  async #measure(): Promise<{ accuracy: number; read: Uint32Array }> {
    const read = this.#classify(this.#images.indexSelect(0, this.#test)).argmax(1);
    const isRight = read.eq(this.#labels.indexSelect(0, this.#test)).cast("f32");
    return { accuracy: await isRight.mean().item(), read: await read.read() as Uint32Array };
  }

  dispose(): void {
    for (const tensor of [this.#images, this.#labels, this.#train, this.#test, ...this.#params])
      tensor.dispose();
  }
}
