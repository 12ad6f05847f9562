/** The part that hears whether somebody speaks. */
import type { Wick } from "libwick";
import { byId, make } from "./dom.js";
import { chooseFile } from "./file.js";
import { formatTime } from "./format.js";
import { decodeSound, hearMicrophone } from "./microphone.js";
import { drawLines } from "./plot.js";
import { listen } from "./runs.js";
import { fetchSafetensors } from "./safetensors.js";
import { BLOCK, RATE, stretchesOf, VoiceDetector } from "./voice.js";

const SECONDS = BLOCK / RATE;
/** What the drawing of the microphone goes back: seconds. */
const WINDOW = 15;
/** Blocks of a file at once. */
const MOST_BLOCKS = 256;

const percent = (value: number): string => `${Math.round(100 * value)} %`;

/** probabilities: of the blocks from number first on. */
function draw(probabilities: number[], first: number, end: number, label: string): void {
  const points = probabilities.map((y, i): [number, number] => [(first + i) * SECONDS - end + WINDOW, y]);
  drawLines(byId("voice-plot"),
            [{ name: "probability of speech", kind: "rate", points, top: 1, format: percent }],
            WINDOW, label);
}

function showStretches(probabilities: ArrayLike<number>): number {
  const found = stretchesOf(probabilities);
  byId("voice-list").replaceChildren(...found.map(({ from, to }) =>
    make("li", {}, `${from.toFixed(2)} to ${to.toFixed(2)} s`)));
  return found.length;
}

async function openDetector(engine: () => Promise<Wick>, signal: AbortSignal) {
  const wick = await engine();
  return new VoiceDetector(wick, await fetchSafetensors("silero_vad_16k.safetensors", signal));
}

/** Blocks come while the one before is computed; then they are computed together. */
async function hear(detector: VoiceDetector, signal: AbortSignal): Promise<number[]> {
  const waiting: Float32Array[] = [], heard: number[] = [];
  let working: Promise<void> | undefined, failure: unknown;
  const stop = new AbortController();
  const work = async (): Promise<void> => {
    while (waiting.length > 0) {
      const blocks = waiting.splice(0), samples = new Float32Array(blocks.length * BLOCK);
      blocks.forEach((block, i) => samples.set(block, i * BLOCK));
      heard.push(...await detector.listen(samples));
    }
    const last = heard.at(-1) ?? 0, shown = Math.ceil(WINDOW / SECONDS);
    const first = Math.max(0, heard.length - shown);
    byId("voice-state").textContent = `${last >= 0.5 ? "Speech" : "No speech"}, ${percent(last)}`;
    draw(heard.slice(first), first, Math.max(WINDOW, heard.length * SECONDS),
         `probability of speech, the last ${WINDOW} s`);
    showStretches(heard);
  };
  await hearMicrophone(RATE, BLOCK, AbortSignal.any([signal, stop.signal]), (block) => {
    waiting.push(block);
    working ??= work().catch((reason: unknown) => {
      failure = reason;
      stop.abort();
    }).finally(() => (working = undefined));
  });
  await working;
  if (failure) throw failure;
  return heard;
}

async function readSound(detector: VoiceDetector, file: File, signal: AbortSignal): Promise<string> {
  const sound = await decodeSound(await file.arrayBuffer(), RATE), begun = performance.now();
  const nBlocks = Math.ceil(sound.length / BLOCK), probabilities: number[] = [];
  for (let i = 0; i < nBlocks; i += MOST_BLOCKS) {
    signal.throwIfAborted();
    const samples = new Float32Array(Math.min(MOST_BLOCKS, nBlocks - i) * BLOCK);
    samples.set(sound.subarray(i * BLOCK, i * BLOCK + samples.length));
    probabilities.push(...await detector.listen(samples));
  }
  const seconds = sound.length / RATE, points = probabilities.map((y, i): [number, number] => [i * SECONDS, y]);
  drawLines(byId("voice-plot"),
            [{ name: "probability of speech", kind: "rate", points, top: 1, format: percent }],
            seconds, `probability of speech in ${file.name}`);
  const n = showStretches(probabilities);
  return `${n === 1 ? "One stretch" : `${n} stretches`} of speech in ${seconds.toFixed(1)} s of sound, `
    + `computed in ${formatTime(performance.now() - begun)}.`;
}

export function addVoice(engine: () => Promise<Wick>): void {
  listen("microphone", async (signal) => {
    const detector = await openDetector(engine, signal);
    try {
      const heard = await hear(detector, signal);
      return `Stopped after ${(heard.length * SECONDS).toFixed(1)} s.`;
    } finally {
      detector.dispose();
    }
  });
  listen<File>("sound", async (signal, file) => {
    const detector = await openDetector(engine, signal);
    try {
      return await readSound(detector, file, signal);
    } finally {
      detector.dispose();
    }
  }, { prepare: () => chooseFile(byId<HTMLInputElement>("sound")) });
}
