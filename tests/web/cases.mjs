// What tests run where the package runs, in a page (page.html) or in Node: functions whose
// arguments and results are plain values. One engine is open at a time, with one model; models are
// addresses.
import { ModelCache } from "../../web/dist/wick.js";
import { checkCase, readArrays, share } from "./op_calls.mjs";

let wick, model, ownWorker, recordings, warnings = [];

/** The recorded cases of tensor operations in a folder of a server's. */
async function readRecordings(address) {
  const [lines, data] = await Promise.all(
    ["cases.jsonl", "data.safetensors"].map((name) => fetch(address + name)));
  const cases = (await lines.text()).trim().split("\n").map((line) => JSON.parse(line));
  return { cases, arrays: readArrays(new Uint8Array(await data.arrayBuffer())) };
}

/** Its signal, which comes when all is loaded, stops nothing. */
async function load(address) {
  const controller = new AbortController();
  const loaded = await wick.load(address, { cache: false, signal: controller.signal });
  controller.abort();
  return loaded;
}

/** What the device and the module hold after each of nTimes rounds. */
async function memoryOfRounds(nTimes, round) {
  const after = [];
  for (let i = 0; i < nTimes; i++) {
    await round();
    const { bufferBytes, liveBytes, heapBytes } = await wick.stats();
    after.push({ bufferBytes, liveBytes, heapBytes });
  }
  return after;
}

async function tokensBehind(session, prompt, options, onToken = () => {}) {
  const tokens = [];
  for await (const { id } of session.generate(prompt, { temperature: 0, ...options })) {
    tokens.push(id);
    await onToken(tokens.length);
  }
  return tokens;
}

