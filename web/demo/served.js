/**
 * The page of `wick serve`: chats with the server's model by its own API. The command has this file
 * and those that it imports inside, as they are here: nothing builds them.
 */
import { ChatList } from "./chat_list.js";
import { Chats, newChat, titleOf } from "./chats.js";
import { announce, byId, copyText, make, makeTool } from "./dom.js";
import { asSentence, formatCount, formatRate, formatTime } from "./format.js";
import { renderMarkdown } from "./markdown.js";
import { PromptField } from "./prompt_field.js";
import { makeQuestion } from "./question.js";
import { remember, remembered, rememberedValue } from "./remember.js";

/** @typedef {import("./chats.js").Message} Message */

const SETTINGS = "wick-server-settings", KEY = "wick-server-key";
const NUMBERS = ["temperature", "top_p", "max_tokens", "seed"];

const chats = new Chats();
const prompt = new PromptField(submit);
const model = /** @type {HTMLSelectElement} */ (byId("model"));
const dialog = /** @type {HTMLDialogElement} */ (byId("settings"));
const form = /** @type {HTMLFormElement} */ (byId("settings-form"));
const log = byId("log"), scroll = byId("scroll");

let chat = newChat();
/** @type {AbortController | undefined} */
let running;


// --- Settings ---

const settings = () => rememberedValue(SETTINGS, /** @type {Record<string, string>} */ ({}));

/** @param {string} name */
const field = (name) => /** @type {HTMLInputElement} */ (form.elements.namedItem(name));

/** @param {Record<string, string>} values */
function fillSettings(values) {
  for (const name of ["system", "schema", ...NUMBERS]) field(name).value = values[name] ?? "";
  field("key").value = remembered(KEY, sessionStorage);
}

function readSettings() {
  const names = ["system", "schema", ...NUMBERS];
  const values = Object.fromEntries(names.filter((name) => field(name).checkValidity())
    .map((name) => [name, field(name).value.trim()]));
  remember(SETTINGS, JSON.stringify(values));
  remember(KEY, field("key").value, sessionStorage);
  void showModels();
}

/** What a request says beside its messages. */
function options() {
  const values = settings();
  const numbers = NUMBERS.filter((name) => values[name])
    .map((name) => [name, Number(values[name])]);
  const schema = values.schema ? { response_format: { type: "json_schema",
    json_schema: { name: "answer", strict: true, schema: JSON.parse(values.schema) } } } : {};
  return { ...Object.fromEntries(numbers), ...schema };
}

// --- The server ---

/** @param {string} path @param {RequestInit} init */
async function ask(path, init = {}) {
  const key = remembered(KEY, sessionStorage);
  const response = await fetch(path, { ...init, headers: { "content-type": "application/json",
    ...(key && { authorization: `Bearer ${key}` }) } });
  if (response.ok) return response;
  if (response.status === 401) throw new Error("The server asks for an API key: give it in the settings");
  const text = await response.text();
  let said;
  try {
    said = JSON.parse(text).error?.message;
  } catch {
    // Not the server's own words, but those of a proxy.
  }
  throw new Error(said ?? `The server answers ${response.status}`);
}

async function showModels() {
  try {
    /** @type {{ data: { id: string }[] }} */
    const { data } = await (await ask("v1/models")).json();
    model.replaceChildren(...data.map(({ id }) => make("option", { value: id }, id)));
    model.disabled = data.length < 2;
    const name = model.value;
    document.title = `${name} · Wick`;
    byId("welcome-title").textContent = `Ask ${name}`;
    showFigures("");
  } catch (reason) {
    showFigures(asSentence(/** @type {Error} */ (reason).message));
  }
}

/**
 * The data of an answer's events, as objects.
 * @param {Response} response
 */
async function* eventsOf(response) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  for (let rest = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      if (!event.startsWith("data: ") || event === "data: [DONE]") continue;
      const data = JSON.parse(event.slice(6));
      if (data.error) throw new Error(data.error.message);
      yield data;
    }
  }
}

