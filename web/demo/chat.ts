/** The chat page: which view is shown, and what its buttons do. */
import { keptAdapter } from "./adapter.js";
import { Conversation } from "./conversation.js";
import { announce, byId, fillFacts, make } from "./dom.js";
import { describeDevice, deviceFacts } from "./device.js";
import { formatBytes, formatCount, nameOfUrl } from "./format.js";
import { Host } from "./host.js";
import type { Choice } from "./host.js";
import { KeptModels } from "./kept.js";
import { openModel } from "./loading.js";
import { keepForOffline } from "./offline.js";
import { Picker } from "./picker.js";
import { describeProblem } from "./problems.js";
import { SettingsPanel } from "./settings.js";
import type { Settings } from "./settings.js";

type View = "models" | "loading" | "chat";

const host = new Host((message) => announce(`The GPU was lost: ${message}`));
const settings = new SettingsPanel((changed) => void applySettings(changed));
const conversation = new Conversation(host, () => settings.settings,
  { onBusy: showBusy, onFigures: showFigures });
const prompt = byId<HTMLTextAreaElement>("prompt");
let view: View = "models";

function show(next: View): void {
  view = next;
  for (const name of ["models", "loading", "chat"]) byId(`view-${name}`).hidden = name !== next;
  byId("models-back").hidden = !host.opened;
  byId("model-button").hidden = !host.opened || next === "loading";
  byId<HTMLButtonElement>("settings-button").disabled = next === "loading";
  byId("new-chat").hidden = next !== "chat";
  byId("hero").hidden = host.opened !== undefined;
  byId("models-short-title").hidden = !byId("hero").hidden;
  if (next === "models") void Promise.all([picker.show(), kept.show()])
    .catch((reason: unknown) => announce(describeProblem(reason).text));
}

// --- Models ---

async function choose(choice: Choice): Promise<void> {
  if (view === "loading") return;
  if (await load(choice)) await beginChat();
  else showModels();
}

async function load(choice: Choice): Promise<boolean> {
  view = "loading"; // nothing else is chosen, or set, while an answer ends
  byId<HTMLButtonElement>("settings-button").disabled = true;
  await conversation.stop();
  show("loading");
  const isOpen = await openModel(choice, host, settings.settings);
  await showDevice();
  return isOpen;
}

/** Who comes by keyboard begins at the top of them. */
function showModels(): void {
  show("models");
  byId("main").focus({ preventScroll: true });
}

async function beginChat(): Promise<void> {
  await conversation.forget();
  const { choice, model, canChat } = host.opened!;
  byId("model-name").textContent = choice.name;
  document.title = `${choice.name} · Wick`;
  byId("welcome-title").textContent = canChat ? `Ask ${choice.name}` : choice.name;
  byId("welcome-text").textContent = canChat
    ? "It runs on this device, and can be wrong."
    : "This model is not trained for conversations: it continues a text that you begin.";
  byId("prompt-label").textContent = canChat ? "Your message" : "The beginning of a text";
  prompt.placeholder = canChat ? `Message ${choice.name}` : "Begin a text";
  const suggestions = choice.suggestions ?? (canChat ? [] : ["Once upon a time"]);
  byId("suggestions").replaceChildren(...suggestions.map((text) => make("button",
    { type: "button", class: "chip", onclick: () => void send(text) }, text)));
  console.info(`${choice.name}: ${model.info.types}`);
  showChat();
  showEmpty();
  await showMemory();
}

/** The model that was trained on the page of tensors, with its adapter. */
async function openTaught(): Promise<void> {
  const kept = await keptAdapter().catch(() => undefined);
  if (!kept) return announce("There is no adapter in this browser");
  const { model: url, adapter } = kept;
  await choose({ name: `${nameOfUrl(url)} with your adapter`, source: url, url, adapter });
}

// --- The chat ---

async function beginAgain(): Promise<void> {
  try {
    await conversation.clear();
  } catch (reason) {
    return showFigures(describeProblem(reason).text);
  } finally {
    showEmpty();
    prompt.focus();
  }
  await showMemory();
}

function showEmpty(): void {
  byId("welcome").hidden = !conversation.isEmpty;
}

