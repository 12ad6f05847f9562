/** The part that filters an image by a kernel of the visitor's. */
import { WickError } from "libwick";
import type { Wick } from "libwick";
import { byId, make } from "./dom.js";
import { chooseFile, takeDrops } from "./file.js";
import { applyFilter, FILTERS, HEAD_LINES } from "./filter.js";
import { formatTime } from "./format.js";
import { listen } from "./runs.js";

/** Larger images are made smaller. */
const MOST_PIXELS = 4_000_000;

const canvas = byId<HTMLCanvasElement>("canvas"), kernel = byId<HTMLTextAreaElement>("kernel");
let image: ImageData | undefined;

async function showImage(file: File): Promise<void> {
  const state = byId("filter-state");
  try {
    const bitmap = await createImageBitmap(file);
    const scale = Math.min(1, Math.sqrt(MOST_PIXELS / (bitmap.width * bitmap.height)));
    canvas.width = Math.max(1, Math.round(bitmap.width * scale));
    canvas.height = Math.max(1, Math.round(bitmap.height * scale));
    const context = canvas.getContext("2d", { willReadFrequently: true })!;
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    bitmap.close();
    image = context.getImageData(0, 0, canvas.width, canvas.height);
    canvas.setAttribute("aria-label", file.name);
    byId("image-drop").classList.add("full");
    state.textContent = `${file.name}: ${canvas.width} × ${canvas.height}`;
  } catch {
    state.textContent = `${file.name} is not an image that this browser reads.`;
  }
}

function fillChips(): void {
  const chips = Object.entries(FILTERS).map(([name, source]) => {
    const chip = make("button", { type: "button", "aria-pressed": "false", onclick: () => {
      kernel.value = source;
      for (const other of chips) other.setAttribute("aria-pressed", String(other === chip));
    } }, name);
    return chip;
  });
  byId("filters").replaceChildren(...chips);
  chips[0]!.click();
  kernel.addEventListener("input", () =>
    chips.forEach((chip) => chip.setAttribute("aria-pressed", "false")));
}

/** Lines are those of the text that the visitor sees. */
function withOwnLines(reason: unknown): unknown {
  if (!(reason instanceof WickError)) return reason;
  const message = reason.message.replace(/\bline (\d+)/g, (all, line: string) =>
    (Number(line) > HEAD_LINES ? `line ${Number(line) - HEAD_LINES}` : all));
  return new WickError(reason.code, message, { cause: reason });
}

export function addFilter(engine: () => Promise<Wick>): void {
  fillChips();
  takeDrops(byId("image-drop"), (file) => void showImage(file));
  byId("image-button").addEventListener("click", () =>
    void chooseFile(byId<HTMLInputElement>("image")).then((file) => file && showImage(file)));
  listen("filter", async (signal) => {
    if (!image) return "Choose an image first, or drop one on the field.";
    const wick = await engine();
    if (wick.capabilities().device.backend !== "webgpu")
      return "Kernels run on a GPU, and the CPU computes here: choose “GPU (WebGPU)” above.";
    const begun = performance.now();
    const result = await applyFilter(wick, image, kernel.value, signal)
      .catch((reason: unknown) => Promise.reject(withOwnLines(reason)));
    canvas.getContext("2d")!.putImageData(result, 0, 0);
    return `${result.width} × ${result.height} pixels, in ${formatTime(performance.now() - begun)} with the kernel's compilation.`;
  });
}
