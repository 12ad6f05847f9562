// The demo's page of tensors in Chromium: it learns digits, hears speech in a file and from the
// (fake) microphone, filters an image, and teaches a model, whose adapter the chat then has.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "../../web/node_modules/esbuild/lib/main.js";
import { Wick } from "../../web/dist/wick.js";
import { startDemoServer } from "../../web/serve.mjs";
import { missing } from "./browser.mjs";
import { longOnes, testsAll } from "./fixtures.mjs";

const { WICK_SHARED_DATA = "" } = process.env;
const speech = join(WICK_SHARED_DATA, "real/speech.wav");
const skip = missing("chromium");
const noSpeech = existsSync(speech) ? undefined : "WICK_SHARED_DATA has no real/speech.wav";
const path = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Runs body with the page, and fails for anything that it complains about. */
async function withPage(body, { backend = "cpu", flags = [] } = {}) {
  const { chromium } = await import("playwright-core");
  const server = await startDemoServer();
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", ...flags] });
  const complaints = [];
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 },
                                               permissions: ["microphone"] });
    const page = await context.newPage();
    page.setDefaultTimeout(240_000);
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
    await page.goto(`${server.base}tensors.html`);
    await page.getByLabel("Runs on").selectOption(backend);
    await body({ page, complaints });
    assert.deepEqual(complaints, []);
  } finally {
    await browser.close();
    await server.close();
  }
}

/** A module of the demo for Node, with the package in its place. */
async function loadDemo(t, name) {
  const folder = mkdtempSync(join(tmpdir(), "wick-"));
  t.after(() => rmSync(folder, { recursive: true }));
  await build({ entryPoints: [path(`../../web/demo/${name}.ts`)], outfile: join(folder, "made.mjs"),
                bundle: true, format: "esm", target: "es2022", external: ["*/wick.js"],
                alias: { libwick: path("../../web/dist/wick.js") } });
  return import(pathToFileURL(join(folder, "made.mjs")).href);
}

const expected = () =>
  JSON.parse(readFileSync(join(WICK_SHARED_DATA, "real/silero_vad.json"))).probability_per_512_samples;

const saying = (page, part, words) => page.locator(`#${part}-state`, { hasText: words });

/** Chooses a file by a button of the page. */
async function choose(page, button, file) {
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.locator(button).click()]);
  await chooser.setFiles(file);
}

const stretchesIn = async (page) =>
  (await page.locator("#voice-list li").allTextContents()).map((text) => text.match(/[\d.]+/g).map(Number));

test("digits are learned from scratch", { skip }, async (t) => {
  await withPage(async ({ page }) => {
    const epochs = testsAll ? 30 : 10;
    await page.getByLabel("Epochs").fill(String(epochs));
    await page.locator("#digits-run").click();
    await saying(page, "digits", new RegExp(`^Epoch ${epochs} of ${epochs}: `)).waitFor();
    const text = await page.locator("#digits-state").textContent();
    t.diagnostic(`note: ${text}`);
    assert.ok(Number(/([\d.]+) %/.exec(text)[1]) >= (testsAll ? 98.5 : 95), text);
    assert.equal(await page.locator("#digits-plot polyline").count(), 2);
    assert.match(await page.locator("#digits-plot svg").getAttribute("aria-label"), /^loss 0\.\d\d, right 9\d/);
    assert.equal(await page.locator("#digits-grid figcaption").count(), 36);
    assert.ok(await page.locator("#digits-grid .wrong").count() <= 3);
    await page.getByLabel("Epochs").fill("30");
    await page.locator("#digits-run").click();
    await saying(page, "digits", /^Epoch \d of 30: /).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await saying(page, "digits", "Stopped.").waitFor();
  });
});

// SwiftShader takes a minute for it, and tests/gpu/webgpu_training learns on WebGPU, too.
test("digits on WebGPU", { skip: skip ?? longOnes }, async () => {
  await withPage(async ({ page }) => {
    await page.getByLabel("Epochs").fill("1");
    await page.locator("#digits-run").click();
    await saying(page, "digits", /^Epoch 1 of 1: /).waitFor();
    assert.match(await page.locator("#device-name").textContent(), /^GPU/);
    const [, right] = /([\d.]+) %/.exec(await page.locator("#digits-state").textContent());
    assert.ok(Number(right) > 50, right); // one in ten by chance
  }, { backend: "webgpu" });
});

