/** The part that trains a classifier of digits. */
import type { Wick } from "libwick";
import { DigitTrainer } from "./digits.js";
import { byId, make } from "./dom.js";
import { formatTime } from "./format.js";
import { drawLines } from "./plot.js";
import type { Line } from "./plot.js";
import { listen } from "./runs.js";
import { fetchSafetensors } from "./safetensors.js";
import type { StoredTensor } from "./safetensors.js";

/** Test images that are shown with what they are read as. */
const N_SHOWN = 36, SIDE = 8;

const percent = (value: number): string => `${(100 * value).toFixed(value % 1 ? 1 : 0)} %`;

function drawImage(pixels: ArrayLike<number>): HTMLCanvasElement {
  const canvas = make("canvas", { width: String(SIDE), height: String(SIDE), "aria-hidden": "true" });
  const image = new ImageData(SIDE, SIDE);
  for (let i = 0; i < SIDE * SIDE; i++)
    image.data.set([255, 255, 255, Number(pixels[i]) * 255 / 16], 4 * i);
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  return canvas;
}

/** Shows the first test images, and returns how what they are read as is shown. */
function fillGrid(data: Map<string, StoredTensor>): (read: Uint32Array) => void {
  const images = data.get("images")!.values as Uint8Array, labels = data.get("labels")!.values;
  const numbers = Array.from(data.get("test_index")!.values, Number).slice(0, N_SHOWN);
  const captions = numbers.map(() => make("figcaption"));
  const figures = numbers.map((n, i) => make("figure", {},
    drawImage(images.subarray(n * SIDE * SIDE, (n + 1) * SIDE * SIDE)), captions[i]!));
  byId("digits-grid").replaceChildren(...figures);
  byId("digits-grid").hidden = false;
  return (read) => numbers.forEach((n, i) => {
    const isRight = read[i] === Number(labels[n]);
    captions[i]!.textContent = `${read[i]}${isRight ? "" : ` (${labels[n]})`}`;
    figures[i]!.classList.toggle("wrong", !isRight);
  });
}

export function addDigits(engine: () => Promise<Wick>): void {
  let nRuns = 0; // each begins with other weights, the same ones on every visit
  listen("digits", async (signal) => {
    const nEpochs = byId<HTMLInputElement>("digits-epochs").valueAsNumber || 30;
    const wick = await engine(), data = await fetchSafetensors("digits.safetensors", signal);
    const showRead = fillGrid(data);
    const loss: Line = { name: "loss", kind: "loss", points: [], format: (y) => y.toFixed(2) };
    const rate: Line = { name: "right", kind: "rate", points: [], top: 1, format: percent };
    const trainer = new DigitTrainer(wick, data, nRuns++);
    const steps = nEpochs * trainer.stepsOfEpoch, begun = performance.now();
    let isDue = false;
    const draw = (): void => {
      isDue = false;
      drawLines(byId("digits-plot"), [loss, rate], steps, "loss, and share of the test images that is right, by steps");
    };
    let text = "";
    try {
      await trainer.train(nEpochs, signal, {
        onStep: (step, value) => {
          loss.points.push([step, value]);
          if (!isDue) requestAnimationFrame(draw);
          isDue = true;
        },
        onEpoch: (epoch, accuracy, read) => {
          rate.points.push([epoch * trainer.stepsOfEpoch, accuracy]);
          showRead(read);
          const time = formatTime(performance.now() - begun);
          text = `Epoch ${epoch} of ${nEpochs}: ${percent(accuracy)} of the test images are right, after ${time}.`;
          byId("digits-state").textContent = text;
        },
      });
    } finally {
      trainer.dispose();
      draw();
    }
    return text;
  });
}