// --- Turns ---

/** @param {Message} message */
function makeAnswer(message) {
  const thinking = make("details", { class: "thinking", hidden: true, open: true },
    make("summary", {}, "Thinking"), make("p"));
  const body = make("div", { class: "body" }), note = make("p", { class: "notice", hidden: true });
  const figures = make("span", { class: "figures muted" });
  const copy = makeTool("Copy", "copy", () => void copyText(copy, message.content));
  const element = make("article", { class: "turn answer", "aria-label": "Answer" }, thinking, body,
    note, make("div", { class: "turn-tools" }, copy,
      makeTool("Try again", "retry", () => void retry(), "retry"), figures));
  const draw = () => {
    const reasoning = (message.reasoning ?? "").trim();
    thinking.hidden = reasoning === "";
    /** @type {HTMLElement} */ (thinking.lastElementChild).textContent = reasoning;
    if (message.content !== "") thinking.open = false;
    renderMarkdown(body, message.content);
    note.textContent = message.note ?? "";
    note.hidden = !message.note;
    figures.textContent = message.figures ?? "";
  };
  draw();
  return { element, draw };
}

function showChat() {
  log.replaceChildren(...chat.messages.map((message, i) =>
    (message.role === "user" ? makeQuestion(message.content, () => edit(i)) : makeAnswer(message).element)));
  byId("welcome").hidden = chat.messages.length > 0;
  chats.setCurrent(chat.id);
  scroll.scrollTop = scroll.scrollHeight;
}

function save() {
  if (!chats.save(chat)) announce("The browser has no room to keep this chat.");
}

// --- Asking ---

/** @param {string} text */
async function send(text) {
  if (text.trim() === "" || running) return;
  chat.messages.push({ role: "user", content: text });
  chat.title ||= titleOf(text);
  showChat();
  save();
  await answer();
}

async function retry() {
  if (running || chat.messages.at(-1)?.role !== "assistant") return;
  chat.messages.pop();
  showChat();
  await answer();
}

/** The question of a chat again, in another one that begins like it. @param {number} at */
function edit(at) {
  if (running) return;
  const text = chat.messages[at]?.content ?? "";
  open(newChat(structuredClone(chat.messages.slice(0, at))));
  prompt.text = text;
}

/** @param {boolean} isBusy */
function showBusy(isBusy) {
  const hadFocus = document.activeElement === byId("stop") || document.activeElement === document.body;
  byId("send").hidden = isBusy;
  byId("stop").hidden = !isBusy;
  if (hadFocus) prompt.focus();
}

/** @param {string} text */
const showFigures = (text) => {
  byId("figures").textContent = text;
};

/** The answer to the last question; what there is of it stays where it ends early. */
async function answer() {
  const { system } = settings();
  const own = chat;
  const messages = [...(system ? [{ role: "system", content: system }] : []),
    ...own.messages.map(({ role, content }) => ({ role, content }))];
  /** @type {Message} */
  const message = { role: "assistant", content: "" };
  const { element, draw } = makeAnswer(message);
  element.classList.add("busy");
  log.append(element);
  scroll.scrollTop = scroll.scrollHeight;
  running = new AbortController();
  showBusy(true);
  announce("The model is answering.");
  try {
    await receive(message, messages, running.signal, draw);
  } catch (reason) {
    const { name, message: why } = /** @type {Error} */ (reason);
    if (name !== "AbortError") message.note = asSentence(why);
  } finally {
    running = undefined;
    element.classList.remove("busy");
    if (message.content !== "" || message.reasoning || message.note) own.messages.push(message);
    draw();
    if (message.content !== "") save();
    announce(message.note ?? message.content);
    showBusy(false);
  }
}

