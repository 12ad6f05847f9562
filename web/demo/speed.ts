/** How fast the device is: memory, products, and a model that is small enough for any. */
import type { Tensor, Wick } from "libwick";

export interface Speed {
  group: string;
  name: string;
  value: number;
  unit: string;
  /** Where the report of the GPU has it (gpu_report.ts), and what it says there. */
  field?: { section: "limits" | "kernels" | "models"; name: string; row: Record<string, unknown> };
}

const limit = (name: string, value: number): NonNullable<Speed["field"]> =>
  ({ section: "limits", name, row: { value } });

/** A row of the kernels: bytes and multiplications and additions of one run. */
const kernel = (operands: string, rows: number, seconds: number, bytes: number,
                flops: number): NonNullable<Speed["field"]> =>
  ({ section: "kernels", name: "other",
     row: { op: "linear", type: "f32", rows, operands, seconds, bytes, flops } });

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

/** Seconds of one step until the device has computed it: the median of several. */
async function timeSynced(wick: Wick, step: () => Tensor): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 6; i++) {
    const begun = performance.now();
    step().dispose();
    await wick.sync();
    if (i > 0) times.push(performance.now() - begun); // the first one compiles
  }
  return (times.sort((a, b) => a - b)[2] ?? 0) / 1000;
}

/** Reads and writes of tensors that no cache holds. */
async function measureMemory(wick: Wick): Promise<Speed[]> {
  const n = 1 << 24;
  const x = wick.rand([n]);
  const seconds = await timeStep(wick, () => x.affine(2, 1));
  x.dispose();
  return [{ group: "Memory", name: "64 MiB read, 64 MiB written", value: 8 * n / seconds / 1e9,
    unit: "GB/s", field: limit("copy_64_mib_bytes_per_second", 8 * n / seconds) }];
}

/** What a read of one word costs when nothing is queued, and dispatches that wait for each other. */
async function measureDispatches(wick: Wick): Promise<Speed[]> {
  const group = "Dispatches", n = 1000;
  const x = wick.randn([1, 16]), weight = wick.randn([16, 16]);
  const chain = () => {
    let y = x.linear(weight);
    for (let i = 1; i < n; i++) {
      const next = y.linear(weight);
      y.dispose();
      y = next;
    }
    return y;
  };
  const one = await timeSynced(wick, () => x.linear(weight));
  const dependent = await timeSynced(wick, chain);
  x.dispose();
  weight.dispose();
  return [
    { group, name: "One, until it has run", value: 1e6 * one, unit: "µs",
      field: limit("submit_seconds", one) },
    { group, name: "1,000, each after the one before", value: 1e3 * dependent, unit: "ms",
      field: limit("thousand_dependent_dispatches_seconds", dependent) },
  ];
}

/** Square matrices, larger ones only where they do not take seconds. */
async function measureProducts(wick: Wick, report: (speed: Speed) => void): Promise<void> {
  let rate = Infinity;
  for (const n of [256, 512, 1024, 2048]) {
    if (2 * n ** 3 / rate > 1) return;
    const a = wick.randn([n, n]), b = wick.randn([n, n]);
    const seconds = await timeStep(wick, () => a.matmul(b));
    rate = 2 * n ** 3 / seconds;
    a.dispose();
    b.dispose();
    report({ group: "Products of matrices, f32", name: `${n} × ${n}`, value: rate / 1e9,
      unit: "GFLOP/s", field: kernel(`[${n}, ${n}] [${n}, ${n}]`, n, seconds, 12 * n * n,
                                     2 * n ** 3) });
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
    unit: "GB/s", field: kernel(`[1, ${n}] [${n}, ${n}]`, 1, seconds, 4 * n * n, 2 * n * n) }];
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
    const before = await wick.stats();
    await session.generate(prompt, { maxTokens: TOKENS, ignoreEnd: true }).text();
    const after = await wick.stats();
    const { promptTokens, promptSeconds, generatedTokens, generateSeconds } = await session.stats();
    const group = "Tiny stories, 260 thousand parameters";
    const read = promptTokens / promptSeconds, written = generatedTokens / generateSeconds;
    const row = (test: string, n: number, rate: number) =>
      ({ model: "built-in 260K", types: "f32", test, n_tokens: n, tokens_per_second: rate });
    const perToken = (name: "dispatches" | "submits" | "reads") =>
      (after[name] - before[name]) / generatedTokens;
    return [
      { group, name: "Reading a prompt", value: read, unit: "tokens/s",
        field: { section: "models", name: "prefill", row: row("prefill", promptTokens, read) } },
      { group, name: "Writing", value: written, unit: "tokens/s",
        field: { section: "models", name: "decode", row: {
          ...row("decode", promptTokens, written), dispatches_per_token: perToken("dispatches"),
          submits_per_token: perToken("submits"), reads_per_token: perToken("reads") } } },
    ];
  } finally {
    await model.close();
  }
}

/** Everything, one by one. */
export async function measureSpeed(wick: Wick, report: (speed: Speed) => void): Promise<void> {
  for (const measure of [measureMemory, measureRow, measureDispatches])
    for (const speed of await measure(wick)) report(speed);
  await measureProducts(wick, report);
  for (const speed of await measureModel(wick)) report(speed);
}
