/** The chat page: which view is shown, and what its buttons do. */
import { keptAdapter } from "./adapter.js";
import { ChatList } from "./chat_list.js";
import { Chats, newChat, type Chat } from "./chats.js";
import { Conversation } from "./conversation.js";
import { announce, byId, fillFacts, make } from "./dom.js";
import { describeDevice, deviceFacts } from "./device.js";
import { TabEmbedder } from "./embedder.js";
import { formatBytes, formatCount, nameOfUrl } from "./format.js";
import { Host } from "./host.js";
import type { Choice } from "./host.js";
import { isKept, KeptModels } from "./kept.js";
import { openModel } from "./loading.js";
import { keepForOffline } from "./offline.js";
import { Picker } from "./picker.js";
import { describeProblem } from "./problems.js";
import { PromptField } from "./prompt_field.js";
import { remember, rememberedValue } from "./remember.js";
import { SearchPanel } from "./search_panel.js";
import { SettingsPanel } from "./settings.js";
import type { Settings } from "./settings.js";
import { ToolPanel } from "./tool_panel.js";

type View = "models" | "loading" | "chat";

const host = new Host((message) => announce(`The GPU was lost: ${message}`));
const settings = new SettingsPanel((changed) => void applySettings(changed));
const chats = new Chats();
const conversation = new Conversation(host, () => settings.settings, chats,
  { onBusy: showBusy, onFigures: showFigures, onEdit });
const prompt = new PromptField(submit);
const toolPanel = new ToolPanel(() => conversation.chat, () => {
  if (chats.get(conversation.chat.id)) chats.save(conversation.chat);
});
const LAST = "wick-last-model";
let view: View = "models";

function show(next: View): void {
  view = next;
  for (const name of ["models", "loading", "chat"]) byId(`view-${name}`).hidden = name !== next;
  byId("models-back").hidden = !host.opened;
  byId("model-button").hidden = !host.opened || next === "loading";
  byId<HTMLButtonElement>("settings-button").disabled = next === "loading";
  byId("new-chat").hidden = byId("chats-button").hidden = next !== "chat";
  byId("hero").hidden = host.opened !== undefined;
  byId("models-short-title").hidden = !byId("hero").hidden;
  if (next === "models") void Promise.all([picker.show(), kept.show()])
    .catch((reason: unknown) => announce(describeProblem(reason).text));
}

// --- Models ---

async function choose(choice: Choice, chat?: Chat): Promise<void> {
  if (view === "loading") return;
  if (!await load(choice)) return showModels();
  // Of an address alone a later visit makes the choice again.
  if (choice.url !== undefined && !choice.adapter)
    remember(LAST, JSON.stringify({ ...choice, source: choice.url }));
  await beginChat(chat);
}

/** What was open when the page was left, where all of the model is here. */
async function restore(): Promise<void> {
  const choice = rememberedValue<Choice | undefined>(LAST, undefined);
  if (choice?.url !== undefined && await isKept(choice.url) && view === "models" && !host.opened)
    await choose(choice, chats.current());
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

async function beginChat(chat?: Chat): Promise<void> {
  await conversation.show(chat);
  const { choice, model, canChat } = host.opened!;
  byId("model-name").textContent = choice.name;
  document.title = `${choice.name} · Wick`;
  byId("welcome-title").textContent = canChat ? `Ask ${choice.name}` : choice.name;
  byId("welcome-text").textContent = canChat
    ? "It runs on this device, and can be wrong."
    : "This model is not trained for conversations: it continues a text that you begin.";
  byId("prompt-label").textContent = canChat ? "Your message" : "The beginning of a text";
  byId("tools-button").hidden = !canChat; // a text that goes on calls none
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

async function openChat(chat?: Chat): Promise<void> {
  try {
    await conversation.open(chat);
  } catch (reason) {
    return showFigures(describeProblem(reason).text);
  } finally {
    showEmpty();
    prompt.focus();
  }
  await showMemory();
}

function showEmpty(): void {
  toolPanel.count();
  byId("welcome").hidden = !conversation.isEmpty;
}

async function send(text: string): Promise<void> {
  if (text.trim() === "" || conversation.isBusy || !host.opened) return;
  byId("welcome").hidden = true;
  await conversation.send(text);
  await showMemory();
}

function onEdit(question: string): void {
  prompt.text = question;
  prompt.focus();
  showEmpty();
}

function submit(): void {
  const { text } = prompt;
  if (text.trim() === "" || conversation.isBusy) return;
  prompt.text = "";
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

/** While a conversation is there, files other than models go into its message. */
function takesFiles(files: File[]): boolean {
  if (view !== "chat" || files.some(({ name }) => /\.gguf$/i.test(name))) return false;
  void prompt.addFiles(files);
  return true;
}

const picker = new Picker((choice) => void choose(choice), takesFiles);
const kept = new KeptModels((choice) => void choose(choice));
new ChatList(chats, { current: () => conversation.chat, onOpen: (chat) => void openChat(chat),
  onRemoved: () => void openChat(newChat()) });
new SearchPanel(new TabEmbedder(host, () => settings.settings), (text) => prompt.putFirst(text));
byId("model-button").addEventListener("click", showModels);
byId("models-back").addEventListener("click", showChat);
byId("device-button").addEventListener("click", () => void openDevice());
byId("stop").addEventListener("click", () => void conversation.stop());
byId("new-chat").addEventListener("click", () => void openChat());
addEventListener("keydown", ({ key }) => {
  if (key === "Escape" && !document.querySelector("dialog[open]")) void conversation.stop();
});
show("models");
void (new URLSearchParams(location.search).has("adapter") ? openTaught() : restore());
void keepForOffline();
