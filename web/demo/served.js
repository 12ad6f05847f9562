/**
 * The page of `wick serve`: chats with the server's model by its own API. The command has this file
 * and those that it imports inside, as they are here: nothing builds them.
 */
import { answerCall, asSent, describeCalls, makeCallCard, MOST_ROUNDS } from "./calls.js";
import { ChatList } from "./chat_list.js";
import { Chats, newChat, titleOf } from "./chats.js";
import { announce, byId, copyText, make, makeTool } from "./dom.js";
import { asSentence, formatCount, formatRate, formatTime } from "./format.js";
import { renderMarkdown } from "./markdown.js";
import { PromptField } from "./prompt_field.js";
import { makeQuestion } from "./question.js";
import { remember, remembered, rememberedValue } from "./remember.js";
import { SearchPanel } from "./search_panel.js";
import { ToolPanel } from "./tool_panel.js";
import { asFunctions, toolsOf } from "./tools.js";

/**
 * @typedef {import("./chats.js").Message} Message
 * @typedef {import("./calls.js").Call} Call
 * @typedef {{ id: string, status?: { value: string } }} Listed
 * status: of a server of several models: loaded, loading or unloaded.
 */

const SETTINGS = "wick-server-settings", KEY = "wick-server-key", MODEL = "wick-server-model";
const LOADING = 300; // milliseconds until the server is asked again whether it has loaded a model
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
/** The server's. @type {Listed[]} */
let models = [];

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

/** What the server has; the one that was chosen stays so. False: the server does not say. */
async function showModels() {
  try {
    models = (await (await ask("v1/models")).json()).data;
    const chosen = model.value || remembered(MODEL);
    model.replaceChildren(...models.map(({ id }) => make("option", { value: id, selected: id === chosen })));
    model.disabled = models.length < 2;
    showModel();
    showFigures(models.length === 0 ? "The server has no model." : "");
    return true;
  } catch (reason) {
    showFigures(asSentence(/** @type {Error} */ (reason).message));
    return false;
  }
}

const stateOf = () => models.find(({ id }) => id === model.value)?.status?.value;

/** The one that is chosen, and what can be done with it where there are several. */
function showModel() {
  const name = model.value, state = stateOf(), button = byId("load-model");
  document.title = name === "" ? "Wick" : `${name} · Wick`;
  byId("welcome-title").textContent = name === "" ? "No model" : `Ask ${name}`;
  button.hidden = state === undefined;
  /** @type {HTMLButtonElement} */ (button).disabled = state === "loading";
  button.textContent = state === "loaded" ? "Unload" : state === "loading" ? "Loading …" : "Load";
  button.setAttribute("aria-label", `${button.textContent} ${name}`);
  models.forEach(({ id, status }, i) => {
    const isOther = status?.value === "loaded" && id !== name;
    /** @type {HTMLOptionElement} */ (model.options[i]).textContent = isOther ? `${id} (loaded)` : id;
  });
}

/** Loads the model that is chosen, or makes it give its memory back. */
async function loadOrUnload() {
  const name = model.value, isLoaded = stateOf() === "loaded";
  try {
    await ask(`models/${isLoaded ? "unload" : "load"}`, { method: "POST", body: JSON.stringify({ model: name }) });
    for (;;) {
      if (!await showModels()) return;
      if (models.find(({ id }) => id === name)?.status?.value !== "loading") break;
      await new Promise((resolve) => setTimeout(resolve, LOADING));
    }
    const isNow = models.find(({ id }) => id === name)?.status?.value === "loaded";
    if (!isLoaded && !isNow) throw new Error(`The server cannot load ${name}: its log says why`);
    announce(`${name} is ${isNow ? "loaded" : "unloaded"}.`);
  } catch (reason) {
    showFigures(asSentence(/** @type {Error} */ (reason).message));
  }
}

/** Vectors by a model of the server's. */
const embedder = {
  element: make("div", {}, make("label", { for: "search-model" }, "Model for embeddings"),
    make("select", { id: "search-model" })),
  get model() {
    return /** @type {HTMLSelectElement} */ (byId("search-model")).value || undefined;
  },
  /** @param {string[]} input @returns {Promise<number[][]>} */
  async embed(input) {
    const response = await ask("v1/embeddings",
      { method: "POST", body: JSON.stringify({ model: this.model, input }) });
    return (await response.json()).data.map((/** @type {{ embedding: number[] }} */ { embedding }) => embedding);
  },
};

function showEmbedders() {
  const chosen = embedder.model ?? model.value;
  byId("search-model").replaceChildren(...models.map(({ id }) =>
    make("option", { value: id, selected: id === chosen }, id)));
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
  const calls = make("div");
  /** @type {{ element: HTMLElement, draw(): void }[]} */
  const cards = [];
  const element = make("article", { class: "turn answer", "aria-label": "Answer" }, thinking, body,
    calls, note, make("div", { class: "turn-tools" }, copy,
      makeTool("Try again", "retry", () => void retry(), "retry"), figures));
  const draw = () => {
    const reasoning = (message.reasoning ?? "").trim();
    thinking.hidden = reasoning === "";
    /** @type {HTMLElement} */ (thinking.lastElementChild).textContent = reasoning;
    if (message.content !== "") thinking.open = false;
    renderMarkdown(body, message.content);
    for (const call of (message.calls ?? []).slice(cards.length)) {
      const card = makeCallCard(call);
      cards.push(card);
      calls.append(card.element);
    }
    note.textContent = message.note ?? "";
    note.hidden = !message.note;
    figures.textContent = message.figures ?? "";
  };
  draw();
  return { element, draw, cards };
}

