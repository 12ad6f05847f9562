/** How fast the device is: memory, products, and a model that is small enough for any. */
import type { Tensor, Wick } from "libwick";

export interface Speed {
  group: string;
  name: string;
  value: number;
  unit: string;
}

/** Milliseconds that a measurement takes at least, once everything is compiled. */
const DURATION = 400;

/** Seconds of one step, measured over enough steps that waiting for the device is negligible. */
async function timeStep(wick: Wick, step: () => Tensor): Promise<number> {
  const run = async (n: number) => {
    const begun = performance.now();
    for (let i = 0; i < n; i++) step().dispose();
    await wick.sync();
    return performance.now() - begun;
  };
  await run(2);
  for (let n = 1; ; n *= 2) {
    const time = await run(n);
    if (time >= DURATION || n >= 4096) return time / 1000 / n;
  }
}

/** Reads and writes of tensors that no cache holds. */
async function measureMemory(wick: Wick): Promise<Speed[]> {
  const n = 1 << 24;
  const x = wick.rand([n]);
  const seconds = await timeStep(wick, () => x.affine(2, 1));
  x.dispose();
  return [{ group: "Memory", name: "64 MiB read, 64 MiB written", value: 8 * n / seconds / 1e9,
    unit: "GB/s" }];
}

/** Square matrices, larger ones only where they do not take seconds. */
async function measureProducts(wick: Wick, report: (speed: Speed) => void): Promise<void> {
  let rate = Infinity;
  for (const n of [256, 512, 1024, 2048]) {
    if (2 * n ** 3 / rate > 1) return;
    const a = wick.randn([n, n]), b = wick.randn([n, n]);
    rate = 2 * n ** 3 / await timeStep(wick, () => a.matmul(b));
    a.dispose();
    b.dispose();
    report({ group: "Products of matrices, f32", name: `${n} × ${n}`, value: rate / 1e9,
      unit: "GFLOP/s" });
  }
}

/** One row by a matrix, as models do for each token: bound by memory. */
async function measureRow(wick: Wick): Promise<Speed[]> {
  const n = 4096;
  const x = wick.randn([1, n]), weight = wick.randn([n, n]);
  const seconds = await timeStep(wick, () => x.linear(weight));
  x.dispose();
  weight.dispose();
  return [{ group: "Memory", name: "Weights of a token, f32", value: 4 * n * n / seconds / 1e9,
    unit: "GB/s" }];
}

const MODEL = "stories260K.gguf", TOKENS = 200;

async function measureModel(wick: Wick): Promise<Speed[]> {
  const model = await wick.load(MODEL);
  try {
    const session = await model.session();
    const prompt = (await model.tokenize("Once upon a time there was a little girl. ".repeat(24)))
      .subarray(0, 256);
    await session.generate(prompt, { maxTokens: 2 }).text(); // compiles
    await session.reset();
    await session.generate(prompt, { maxTokens: TOKENS, ignoreEnd: true }).text();
    const { promptTokens, promptSeconds, generatedTokens, generateSeconds } = await session.stats();
    const group = "Tiny stories, 260 thousand parameters";
    return [
      { group, name: "Reading a prompt", value: promptTokens / promptSeconds, unit: "tokens/s" },
      { group, name: "Writing", value: generatedTokens / generateSeconds, unit: "tokens/s" },
    ];
  } finally {
    await model.close();
  }
}

/** Everything, one by one. */
export async function measureSpeed(wick: Wick, report: (speed: Speed) => void): Promise<void> {
  for (const measure of [measureMemory, measureRow])
    for (const speed of await measure(wick)) report(speed);
  await measureProducts(wick, report);
  for (const speed of await measureModel(wick)) report(speed);
}