test("speech is heard as other software hears it", { skip: noSpeech }, async (t) => {
  const { VoiceDetector, BLOCK } = await loadDemo(t, "voice");
  const { readSafetensors } = await loadDemo(t, "safetensors");
  const weights = readFileSync(path("../../web/demo/data/silero_vad_16k.safetensors"));
  const wav = readFileSync(speech).subarray(44), wanted = expected();
  const samples = new Float32Array(wanted.length * BLOCK);
  new Int16Array(wav.buffer.slice(wav.byteOffset, wav.byteOffset + wav.length))
    .forEach((value, i) => (samples[i] = value / 32768));
  const wick = await Wick.open({ backend: "cpu", math: "exact" });
  const detector = new VoiceDetector(
    wick, readSafetensors(weights.buffer.slice(weights.byteOffset, weights.byteOffset + weights.length)));
  for (const step of [wanted.length, 7]) { // all at once, and as it comes
    detector.reset();
    const heard = [];
    for (let i = 0; i < wanted.length; i += step)
      heard.push(...await detector.listen(samples.slice(i * BLOCK, Math.min(i + step, wanted.length) * BLOCK)));
    const worst = Math.max(...heard.map((y, i) => Math.abs(y - wanted[i])));
    assert.ok(heard.length === wanted.length && worst < 1e-4, String(worst));
  }
  detector.dispose();
  await wick.sync();
  assert.equal((await wick.stats()).bufferBytes, 0);
  await wick.close();
});

test("speech in a sound file", { skip: skip ?? noSpeech ?? longOnes }, async (t) => {
  const { stretchesOf } = await loadDemo(t, "voice");
  await withPage(async ({ page }) => {
    await choose(page, "#sound-run", speech);
    await saying(page, "voice", /stretches of speech in 8\.7 s of sound/).waitFor();
    const wanted = stretchesOf(expected()).map(({ from, to }) => [from, to].map((s) => Number(s.toFixed(2))));
    assert.deepEqual(await stretchesIn(page), wanted);
    assert.equal(await page.locator("#voice-plot polyline").count(), 1);
    await choose(page, "#sound-run",
                 { name: "notes.wav", mimeType: "audio/wav", buffer: Buffer.from("no sound") });
    await saying(page, "voice", /not a sound file/).waitFor();
  });
});

test("speech from the microphone", { skip: skip ?? noSpeech ?? longOnes }, async () => {
  await withPage(async ({ page }) => {
    await page.locator("#microphone-run").click();
    await page.locator("#voice-list li").nth(1).waitFor(); // of the file, which is played
    const stretches = await stretchesIn(page);
    assert.ok(stretches.every(([from, to]) => to - from < 5), JSON.stringify(stretches));
    await page.locator("#voice-plot polyline").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await saying(page, "voice", /^Stopped after \d/).waitFor();
  }, { flags: ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
               `--use-file-for-fake-audio-capture=${speech}`] });
});

const IMAGE = path("../../docs/images/demo-chat-phone.png");

