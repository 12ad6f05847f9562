// Debian's browsers without a window: Chromium by playwright-core, whose GPU is SwiftShader, and
// Firefox by puppeteer-core, whose GPU is lavapipe. Both compute on the CPU.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { missing as missingLavapipe, driver } from "./node_webgpu.mjs";

const PROGRAMS = { chromium: "/usr/bin/chromium", firefox: "/usr/bin/firefox-esr" };

/** Those to test: of WICK_BROWSERS, by default both. */
export const browsers = (process.env.WICK_BROWSERS ?? "chromium,firefox").split(",");

/** Why a browser cannot be tested here; undefined: it can. */
export const missing = (kind) =>
  !existsSync(PROGRAMS[kind]) ? `${kind === "chromium" ? "Chromium" : "Firefox"} was not found`
    : kind === "firefox" ? missingLavapipe : undefined;

async function launchChromium({ webgpu, flags }) {
  const { chromium } = await import("playwright-core");
  const gpu = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];
  const browser = await chromium.launch({
    executablePath: PROGRAMS.chromium,
    args: ["--no-sandbox", ...(webgpu ? gpu : []), ...flags],
  });
  const context = await browser.newContext(); // one for all pages: its tabs share their storage
  return { newPage: () => context.newPage(), close: () => browser.close() };
}

/** Chromium with an extension from its folder: {background, close}; background is its worker. */
export async function startExtension(folder) {
  const { chromium } = await import("playwright-core");
  const home = mkdtempSync(join(tmpdir(), "wick-chromium-"));
  const context = await chromium.launchPersistentContext(home, {
    executablePath: PROGRAMS.chromium, ignoreDefaultArgs: ["--disable-extensions"],
    args: ["--no-sandbox", `--disable-extensions-except=${folder}`, `--load-extension=${folder}`],
  });
  const close = async () => {
    await context.close();
    rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
  const background = context.serviceWorkers()[0] ?? await context.waitForEvent("serviceworker");
  return { background, close };
}

async function launchFirefox({ webgpu, prefs }) {
  const { default: puppeteer } = await import("puppeteer-core");
  const home = mkdtempSync(join(tmpdir(), "wick-firefox-"));
  const browser = await puppeteer.launch({
    browser: "firefox",
    executablePath: PROGRAMS.firefox,
    timeout: 120_000, // milliseconds, on machines that have much else to do
    protocolTimeout: 0, // CTest has one for all
    extraPrefsFirefox: {
      "dom.webgpu.enabled": webgpu, "gfx.webgpu.ignore-blocklist": webgpu, ...prefs,
    },
    env: { ...process.env, HOME: home, XDG_RUNTIME_DIR: home, VK_DRIVER_FILES: driver },
  });
  return {
    newPage: () => browser.newPage(),
    close: async () => {
      await browser.close();
      // What is left of it may still write there for a moment.
      rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

/** A page and what it said: `call` runs a function of globalThis.cases (page.mjs) there. */
class Page {
  #page;
  #said = [];

  constructor(page) {
    this.#page = page;
    page.on("console", (message) =>
      this.#said.push(`console: ${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => this.#said.push(`error: ${error.message ?? error}`));
  }

  /** A function of the page's; what fails shows all that the page has said. */
  async call(name, ...given) {
    try {
      return await this.#page.evaluate((call) => globalThis.cases[call.name](...call.given),
                                       { name, given });
    } catch (error) {
      error.message += `\n${this.#said.join("\n")}`;
      throw error;
    }
  }

  /** Its errors, and warnings where the driver tells them apart. */
  get complaints() {
    return this.#said.filter((text) => /^(error|console: error|console: warn)/.test(text));
  }

  get native() {
    return this.#page;
  }

  /** Runs a function at the beginning of each document to come. */
  beforeScripts = (run) =>
    (this.#page.addInitScript ?? this.#page.evaluateOnNewDocument).call(this.#page, run);

  close() {
    return this.#page.close();
  }
}

/**
 * Starts "chromium" or "firefox": {open, close}; open(url) waits until the page has its cases, or
 * what else isReady wants, which runs there.
 * prefs: Firefox's preferences by their names; flags: of Chromium's command line.
 */
export async function startBrowser(kind, { webgpu = true, prefs = {}, flags = [] } = {}) {
  const launch = kind === "chromium" ? launchChromium : launchFirefox;
  const browser = await launch({ webgpu, prefs, flags });
  return {
    open: async (url, isReady = () => globalThis.cases !== undefined) => {
      const native = await browser.newPage();
      const page = new Page(native);
      await native.goto(url);
      await native.waitForFunction(isReady);
      return page;
    },
    close: browser.close,
  };
}
