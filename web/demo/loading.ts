/** From a choice to an open model: what it needs, whether to go on, how far it is. */
import { WickError } from "libwick";
import type { Preflight, Progress } from "libwick";
import { announce, byId, fillFacts, make } from "./dom.js";
import { formatBytes, formatCount, formatRate, formatSeconds } from "./format.js";
import type { Choice, Host } from "./host.js";
import { isBegun } from "./kept.js";
import { describeProblem, isCancelled } from "./problems.js";
import type { Settings } from "./settings.js";
import { estimateStorage } from "./storage.js";

/** Less than this is downloaded without a question. */
const SMALL_BYTES = 16e6;

const PHASES: Record<Progress["phase"], string> = {
  connect: "Requesting", download: "Downloading", verify: "Checking the file", load: "Loading",
  compile: "Preparing",
};

interface Action<T> {
  label: string;
  value: T;
  isPrimary?: boolean;
}

/** The view of one loading. */
class LoadingPanel {
  readonly #title = byId("loading-title");
  readonly #text = byId("loading-text");
  readonly #facts = byId("loading-facts");
  readonly #progress = byId("loading-progress");
  readonly #bar = byId<HTMLProgressElement>("loading-bar");
  readonly #rate = byId("loading-rate");
  readonly #actions = byId("loading-actions");
  #isDownloading = false;

  /** A step that takes its time; bars without a value move by themselves. */
  work(title: string, text: string, cancel: () => void): void {
    this.#say(title, text);
    this.#isDownloading = false;
    this.#progress.hidden = false;
    this.#bar.removeAttribute("value");
    this.#rate.textContent = "";
    const button = make("button", { type: "button", class: "button", onclick: cancel }, "Cancel");
    this.#actions.replaceChildren(button);
    button.focus({ preventScroll: true });
  }

