// Fine-tuning in the package: stories260K learns a text, its adapter is a file that the model
// computes with; what is wrong is refused.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { longOnes, snippets } from "./fixtures.mjs";
import { open as openDevice, rejects } from "./node_tests.mjs";
import { missing, openWebGpu } from "./node_webgpu.mjs";
import { PageWorker } from "./node_worker.mjs";

globalThis.Worker = PageWorker;

const STORIES = readFileSync(fileURLToPath(new URL("../data/stories260K.gguf", import.meta.url)));
const TEXT = "The miller left his cat to the youngest son. The cat asked for a bag and for boots. "
  .repeat(12);
const OPTIONS = { text: TEXT, contextLength: 32, steps: 12, batch: 4, rate: 5e-3, rank: 4, seed: 3 };

const open = (options) => openDevice({ tensors: true, ...options });
const load = (wick) => wick.load(new Uint8Array(STORIES), { cache: false });

async function continued(model, prompt = "The miller") {
  const session = await model.session({ temperature: 0, maxTokens: 16 });
  const text = await session.generate(prompt).text();
  await session.close();
  return text;
}

/** The events of a whole training, and its adapter. */
async function train(model, options) {
  const training = await model.finetune(options), events = [];
  for await (const event of training) events.push(event);
  const adapter = await training.adapter(), { examples } = training;
  await training.close();
  return { events, adapter, examples };
}

async function checkTraining(wick) {
  const model = await load(wick);
  const before = await continued(model);
  const { events, adapter, examples } = await train(model, { ...OPTIONS, heldOut: 0.2 });
  assert.ok(examples.examples > 5 && examples.tokens > 300, JSON.stringify(examples));
  const steps = events.filter(({ kind }) => kind === "step");
  const held = events.filter(({ kind }) => kind === "held-out");
  assert.deepEqual(steps.map(({ step }) => step), Array.from({ length: 12 }, (_, i) => i + 1));
  assert.ok(steps.every(({ steps: all, loss, perplexity }) =>
    all === 12 && Math.abs(perplexity - Math.exp(loss)) < 1e-6 * perplexity));
  assert.equal(held.length, 2);
  assert.ok(held[1].perplexity < 0.7 * held[0].perplexity, `${held[0].perplexity}, ${held[1].perplexity}`);
  assert.equal(await continued(model), before); // it is as it was
  await model.addAdapter(adapter);
  const after = await continued(model);
  assert.notEqual(after, before);
  await model.addAdapter(adapter, -1);
  assert.equal(await continued(model), before); // one takes back what the other does
  await model.close();
  const texts = await checkAdapters(wick, adapter);
  return { after, texts, losses: steps.map(({ loss }) => loss) };
}

/** Sessions with an adapter, with half of it and without one, at the same time. */
async function checkAdapters(wick, bytes) {
  const model = await load(wick), options = { temperature: 0, maxTokens: 12 };
  const plain = await model.session(options), before = await plain.generate("The miller").text();
  const adapter = await model.loadAdapter(bytes), other = await model.loadAdapter(bytes);
  const choices = [[], [{ adapter }], [{ adapter, scale: 0.5 }, { adapter: other, scale: 0.5 }]];
  const sessions = await Promise.all(choices.map(async (choice) => {
    const session = await model.session(options);
    await session.setAdapters(choice);
    return session;
  }));
  const texts = await Promise.all(sessions.map((session) => session.generate("The miller").text()));
  assert.equal(texts[0], before);
  assert.notEqual(texts[1], before);
  await rejects(adapter.close(), "STATE", /open sessions/);
  const copy = await sessions[1].fork();
  assert.equal(await copy.generate("").text(), await sessions[1].generate("").text());
  await plain.reset();
  await plain.setAdapters([{ adapter: other }]);
  assert.equal(await plain.generate("The miller").text(), texts[1]);
  await rejects(plain.setAdapters([{ adapter: other, scale: NaN }]), "VALUE", /finite/);
  const engine = await open(), foreign = await (await load(engine)).loadAdapter(bytes);
  await rejects(plain.setAdapters([{ adapter: foreign }]), "ARGUMENT", /another engine/);
  await engine.close();
  await rejects(plain.setAdapters(adapter), "ARGUMENT", /array/);
  await rejects(plain.setAdapters([adapter]), "ARGUMENT", /loadAdapter/);
  await rejects(model.loadAdapter("file"), "ARGUMENT", /bytes of a file/);
  await rejects(model.loadAdapter(bytes.slice(0, 500)), "FORMAT", /./);
  for (const session of [plain, copy, ...sessions]) await session.close();
  await adapter.close();
  await rejects(copy.setAdapters([]), "STATE", /closed/);
  const late = await model.session(options);
  await rejects(late.setAdapters([{ adapter }]), "STATE", /the adapter is closed/);
  await late.setAdapters([{ adapter: other }]);
  const short = await model.loadAdapter(bytes);
  const calls = [late.setAdapters([{ adapter: short }]), short.close()]; // whichever comes first
  const failed = (await Promise.allSettled(calls)).filter(({ status }) => status === "rejected");
  assert.deepEqual(failed.map(({ reason }) => reason.code), ["STATE"]);
  await model.close(); // with session and adapter
  return texts;
}

