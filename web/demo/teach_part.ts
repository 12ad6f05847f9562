/** The part that trains an adapter of a language model, and lets it write. */
import type { Finetuning, Model, ModelSource, Wick } from "libwick";
import { keepAdapter } from "./adapter.js";
import { byId } from "./dom.js";
import { chooseFile } from "./file.js";
import { formatTime } from "./format.js";
import { drawLines } from "./plot.js";
import type { Line } from "./plot.js";
import { listen } from "./runs.js";

const CONTEXT = 128, MOST_TOKENS = 60;

/** From "The Master Cat" in Andrew Lang's Blue Fairy Book, which is in the public domain. */
const SAMPLE = `There was a miller who left no more estate to the three sons he had than his mill, his ass, and his cat. The partition was soon made. The eldest had the mill, the second the ass, and the youngest nothing but the cat.
The poor young fellow was quite comfortless at having so poor a lot. The Cat, who heard all this, but made as if he did not, said to him with a grave and serious air: "Do not thus afflict yourself, my good master. You have nothing else to do but to give me a bag and get a pair of boots made for me that I may scamper through the dirt and the brambles."
When the Cat had what he asked for he booted himself very gallantly, and putting his bag about his neck, he held the strings of it in his two forepaws and went into a warren where was great abundance of rabbits.`;

interface Taught {
  source: ModelSource;
  adapter: Uint8Array<ArrayBuffer>;
}

const input = (id: string): HTMLInputElement => byId<HTMLInputElement>(id);
const field = byId<HTMLTextAreaElement>("teach-text");
let taught: Taught | undefined;

async function chooseModel(): Promise<ModelSource | undefined> {
  const { value } = byId<HTMLSelectElement>("teach-model");
  return value === "" ? chooseFile(input("teach-file")) : new URL(value, location.href).href;
}

/** What goes on while it is trained. */
async function watch(training: Finetuning): Promise<string> {
  const loss: Line = { name: "loss", kind: "loss", points: [], format: (y) => y.toFixed(2) };
  const held: Line = { name: "loss on the held-out end of the text", kind: "held", points: [],
                       format: (y) => y.toFixed(2) };
  const begun = performance.now();
  let text = "";
  for await (const { kind, step, steps, loss: value, perplexity } of training) {
    (kind === "step" ? loss : held).points.push([step, value]);
    const top = Math.max(...[...loss.points, ...held.points].map(([, y]) => y));
    drawLines(byId("teach-plot"), [{ ...loss, top }, { ...held, top }], steps,
              "loss of each step, and of the end of the text, which is not learned");
    text = `Step ${step} of ${steps}: ${kind === "step" ? "loss" : "held-out loss"} ${value.toFixed(3)}, `
      + `perplexity ${perplexity.toFixed(1)}, after ${formatTime(performance.now() - begun)}.`;
    byId("teach-state").textContent = text;
  }
  return text;
}

async function train(wick: Wick, source: ModelSource, signal: AbortSignal): Promise<string> {
  const model = await wick.load(source, { signal });
  let training: Finetuning | undefined;
  try {
    training = await model.finetune({
      text: field.value, contextLength: CONTEXT, epochs: input("teach-epochs").valueAsNumber || 1,
      rate: input("teach-rate").valueAsNumber || 1e-3, batch: 4, heldOut: 0.1, signal,
    });
    const text = await watch(training);
    const adapter = await training.adapter();
    taught = { source, adapter };
    showTaught(adapter);
    if (typeof source === "string") await keepAdapter(source, adapter);
    byId("teach-chat").hidden = typeof source !== "string";
    return text;
  } finally {
    await training?.close();
    await model.close();
  }
}

function showTaught(adapter: Uint8Array<ArrayBuffer>): void {
  const link = byId<HTMLAnchorElement>("teach-save");
  if (link.href) URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(new Blob([adapter], { type: "application/octet-stream" }));
  byId("taught").hidden = false;
}

async function write(model: Model, to: HTMLElement, signal: AbortSignal): Promise<void> {
  const prompt = input("teach-prompt").value;
  const session = await model.session({ contextLength: CONTEXT, temperature: 0 });
  to.textContent = prompt;
  for await (const { text } of session.generate(prompt, { maxTokens: MOST_TOKENS, signal }))
    to.textContent += text;
  await session.close();
}

export function addTeacher(engine: () => Promise<Wick>): void {
  field.value = SAMPLE;
  listen<ModelSource>("teach", async (signal, source) => train(await engine(), source, signal),
                      { prepare: chooseModel });
  listen("try", async (signal) => {
    const { source, adapter } = taught!;
    const model = await (await engine()).load(source, { signal });
    try {
      await write(model, byId("answer-before"), signal);
      await model.addAdapter(adapter);
      await write(model, byId("answer-after"), signal);
    } finally {
      await model.close();
    }
    return "";
  });
}