  /** While a file is downloaded that is what counts, though what has come is loaded already. */
  report({ phase, done, total, bytesPerSecond, secondsLeft }: Progress, name: string): void {
    if (phase === "download") this.#isDownloading = done !== total;
    if (this.#isDownloading ? phase === "load" : phase === "download") return;
    if (this.#title.dataset.phase !== phase) this.#say(`${PHASES[phase]} ${name}`, "");
    this.#title.dataset.phase = phase;
    if (total && phase !== "compile") this.#bar.value = done / total;
    else this.#bar.removeAttribute("value");
    const parts = [total ? `${formatBytes(done)} of ${formatBytes(total)}` : formatBytes(done)];
    if (bytesPerSecond) parts.push(`${formatRate(bytesPerSecond / 1e6)} MB/s`);
    if (secondsLeft !== undefined && done !== total)
      parts.push(`${formatSeconds(secondsLeft)} left`);
    const isUncounted = phase === "compile" || phase === "connect";
    this.#rate.textContent = isUncounted ? "" : parts.join(" · ");
  }

  /** Waits for one of the buttons. */
  choose<T>(title: string, text: string, facts: [string, string][],
            actions: Action<T>[]): Promise<T> {
    this.#say(title, text);
    this.#progress.hidden = true;
    fillFacts(this.#facts, facts);
    return new Promise((resolve) => {
      const buttons = actions.map(({ label, value, isPrimary }) => make("button", {
        type: "button", class: isPrimary ? "button primary" : "button",
        onclick: () => resolve(value) }, label));
      this.#actions.replaceChildren(...buttons);
      buttons[0]?.focus({ preventScroll: true });
    });
  }

  #say(title: string, text: string): void {
    this.#title.textContent = title;
    delete this.#title.dataset.phase;
    this.#text.textContent = text;
    this.#facts.replaceChildren();
    announce(`${title}. ${text}`);
  }
}

const panel = new LoadingPanel();

/** Opens a model, however often that takes. False: the visitor wants another one. */
export async function openModel(choice: Choice, host: Host, settings: Settings): Promise<boolean> {
  let isAsked = choice === host.opened?.choice;
  let force = isAsked && host.opened!.isForced;
  for (;;) {
    const controller = new AbortController();
    const cancel = () => controller.abort();
    try {
      if (!isAsked) {
        panel.work(`Looking at ${choice.name}`, "Reading what it needs.", cancel);
        const looked = await host.preflight(choice, settings, controller.signal);
        if (await mustAsk(choice, looked) && !await askToGoOn(choice, looked)) return false;
        isAsked = true;
        force = !looked.fits; // the visitor knows
      }
      panel.work(`Loading ${choice.name}`, "", cancel);
      await host.load(choice, settings, { signal: controller.signal, force,
        onProgress: (progress) => panel.report(progress, choice.name) });
      announce(`${choice.name} is ready.`);
      return true;
    } catch (reason) {
      if (reason instanceof WickError && reason.code === "INTERNAL") // another try has another one
        await host.closeEngine().catch(() => undefined);
      if (!await askAfter(reason, choice)) return false;
    }
  }
}

/** Unless it fits, and is small or was begun before. */
async function mustAsk({ url, bytes }: Choice, { fits, fileBytes }: Preflight): Promise<boolean> {
  if (!fits || url === undefined) return !fits;
  return (bytes ?? fileBytes) > SMALL_BYTES && !await isBegun(url);
}

async function askToGoOn(choice: Choice, p: Preflight): Promise<boolean> {
  const bytes = choice.bytes ?? p.fileBytes;
  const room = choice.url === undefined ? undefined : await freeStorage();
  const facts: [string, string][] = [
    [choice.url === undefined ? "File" : "Download", formatBytes(bytes)],
    ["Memory it needs", formatBytes(p.totalBytes)],
    ["Memory here", p.availableBytes > 0 ? formatBytes(p.availableBytes) : "not reported"],
    ["Context", `${formatCount(p.contextLength)} tokens`],
  ];
  if (room !== undefined) facts.push(["Storage free for this site", formatBytes(room)]);
  const hasStorage = room === undefined || room > bytes;
  const isGood = p.fits && hasStorage;
  const advice = !p.fits ? describeShortage(p)
    : hasStorage ? "It fits on this device."
      : "There is not enough storage to keep it; it would be downloaded again each time.";
  const label = choice.url === undefined ? "Load" : `Download ${formatBytes(bytes)}`;
  return panel.choose(choice.name, advice, facts, [
    { label: isGood ? label : `${label} all the same`, value: true, isPrimary: isGood },
    { label: "Choose another", value: false, isPrimary: !isGood },
  ]);
}

function describeShortage(p: Preflight): string {
  const shorter = p.longestContextLength > 0 && p.longestContextLength < p.contextLength
    ? ` With a context of ${formatCount(p.longestContextLength)} tokens it would fit.` : "";
  const layers = p.deviceLayers < p.layers
    ? ` ${p.deviceLayers} of its ${p.layers} layers have room on the GPU; the CPU runs the others.`
    : "";
  return `This model may be too large for this device.${layers}${shorter}`;
}

async function freeStorage(): Promise<number | undefined> {
  const { quota, usage } = await estimateStorage();
  return quota === undefined ? undefined : quota - (usage ?? 0);
}

/** Whether to try again. */
function askAfter(reason: unknown, { name, url }: Choice): Promise<boolean> {
  const other = { label: "Choose another", value: false };
  if (isCancelled(reason)) {
    const text = url === undefined ? "" : "What was downloaded is kept; it goes on from there.";
    return panel.choose(`${name} was stopped`, text, [],
      [{ label: url === undefined ? "Load it" : "Resume", value: true, isPrimary: true }, other]);
  }
  const { text, hint } = describeProblem(reason);
  return panel.choose(`${name} could not be opened`, [text, hint].join(" ").trim(), [],
    [{ label: "Try again", value: true, isPrimary: true }, other]);
}