export const cases = {
  /**
   * Opens the engine: its capabilities, and the warnings of its log; or the code and sentence with
   * which it fails. bundle: of dist, a folder's address, by default web/dist.
   */
  async open({ bundle = "wick", dist = "../../web/dist/", ...options }, address) {
    await wick?.close();
    wick = undefined;
    warnings = [];
    const onLog = (level, message) => level === "warning" && warnings.push(message);
    try {
      const { Wick } = await import(`${dist}${bundle}.js`);
      wick = await Wick.open({ onLog, ...options });
    } catch ({ code, message }) {
      return { code, message };
    }
    if (address) model = await load(address);
    return { ...wick.capabilities(), warnings };
  },

  /** The sum of the product of two matrices of ones [n, n]: of tensors beside the model. */
  multiply(n) {
    return wick.scope(() => wick.ones([n, n]).matmul(wick.ones([n, n])).sum().item());
  },

  /** The losses of a line that is learned; the GPU goes before step loseAt, and the training goes on
   * from its checkpoint. */
  async learn({ loseAt }) {
    const losses = [];
    let n = 0, file, line;
    await wick.zeros([]).item().catch(() => undefined); // a loss before this is told here
    const begin = () => {
      const params = [wick.zeros([]), wick.zeros([])];
      line = { params, optimizer: wick.optimizer(params, { kind: "adamw" }) };
    };
    const step = () => wick.scope(() => {
      const x = wick.tensor([-1, 0, 1, 2]), tape = wick.tape().watch(...line.params);
      const loss = x.mul(line.params[0]).add(line.params[1]).mse(wick.tensor([-5, -2, 1, 4]));
      line.optimizer.step(tape.grad(loss, line.params), 0.1);
      tape.end();
      return loss.item();
    });
    for (begin(); losses.length < 6;) {
      try {
        if (losses.length % 2 === 0) file = { bytes: await line.optimizer.save(), n: losses.length };
        if (losses.length === loseAt && n === 0) await wick.loseDevice();
        losses.push(await step());
      } catch (reason) {
        if (reason.code !== "DEVICE_LOST" || n++ > 0) throw reason;
        begin();
        await line.optimizer.load(file.bytes);
        losses.length = file.n;
      }
    }
    return { losses, n };
  },

  /** Recorded cases of an operation, so many: how many there were, and what was wrong. */
  async recordedCases(address, op, perOp, isGpu) {
    recordings ??= readRecordings(address);
    const { cases: all, arrays } = await recordings;
    const selected = share(all.filter((recorded) => recorded.op === op), perOp ?? Infinity);
    const failures = [];
    for (const recorded of selected)
      await checkCase(wick, arrays, recorded, isGpu).catch(async (reason) => {
        failures.push(`${recorded.id}: ${reason.message}`);
        await wick.sync().catch(() => undefined);
      });
    return { nCases: selected.length, failures };
  },

  /**
   * Loads a model by these options: what came of it, the progress, and how many bytes a fetch of
   * the page's own has fetched where it is asked to (isFetching), or got nothing (hasNoAnswer).
   */
  async load(address, { isFetching, hasNoAnswer, giveUpAfter, ...options } = {}) {
    const phases = [], asked = [];
    let mostDone = 0;
    const onProgress = ({ phase, done }) => {
      if (phases.at(-1) !== phase) phases.push(phase);
      if (phase === "download") mostDone = done;
    };
    const own = async (url, init) => {
      asked.push(init.headers.Range ?? new Headers(init.headers).get("range"));
      return hasNoAnswer ? Response.error() : fetch(url, init);
    };
    let failure;
    try {
      const loaded = await wick.load(address,
        { onProgress, ...(isFetching && { fetch: own }), ...options });
      await loaded.close();
    } catch ({ code, message, bytesRequested, bytesAvailable }) {
      failure = { code, message, bytesRequested, bytesAvailable };
    }
    return { failure, phases, asked, mostDone, warnings };
  },

  /** What follows on a prompt in a service worker, by both bundles. */
  async inServiceWorker(given) {
    const url = new URL("service_worker.mjs", import.meta.url);
    await navigator.serviceWorker.register(url, { type: "module" });
    const { active } = await navigator.serviceWorker.ready;
    const { port1, port2 } = new MessageChannel();
    const answer = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
    active.postMessage(given, [port2]);
    const { result, error } = await answer;
    if (error) throw new Error(error);
    return result;
  },

  /**
   * The tokens after a prompt, in a session of its own, and what the device did meanwhile.
   * loseAfter: the GPU is lost after so many tokens.
   */
  async generate({ prompt, maxTokens, loseAfter, speculate = "none", options }) {
    const before = await wick.stats();
    const session = await model.session({ speculate }); // those of "ngram" are read back, too
    const tokens = await tokensBehind(session, prompt, { maxTokens, ...options }, async (n) => {
      if (n === loseAfter) await wick.loseDevice();
    });
    await session.close();
    const after = await wick.stats();
    const did = Object.keys(after).map((key) => [key, after[key] - before[key]]);
    const { backend } = wick.capabilities().device;
    return { tokens, did: Object.fromEntries(did), backend };
  },

  /** The log probabilities of all tokens after a prompt, by id; the context has one place more. */
  async logprobs({ address, prompt, nVocab }) {
    const loaded = await load(address);
    const session = await loaded.session(
      { cache: "f32", logprobs: nVocab, contextLength: prompt.length + 1 });
    const byId = new Array(nVocab);
    const options = { temperature: 0, maxTokens: 1, ignoreEnd: true };
    for await (const { logprobs = [] } of session.generate(prompt, options))
      for (const { id, logprob } of logprobs) byId[id] = logprob;
    await loaded.close();
    return byId;
  },

  /** What a model needs, by its header, with a context of so many tokens. */
  preflight: (address, contextLength) => wick.preflight(address, { contextLength }),

  /**
   * Gives the loading of a model up when so many bytes have come: the code with which it ends, and
   * memory before and after. cache: as in wick.load; what it then has of the model is deleted.
   */
  async giveUp({ address, bytes, cache, contextLength }) {
    const controller = new AbortController();
    const onProgress = ({ done }) => done >= bytes && controller.abort();
    const { signal } = controller, session = { contextLength };
    let code;
    const options = { cache, onProgress, signal, session };
    const after = await memoryOfRounds(2, () =>
      wick.load(address, options).catch((error) => ({ code } = error)));
    const kept = await ModelCache.open();
    const entry = await kept.get(address);
    if (entry) await kept.delete(address);
    return { code, after, storedSize: entry?.storedSize, isComplete: entry?.isComplete };
  },

  /** Generations given up after 1 to most tokens, and then what the session generates. */
  async abort({ prompt, nTimes, most }) {
    const session = await model.session();
    const behindReset = async (options, onToken) => {
      await session.reset();
      return tokensBehind(session, prompt, options, onToken);
    };
    let nAborted = 0;
    const after = await memoryOfRounds(nTimes, async () => {
      const controller = new AbortController();
      const { signal } = controller;
      const last = 1 + Math.floor(Math.random() * most);
      await behindReset({ maxTokens: most + 1, signal }, (n) => {
        if (n === last) controller.abort();
      }).catch(({ code }) => (nAborted += code === "CANCELLED"));
      await behindReset({ maxTokens: 1 }); // what was given up may still run: this comes after it
    });
    const tokens = await behindReset({ maxTokens: most + 1 });
    await session.close();
    return { nAborted, tokens, after };
  },

  /** Memory after each of nTimes sessions that were opened, used and closed. */
  sessions({ prompt, nTimes }) {
    return memoryOfRounds(nTimes, async () => {
      const session = await model.session();
      await tokensBehind(session, prompt, { maxTokens: 1 });
      await session.close();
    });
  },

  /** The stats of three sessions with one prompt; the last of them reuses nothing. */
  async reuse({ prompt }) {
    const stats = [];
    for (const noReuse of [false, false, true]) {
      const session = await model.session({ noReuse });
      await tokensBehind(session, prompt, { maxTokens: 1 });
      stats.push(await session.stats());
      await session.close();
    }
    return stats;
  },

  /** The tokens after three prompts: in sessions one after another, and in three at a time. */
  async together({ prompt, maxTokens }) {
    const prompts = [prompt, "Lily and Tom", "One day, a big dog"];
    const tokensOf = async (ids) => {
      const session = await model.session({ noReuse: true });
      const tokens = await tokensBehind(session, ids, { maxTokens, ignoreEnd: true });
      await session.close();
      return tokens;
    };
    const alone = [];
    for (const ids of prompts) alone.push(await tokensOf(ids));
    return { alone, together: await Promise.all(prompts.map(tokensOf)) };
  },

  /** What the two clients of the package answer by a model with a template, given by its bytes. */
  async clients(bytes) {
    const [{ Wick }, { OpenAI }, { promptApi }] = await Promise.all(
      ["wick", "openai", "prompt-api"].map((name) => import(`../../web/dist/${name}.js`)));
    const engine = await Wick.open({ backend: "cpu", api: true });
    const loaded = await engine.load(new Blob([new Uint8Array(bytes)]));
    const client = new OpenAI(await loaded.api({ contextLength: 256 }));
    const request = { messages: [{ role: "user", content: "Once upon a time" }], max_tokens: 12,
      temperature: 0 };
    const { choices: [{ message }] } = await client.chat.completions.create(request);
    let streamed = "";
    const stream = await client.chat.completions.create({ ...request, stream: true });
    for await (const { choices: [choice] } of stream) streamed += choice.delta.content ?? "";
    const LanguageModel = promptApi(loaded, { contextLength: 256, maxTokens: 12 });
    const session = await LanguageModel.create({ temperature: 0, topK: 1 });
    const prompted = await session.prompt("Once upon a time");
    await engine.close();
    return { whole: message.content, streamed, prompted };
  },

  /** Memory after each of nTimes models that were loaded, used and closed. */
  models({ address, prompt, nTimes }) {
    return memoryOfRounds(nTimes, async () => {
      const loaded = await load(address);
      await tokensBehind(await loaded.session(), prompt, { maxTokens: 1 });
      await loaded.close();
    });
  },

  /** One of these functions in a worker of the page's own. */
  inWorker: (name, ...given) => new Promise((resolve, reject) => {
    ownWorker ??= new Worker(new URL("own_worker.mjs", import.meta.url), { type: "module" });
    ownWorker.onmessage = ({ data }) => data.error ? reject(new Error(data.error))
      : resolve(data.result);
    ownWorker.onerror = ({ message }) => reject(new Error(message));
    ownWorker.postMessage({ name, given });
  }),
};

globalThis.cases = cases;