let onCpu;

test("a model learns a text on the CPU", async () => {
  const wick = await open();
  onCpu = await checkTraining(wick);
  await wick.close();
});

test("the same in a worker", { skip: longOnes }, async () => {
  const wick = await open({ worker: true, threads: 1 });
  const { losses } = await checkTraining(wick);
  losses.forEach((loss, i) => assert.ok(Math.abs(loss - onCpu.losses[i]) < 1e-3 * loss));
  await wick.close();
});

test("the same on WebGPU", { skip: missing ?? longOnes }, async () => {
  const wick = await open({ backend: "webgpu", gpu: await openWebGpu() });
  const { losses } = await checkTraining(wick);
  losses.forEach((loss, i) => assert.ok(Math.abs(loss - onCpu.losses[i]) < 1e-2 * loss));
  await wick.close();
});

test("who stops in the middle goes on, and gives up by a signal", async () => {
  const wick = await open(), model = await load(wick), controller = new AbortController();
  const training = await model.finetune({ ...OPTIONS, signal: controller.signal });
  for await (const { step } of training) if (step === 3) break;
  const third = await training.adapter();
  for await (const { step } of training) if (step === 6) break;
  assert.notDeepEqual(await training.adapter(), third);
  await rejects(model.session(), "STATE", /./);
  await rejects(model.finetune(OPTIONS), "STATE", /./);
  controller.abort();
  await rejects((async () => {
    for await (const _ of training);
  })(), "CANCELLED", /./);
  await training.close();
  await training.close();
  await rejects(training.adapter(), "STATE", /the training is closed/);
  await (await model.session()).close();
  const open2 = await model.finetune(OPTIONS);
  await model.close(); // with its training
  await rejects(open2.adapter(), "STATE", /closed/);
  await wick.close();
});

test("a model is closed while its training is, or while one begins", async () => {
  const wick = await open({ threads: 1 });
  let model = await load(wick);
  const training = await model.finetune(OPTIONS), events = training[Symbol.asyncIterator]();
  await events.next();
  const step = assert.rejects(events.next(), { code: "STATE" });
  await new Promise((resolve) => setTimeout(resolve, 1));
  await Promise.all([training.close(), model.close(), step]);
  model = await load(wick);
  await wick.ones([2]).exp().describe(); // it is queued, and the training waits for it
  const begun = [model.finetune(OPTIONS), model.finetune(OPTIONS)];
  const closing = begun[0].then(() => model.close());
  await rejects(begun[1], "STATE", /the model is being trained/);
  await closing;
  model = await load(wick);
  await wick.ones([2]).exp().describe();
  const late = rejects(model.finetune(OPTIONS), "STATE", /the model is closed/);
  await model.close();
  await late;
  await (await load(wick)).close();
  await wick.close();
});

/** The losses of steps, by number, and what else there was. */
async function follow(training, each = () => undefined) {
  const losses = [], others = [];
  for await (const event of training) {
    if (event.kind === "step") losses[event.step] = event.loss;
    else others.push([event.kind, event.step]);
    if (await each(event) === false) break;
  }
  return { losses, others };
}

test("a training goes on from bytes, in another engine, to the same losses", { skip: longOnes }, async () => {
  const wick = await open(), model = await load(wick);
  const training = await model.finetune(OPTIONS);
  const first = await follow(training, ({ step }) => step < 5);
  const state = await training.checkpoint();
  const rest = await follow(training);
  await training.close();
  await model.close();
  await wick.close();
  const again = await open({ worker: true }), other = await load(again);
  const second = await other.finetune({ ...OPTIONS, state });
  const { losses } = await follow(second);
  assert.deepEqual(losses.slice(6), rest.losses.slice(6));
  assert.equal(losses.slice(6).length, 7);
  assert.equal(first.losses.length, 6);
  await second.close();
  await rejects(other.finetune({ ...OPTIONS, rank: 3, state }), "MISMATCH", /finetune.rank/);
  await rejects(other.finetune({ ...OPTIONS, state: state.subarray(0, 1000) }), "FORMAT", /./);
  await rejects(other.finetune({ ...OPTIONS, state: "bytes" }), "VALUE", /Uint8Array/);
  await again.close();
});

