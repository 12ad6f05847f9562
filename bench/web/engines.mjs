// The engines behind the same few calls: open one with a model, and for await of
// `generate(prompt, n)` n tokens are chosen greedily after nothing but the prompt.

const CONTEXT = 1024;

export async function openWick(blob, { backend, threads }) {
  const { Wick } = await import("/wick/wick.js");
  const wick = await Wick.open({ backend, threads });
  const model = await wick.load(blob, { session: { contextLength: CONTEXT } });
  const session = await model.session({ contextLength: CONTEXT, ignoreEnd: true, noReuse: true });
  return {
    version: wick.capabilities().version,
    device: wick.capabilities().device,
    module: wick.capabilities().module,
    async *generate(prompt, maxTokens) {
      await session.reset();
      yield* session.generate(prompt, { maxTokens });
    },
    promptTokens: async () => (await session.stats()).promptTokens,
    counters: () => wick.stats(),
    close: () => wick.close(),
  };
}

/** engine: "wllama" and its version; folder: where the server has its files. */
export async function openWllama(blob, { engine, threads, folder }) {
  const { Wllama, LoggerWithoutDebug } = await import(`${folder}index.js`);
  const isNew = !engine.startsWith("wllama 2.");
  const files = isNew ? { default: `${folder}wasm/wllama.wasm` } : {
    "single-thread/wllama.wasm": `${folder}single-thread/wllama.wasm`,
    "multi-thread/wllama.wasm": `${folder}multi-thread/wllama.wasm`,
  };
  const wllama = new Wllama(files, { suppressNativeLog: true, logger: LoggerWithoutDebug });
  await wllama.loadModel([blob], {
    n_ctx: CONTEXT, n_threads: threads, ...(isNew && { n_gpu_layers: 0, warmup: false }),
  });
  return {
    version: Wllama.getLibllamaVersion(),
    module: wllama.isMultithread() ? "threads" : "single",
    ...(isNew ? generateNew(wllama) : generateOld(wllama)),
    counters: async () => undefined,
    close: () => wllama.exit(),
  };
}

/** Version 3. */
function generateNew(wllama) {
  let usage;
  return {
    async *generate(prompt, maxTokens) {
      const chunks = await wllama.createCompletion({
        prompt, max_tokens: maxTokens, temperature: 0, ignore_eos: true, cache_prompt: false,
        stream: true, stream_options: { include_usage: true },
      });
      for await (const chunk of chunks) {
        usage = chunk.usage ?? usage;
        const { text, finish_reason: reason } = chunk.choices[0] ?? {};
        if (text !== undefined && !reason) yield { text };
      }
    },
    promptTokens: async () => usage?.prompt_tokens,
  };
}

/** Version 2, which has no option to go on after a model's end: its token is never chosen. */
function generateOld(wllama) {
  let nPrompt;
  const decoder = new TextDecoder();
  return {
    async *generate(prompt, maxTokens) {
      const ends = [wllama.getEOS(), wllama.getEOT()].filter((token) => token >= 0);
      const sampling = { temp: 0, logit_bias: ends.map((token) => ({ token, bias: -1e9 })) };
      const chunks = await wllama.createCompletion(prompt,
        { nPredict: maxTokens, sampling, useCache: false, stream: true });
      for await (const { piece } of chunks) yield { text: decoder.decode(piece, { stream: true }) };
      nPrompt = (await wllama.tokenize(prompt, true)).length;
    },
    promptTokens: async () => nPrompt,
  };
}
