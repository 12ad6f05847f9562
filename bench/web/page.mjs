// In the page: one engine is opened and measured; run.mjs calls `measure`.
import { openWick, openWllama } from "./engines.mjs";

/** Ticks of a timer as fast as browsers let it; what is longer than that kept the page waiting. */
class Watch {
  #longest = 0;
  #last = performance.now();
  #isOn = true;

  constructor() {
    const tick = () => {
      const now = performance.now();
      this.#longest = Math.max(this.#longest, now - this.#last);
      this.#last = now;
      if (this.#isOn) setTimeout(tick);
    };
    setTimeout(tick);
  }

  /** The longest interval between two ticks, in milliseconds. */
  stop() {
    this.#isOn = false;
    return Math.max(this.#longest, performance.now() - this.#last);
  }
}

/** Milliseconds until each token of an answer, and how long the page waited meanwhile. */
async function time(engine, prompt, n) {
  const watch = new Watch();
  const begun = performance.now();
  const at = [];
  let text = "";
  for await (const token of engine.generate(prompt, n)) {
    at.push(performance.now() - begun);
    text += token.text;
  }
  return { at, text, blocked: watch.stop(), promptTokens: await engine.promptTokens() };
}

const COUNTERS = ["reads", "bytesRead", "submits", "dispatches", "fallbacks"];

async function decode(engine, prompt, n) {
  const before = await engine.counters();
  const { at, text, blocked, promptTokens } = await time(engine, prompt, n);
  const after = await engine.counters();
  const counted = (name) => (after[name] - before[name]) / at.length;
  return {
    text,
    tokens: at.length,
    shortTokens: promptTokens,
    firstTokenSeconds: at[0] / 1000,
    decodeTokensPerSecond: (at.length - 1) / (at.at(-1) - at[0]) * 1000,
    decodeBlockedMs: blocked,
    ...(after && {
      heapBytes: after.heapBytes,
      perToken: Object.fromEntries(COUNTERS.map((name) => [name, counted(name)])),
    }),
  };
}

async function prefill(engine, prompt) {
  const { at, blocked, promptTokens } = await time(engine, prompt, 1);
  return {
    longTokens: promptTokens,
    prefillTokensPerSecond: promptTokens / at[0] * 1000,
    prefillBlockedMs: blocked,
  };
}

globalThis.measure = async ({ engine: name, folder, model, backend, threads, short, long, tokens }) => {
  const blob = await (await fetch(model)).blob();
  const begun = performance.now();
  const open = name === "wick" ? openWick : openWllama;
  const engine = await open(blob, { engine: name, backend, threads, folder });
  const loadSeconds = (performance.now() - begun) / 1000;
  await time(engine, short, 2); // to warm up
  const record = {
    loadSeconds, version: engine.version, module: engine.module, device: engine.device,
    ...await decode(engine, short, tokens),
    ...(long && await prefill(engine, long)),
  };
  await engine.close();
  return record;
};
