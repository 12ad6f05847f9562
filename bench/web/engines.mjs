// The two engines behind the same few calls: open one with a model, and for await of
// `generate(prompt, n)` n tokens are chosen greedily behind nothing but the prompt.

const CONTEXT = 1024;

export async function openWick(blob, { backend, threads }) {
  const { Wick } = await import("/wick/wick.js");
  const wick = await Wick.open({ backend, threads });
  const model = await wick.load(blob, { session: { contextLength: CONTEXT } });
  const session = await model.session({ contextLength: CONTEXT, ignoreEnd: true });
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

export async function openWllama(blob, { threads }) {
  const { Wllama, LoggerWithoutDebug } = await import("/wllama/index.js");
  const wllama = new Wllama({ default: "/wllama/wasm/wllama.wasm" },
                            { suppressNativeLog: true, logger: LoggerWithoutDebug });
  await wllama.loadModel([blob], {
    n_ctx: CONTEXT, n_threads: threads, n_gpu_layers: 0, warmup: false,
  });
  let usage;
  return {
    version: Wllama.getLibllamaVersion(),
    module: wllama.isMultithread() ? "threads" : "single",
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
    counters: async () => undefined,
    close: () => wllama.exit(),
  };
}