/** lose(step): whether the GPU goes there; keeps: after every third step there is a checkpoint. */
async function trainWithLoss(keeps) {
  let isLost = false;
  const wick = await open({ backend: "webgpu", gpu: await openWebGpu() });
  const model = await load(wick), training = await model.finetune(OPTIONS);
  const { losses, others } = await follow(training, async ({ step }) => {
    if (keeps && step % 3 === 0) await training.checkpoint();
    if (step === 5 && !isLost) await wick.loseDevice();
    isLost ||= step === 5;
  });
  const adapter = await training.adapter();
  await training.close();
  await wick.close();
  return { losses, others, adapter };
}

/** The same without a loss; made once. */
let undisturbed;
const trainWhole = () => undisturbed ??= (async () => {
  const wick = await open({ backend: "webgpu", gpu: await openWebGpu() });
  const model = await load(wick), training = await model.finetune(OPTIONS);
  const { losses } = await follow(training), adapter = await training.adapter();
  await training.close();
  await wick.close();
  return { losses, adapter };
})();

async function checkLoss(keeps, restored) {
  const { losses, adapter } = await trainWhole(), found = await trainWithLoss(keeps);
  assert.deepEqual(found.others, [["restored", restored]]);
  found.losses.forEach((loss, i) => assert.ok(Math.abs(loss - losses[i]) < 1e-4 * loss));
  assert.equal(found.losses.length, losses.length);
  assert.equal(found.adapter.length, adapter.length);
}

test("a training whose GPU is lost goes back to its last checkpoint", { skip: missing ?? longOnes },
     () => checkLoss(true, 3));

test("a training whose GPU is lost begins again where there is no checkpoint",
     { skip: missing ?? longOnes }, () => checkLoss(false, 0));

test("conversations and completions, and what is wrong with them", async () => {
  const wick = await open(), model = await load(wick);
  const jsonLines = '{"prompt": "The cat", "completion": " sat down."}\n{"text": "A dog ran."}\n';
  const { events, examples } = await train(model, { jsonLines, batch: 2, epochs: 3 });
  assert.equal(examples.examples, 2);
  assert.ok(examples.learned < examples.tokens);
  assert.equal(events.length, 3);
  await rejects(model.finetune({ jsonLines: '{"text": "a b c"}\n{"textt": "x"}' }), "FORMAT", /2/);
  await rejects(model.finetune({}), "VALUE", /nothing to learn from/);
  await rejects(model.finetune({ text: "x", rank: 0 }), "VALUE", /rank/);
  await rejects(model.finetune({ text: "x", ranks: 1 }), "VALUE", /did you mean 'rank'/);
  await rejects(model.finetune({ text: TEXT, rate: -1 }), "VALUE", /rate/);
  await rejects(model.addAdapter("file"), "ARGUMENT", /bytes of a file/);
  await rejects(model.addAdapter(new Uint8Array(100)), "FORMAT", /./);
  await rejects(model.addAdapter(new Uint8Array(STORIES)), "FORMAT", /adapter/);
  const session = await model.session();
  await rejects(model.addAdapter(new Uint8Array(STORIES)), "STATE", /open sessions/);
  await session.close();
  await wick.close();
});

test("the snippet of docs/web.md", async () => {
  const told = [], [snippet] = snippets("Fine-tuning");
  const OnCpu = { open: async (options) => {
    const wick = await open(options), { load: loadOwn } = wick;
    return Object.assign(wick, { load: () => loadOwn.call(wick, new Uint8Array(STORIES)) });
  } };
  await snippet(undefined, { log: (...line) => told.push(line) }, OnCpu, TEXT);
  assert.ok(told.length > 3 && told.some(([kind]) => kind === "held-out"));
});

test("an engine without tensors says what to do", async () => {
  const wick = await open({ tensors: false }), model = await load(wick);
  await rejects(model.finetune(OPTIONS), "UNSUPPORTED", /tensors: true/);
  await rejects(model.addAdapter(new Uint8Array(8)), "UNSUPPORTED", /tensors: true/);
  await wick.close();
});

// Dawn keeps the process alive, and has work in flight that is not to be cut.
test.after(() => setImmediate(() => process.exit()));