async function send(text: string): Promise<void> {
  if (text.trim() === "" || conversation.isBusy || !host.opened) return;
  byId("welcome").hidden = true;
  await conversation.send(text);
  await showMemory();
}

function fitPrompt(): void {
  prompt.style.height = "auto";
  prompt.style.height = `${prompt.scrollHeight}px`;
}

function submit(): void {
  const text = prompt.value;
  if (text.trim() === "" || conversation.isBusy) return;
  prompt.value = "";
  fitPrompt();
  void send(host.opened?.canChat ? text.trim() : text);
}

function showBusy(isBusy: boolean): void {
  const [send, stop] = [byId("send"), byId("stop")];
  const { activeElement: active, body } = document;
  // A suggestion that was taken has gone, as has the answer whose button tries again.
  const isGone = active === body || active?.closest("[hidden]") != null;
  const hadFocus = active === send || active === stop || (isBusy && isGone);
  send.hidden = isBusy;
  stop.hidden = !isBusy;
  document.body.classList.toggle("generating", isBusy);
  if (hadFocus) (isBusy ? stop : prompt).focus();
}

function showFigures(text: string): void {
  byId("figures").textContent = text;
}

/** Context and memory, when nothing is being written. */
async function showMemory(): Promise<void> {
  if (!host.opened) return;
  try {
    const session = await host.opened.session;
    const { contextUsed, contextLength } = await session.stats();
    const memory = await host.memory();
    const parts = [`context ${formatCount(contextUsed)} of ${formatCount(contextLength)}`];
    if (memory && memory.device > 0) parts.push(`GPU ${formatBytes(memory.device)}`);
    if (memory) parts.push(`memory ${formatBytes(memory.module)}`);
    showFigures(parts.join(" · "));
  } catch (reason) {
    showFigures(describeProblem(reason).text);
  }
}

// --- Device and settings ---

async function showDevice(): Promise<void> {
  const capabilities = host.capabilities;
  byId("device-button").hidden = !capabilities;
  if (!capabilities) return;
  const { name, reason } = describeDevice(capabilities);
  byId("device-name").textContent = name;
  byId("device-button").title = reason;
  byId("device-reason").hidden = reason === "";
  byId("device-reason").textContent = reason;
}

async function openDevice(): Promise<void> {
  if (!host.capabilities) return;
  const facts = deviceFacts(host.capabilities);
  const memory = await host.memory();
  if (memory && memory.device > 0) facts.push(["Memory of the GPU", formatBytes(memory.device)]);
  if (memory) facts.push(["Memory of the engine", formatBytes(memory.module)]);
  fillFacts(byId("device-facts"), facts);
  byId<HTMLDialogElement>("device").showModal();
}

/** What cannot change under an open model opens it again. */
async function applySettings(changed: Settings): Promise<void> {
  if (view === "loading") return;
  const { engine, context } = host.changes(changed);
  const opened = host.opened;
  try {
    if (engine && opened) await reopen(opened.choice);
    else if (context && opened) {
      await conversation.stop();
      await host.renewSession(changed);
      await showMemory();
    }
  } catch (reason) {
    showFigures(describeProblem(reason).text);
  }
}

async function reopen(choice: Choice): Promise<void> {
  if (!await load(choice)) return showModels();
  showChat();
  await showMemory();
}

function showChat(): void {
  show("chat");
  prompt.focus();
}

const picker = new Picker((choice) => void choose(choice));
const kept = new KeptModels((choice) => void choose(choice));
byId("model-button").addEventListener("click", showModels);
byId("models-back").addEventListener("click", showChat);
byId("device-button").addEventListener("click", () => void openDevice());
byId("stop").addEventListener("click", () => void conversation.stop());
byId("new-chat").addEventListener("click", () => void beginAgain());
byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
prompt.addEventListener("input", fitPrompt);
prompt.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  submit();
});
addEventListener("keydown", ({ key }) => {
  if (key === "Escape" && !document.querySelector("dialog[open]")) void conversation.stop();
});
show("models");
if (new URLSearchParams(location.search).has("adapter")) void openTaught();
void keepForOffline();
