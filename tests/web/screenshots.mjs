// usage: node tests/web/screenshots.mjs
// Draws docs/images/demo-*.png: the demo and its test page in Chromium, on a desk (light)
// and a phone (dark). Wants web/demo/dist (make web) and SmolLM2 (make models); GPU is SwiftShader.
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { startDemoServer } from "../../web/serve.mjs";

const folder = fileURLToPath(new URL("../../docs/images/", import.meta.url));
const QUESTION = "Write a function in Python that adds two numbers, with an example.";
const SETTINGS = { temperature: 0, maxTokens: 160 };

const DESK = { width: 1280, height: 800 }, PHONE = { width: 390, height: 844 };

async function openModel(page, name) {
  await page.getByRole("button", { name }).click();
  const download = page.getByRole("button", { name: /^Download/ });
  const ready = page.locator("#suggestions .chip").first();
  await download.or(ready).first().waitFor();
  if (await download.isVisible()) await download.click();
  await ready.waitFor();
}

async function drawChat(page, base, draw) {
  await page.goto(base);
  await page.locator(".card").first().waitFor();
  await draw("start");
  await openModel(page, "SmolLM2");
  await page.getByLabel("Your message").fill(QUESTION);
  await page.keyboard.press("Enter");
  await page.locator(".turn.answer:not(.busy)").waitFor();
  await draw("chat");
  await page.getByRole("button", { name: "Settings" }).click();
  await draw("settings");
}

async function drawTest(page, base, draw) {
  await page.goto(`${base}test.html`);
  await page.locator("#kernels-run:enabled").click();
  await page.locator("#kernels-run", { hasText: "Check" }).waitFor();
  await page.locator("#speed-run").click();
  await page.locator("#speed-run:enabled").waitFor();
  await page.evaluate(() => scrollTo(0, 0));
  await draw("test");
  await page.evaluate(() => document.getElementById("kernels-title").scrollIntoView());
  await draw("kernels");
  await page.evaluate(() => document.getElementById("speed-title").scrollIntoView());
  await draw("speed");
}

mkdirSync(folder, { recursive: true });
const server = await startDemoServer();
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"] });
for (const [size, viewport, colorScheme] of [["desk", DESK, "light"], ["phone", PHONE, "dark"]]) {
  const page = await browser.newPage({ viewport, colorScheme, reducedMotion: "reduce" });
  page.setDefaultTimeout(240_000);
  await page.addInitScript((settings) =>
    localStorage.setItem("wick-settings", JSON.stringify(settings)), SETTINGS);
  const draw = (name) => page.screenshot({ path: `${folder}demo-${name}-${size}.png` });
  await drawChat(page, server.base, draw);
  await drawTest(page, server.base, draw);
  await page.close();
}
await browser.close();
await server.close();