function showChat() {
  log.replaceChildren(...chat.messages.map((message, i) =>
    (message.role === "user" ? makeQuestion(message.content, () => edit(i)) : makeAnswer(message).element)));
  byId("welcome").hidden = chat.messages.length > 0;
  chats.setCurrent(chat.id);
  scroll.scrollTop = scroll.scrollHeight;
}

function save(kept = chat) {
  byId("not-kept").hidden = chats.save(kept);
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
  while (chat.messages.at(-1)?.role === "assistant") chat.messages.pop();
  showChat();
  await answer();
}

/** The question of a chat again, in another one that begins like it. @param {number} at */
function edit(at) {
  if (running) return;
  const text = chat.messages[at]?.content ?? "";
  open(newChat(structuredClone(chat.messages.slice(0, at)), chat.toolsOff));
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

/** The answer to the last question, with the calls of tools that come before it. */
async function answer() {
  const own = chat, controller = new AbortController();
  running = controller;
  showBusy(true);
  announce("The model is answering.");
  try {
    // At last the answer comes without tools.
    for (let round = 0; await answerOnce(own, round < MOST_ROUNDS ? toolsOf(own) : [], controller.signal);)
      round++;
  } finally {
    running = undefined;
    showBusy(false);
  }
  if (stateOf() !== undefined) void showModels();
}

/**
 * One message of the model's; what there is of it stays where it ends early. True: it has called
 * tools, and goes on with their results.
 * @param {import("./chats.js").Chat} own @param {import("./tools.js").Tool[]} tools @param {AbortSignal} signal
 */
async function answerOnce(own, tools, signal) {
  const { system } = settings();
  const messages = [...(system ? [{ role: "system", content: system }] : []),
    ...asSent(own.messages)];
  /** @type {Message} */
  const message = { role: "assistant", content: "" };
  const { element, draw, cards } = makeAnswer(message);
  element.classList.add("busy");
  log.append(element);
  scroll.scrollTop = scroll.scrollHeight;
  try {
    await receive(message, messages, tools, signal, draw);
    draw();
    for (const [i, call] of (message.calls ?? []).entries()) {
      const card = /** @type {{ element: HTMLElement, draw(): void }} */ (cards[i]);
      scroll.scrollTop = scroll.scrollHeight;
      await answerCall(call, tools, card.element, signal);
      card.draw();
    }
  } catch (reason) {
    const { name, message: why } = /** @type {Error} */ (reason);
    if (name !== "AbortError") message.note = asSentence(why);
  }
  element.classList.remove("busy");
  const { content, reasoning, note, calls = [] } = message;
  if (content !== "" || reasoning || note || calls.length > 0) own.messages.push(message);
  draw();
  if (content !== "" || calls.length > 0) save(own);
  announce([content, describeCalls(calls), note].filter((text) => text).join(" "));
  return calls.length > 0 && !signal.aborted;
}

/**
 * @param {Message} message @param {object[]} messages @param {import("./tools.js").Tool[]} tools
 * @param {AbortSignal} signal @param {() => void} draw
 */
async function receive(message, messages, tools, signal, draw) {
  const begun = performance.now();
  const response = await ask("v1/chat/completions", { method: "POST", signal,
    body: JSON.stringify({ model: model.value, messages, stream: true,
      stream_options: { include_usage: true }, ...(tools.length > 0 && { tools: asFunctions(tools) }),
      ...options() }) });
  /** Their arguments come in parts. @type {Call[]} */
  const calls = [];
  let first = 0, n = 0, isDue = false;
  for await (const { choices: [choice], usage, timings } of eventsOf(response)) {
    const { content, reasoning_content: reasoning, tool_calls: parts = [] } = choice?.delta ?? {};
    for (const { index, function: { name = "", arguments: given = "" } } of parts) {
      const call = calls[index] ??= { name: "", given: "" };
      call.name += name;
      call.given += given;
    }
    if (content) message.content += content;
    if (reasoning) message.reasoning = (message.reasoning ?? "") + reasoning;
    if (content || reasoning || parts.length > 0) {
      first ||= performance.now();
      n++;
    }
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
  if (calls.length > 0) message.calls = calls;
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
  toolPanel.count();
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
byId("settings-reset").addEventListener("click", () => {
  fillSettings({});
  readSettings();
});
// At once: the event of a closed dialog may come after a question that was sent since.
form.addEventListener("input", readSettings);
dialog.addEventListener("close", () => void showModels());
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
  toolPanel.count();
} });
byId("load-model").addEventListener("click", () => void loadOrUnload());
model.addEventListener("change", () => {
  remember(MODEL, model.value);
  showModel();
});
new SearchPanel(embedder, (text) => prompt.putFirst(text));
byId("search-button").addEventListener("click", showEmbedders);
chat = chats.current() ?? chat;
const toolPanel = new ToolPanel(() => chat, () => {
  if (chats.get(chat.id)) save();
});
showChat();
void showModels();
prompt.focus();