/** @param {Message} message @param {object[]} messages @param {AbortSignal} signal @param {() => void} draw */
async function receive(message, messages, signal, draw) {
  const begun = performance.now();
  const response = await ask("v1/chat/completions", { method: "POST", signal,
    body: JSON.stringify({ model: model.value, messages, stream: true,
      stream_options: { include_usage: true }, ...options() }) });
  let first = 0, n = 0, isDue = false;
  for await (const { choices: [choice], usage, timings } of eventsOf(response)) {
    const { content, reasoning_content: reasoning } = choice?.delta ?? {};
    if (content) message.content += content;
    if (reasoning) message.reasoning = (message.reasoning ?? "") + reasoning;
    if (content || reasoning) first ||= performance.now();
    if (content || reasoning) n++;
    if (choice?.finish_reason === "length") message.note = "The longest answer that is allowed ends here.";
    if (usage) message.figures = describeUsage(usage, timings, first - begun);
    else if (n > 1) showFigures(`${formatRate((n - 1) / (performance.now() - first) * 1000)} tokens/s`);
    if (isDue) continue;
    isDue = true;
    requestAnimationFrame(() => {
      const isAtEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
      isDue = false;
      draw();
      if (isAtEnd) scroll.scrollTop = scroll.scrollHeight;
    });
  }
  showFigures("");
}

/**
 * @param {{ prompt_tokens: number, completion_tokens: number,
 *           prompt_tokens_details?: { cached_tokens?: number } }} usage
 * @param {{ predicted_per_second?: number } | undefined} timings @param {number} first milliseconds
 */
function describeUsage(usage, timings, first) {
  const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  const rate = timings?.predicted_per_second ?? 0;
  return [...(rate > 0 ? [`${formatRate(rate)} tokens/s`] : []), `first after ${formatTime(first)}`,
    `${formatCount(usage.completion_tokens)} tokens`,
    `prompt ${formatCount(usage.prompt_tokens)}${cached ? `, ${formatCount(cached)} of it cached` : ""}`]
    .join(" · ");
}

// --- The page ---

/** @param {import("./chats.js").Chat} next */
function open(next) {
  running?.abort();
  chat = next;
  showChat();
  prompt.focus();
}

function submit() {
  if (running || prompt.text.trim() === "") return;
  const text = prompt.text.trim();
  prompt.text = "";
  void send(text);
}

/** @param {DragEvent} event */
function onDrag(event) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  byId("drop-veil").hidden = event.type !== "dragenter" && event.type !== "dragover";
  if (event.type === "drop") void prompt.addFiles([...event.dataTransfer.files]);
}

for (const type of /** @type {const} */ (["dragenter", "dragover", "dragleave", "drop"]))
  addEventListener(type, onDrag);
addEventListener("keydown", ({ key }) => {
  if (key === "Escape" && !document.querySelector("dialog[open]")) running?.abort();
});
byId("stop").addEventListener("click", () => running?.abort());
byId("new-chat").addEventListener("click", () => open(newChat()));
byId("settings-button").addEventListener("click", () => {
  fillSettings(settings());
  dialog.showModal();
});
byId("settings-reset").addEventListener("click", () => fillSettings({}));
dialog.addEventListener("close", readSettings);
field("schema").addEventListener("input", () => {
  let problem = "";
  try {
    if (field("schema").value.trim() !== "") JSON.parse(field("schema").value);
  } catch {
    problem = "This is not JSON yet.";
  }
  field("schema").setCustomValidity(problem);
  byId("schema-hint").textContent = problem
    || "Answers are JSON that this schema accepts; empty: any text.";
});
dialog.addEventListener("click", ({ target }) => {
  if (target === dialog) dialog.close();
});

new ChatList(chats, { current: () => chat, onOpen: open, onRemoved: () => {
  running?.abort();
  chat = newChat();
  showChat();
} });
chat = chats.current() ?? chat;
showChat();
void showModels();
prompt.focus();