const pixelsOf = (page) => page.evaluate(() => {
  const canvas = document.getElementById("canvas"), { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  return { width, height, data: Array.from(data) };
});

/** Drops an image of shapes and colours on the page, as from a folder. */
async function drop(page) {
  const dropped = await page.evaluateHandle(async () => {
    const canvas = new OffscreenCanvas(97, 61), context = canvas.getContext("2d");
    const colours = context.createLinearGradient(0, 0, 97, 61);
    ["#102040", "#e0a050", "#40c080"].forEach((colour, i) => colours.addColorStop(i / 2, colour));
    context.fillStyle = colours;
    context.fillRect(0, 0, 97, 61);
    context.fillStyle = "#fff";
    context.fillText("Wick", 20, 40);
    const transfer = new DataTransfer();
    transfer.items.add(new File([await canvas.convertToBlob()], "shapes.png", { type: "image/png" }));
    return transfer;
  });
  await page.locator("#image-drop").dispatchEvent("drop", { dataTransfer: dropped });
  await page.locator(".image-drop.full").waitFor();
}

test("an image is filtered by the visitor's kernel", { skip }, async () => {
  await withPage(async ({ page, complaints }) => {
    await page.locator("#filter-run").click();
    await saying(page, "filter", /Choose an image first/).waitFor();
    await drop(page);
    const before = await pixelsOf(page);
    await page.getByRole("button", { name: "Sharpen" }).click();
    await page.locator("#filter-run").click();
    await saying(page, "filter", /pixels, in /).waitFor();
    const { width, height, data } = await pixelsOf(page);
    const at = (x, y, c) => before.data[4 * (Math.min(Math.max(y, 0), height - 1) * width
      + Math.min(Math.max(x, 0), width - 1)) + c];
    let worst = 0, nChanged = 0;
    for (let i = 0; i < 4 * width * height; i += 4)
      for (let c = 0; c < 3; c++) {
        const x = i / 4 % width, y = Math.floor(i / 4 / width);
        const around = at(x - 1, y, c) + at(x + 1, y, c) + at(x, y - 1, c) + at(x, y + 1, c);
        const wanted = Math.min(Math.max(5 * at(x, y, c) - around, 0), 255);
        worst = Math.max(worst, Math.abs(data[i + c] - wanted));
        nChanged += data[i + c] !== at(x, y, c);
      }
    assert.ok(worst <= 1 && nChanged > 500, `${worst}, ${nChanged}`);
    await page.getByLabel("Kernel in WGSL").fill(
      "fn filtered(x: i32, y: i32) -> vec4f {\n  return nothing;\n}");
    await page.locator("#filter-run").click();
    await saying(page, "filter", /line 2, .*nothing/).waitFor(); // the visitor's own lines
    complaints.length = 0; // the browser logs what does not compile
  }, { backend: "webgpu" });
});

test("without a GPU the page says what a kernel needs", { skip }, async () => {
  await withPage(async ({ page }) => {
    await choose(page, "#image-button", IMAGE);
    await page.locator(".image-drop.full").waitFor();
    await page.locator("#filter-run").click();
    await saying(page, "filter", /Kernels run on a GPU/).waitFor();
  });
});

test("a model is taught a text, and chats with what it learned", { skip: skip ?? longOnes }, async () => {
  await withPage(async ({ page }) => {
    await page.getByLabel("Passes over the text").fill("6");
    await page.locator("#teach-run").click();
    await saying(page, "teach", /^Step (\d+) of \1: held-out/).waitFor();
    await page.locator("#taught").waitFor();
    assert.equal(await page.locator("#teach-plot polyline").count(), 2);
    const [download] = await Promise.all(
      [page.waitForEvent("download"), page.getByRole("link", { name: "Download the adapter" }).click()]);
    assert.equal(download.suggestedFilename(), "adapter.gguf");
    assert.equal(readFileSync(await download.path()).subarray(0, 4).toString(), "GGUF");
    await page.getByLabel("Go on from").fill("There was a miller");
    await page.getByRole("button", { name: "Write" }).click();
    await page.locator("#try-run:not([disabled])", { hasText: "Write" }).waitFor();
    await page.locator("#answer-after", { hasText: /.{60,}/s }).waitFor();
    await page.locator("#teach-run:not([disabled])").waitFor();
    const [before, after] = await Promise.all(
      ["before", "after"].map((name) => page.locator(`#answer-${name}`).textContent()));
    assert.notEqual(before, after);
    await page.getByRole("link", { name: "Use it in the chat" }).click();
    await page.locator("#model-name", { hasText: "stories260K with your adapter" }).waitFor();
    await page.getByLabel("The beginning of a text").fill("There was a miller");
    await page.keyboard.press("Enter");
    await page.locator(".turn.answer:not(.busy)").waitFor();
    assert.match(await page.locator(".turn .body").textContent(), /^There was a miller.{20,}/s);
  });
});
