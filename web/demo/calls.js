/** Calls of tools: found in a model's text, shown as cards, answered, and sent with the next turn. */
import { announce, byId, make } from "./dom.js";
import { asSentence } from "./format.js";
import { runApart } from "./sandbox.js";
import { asFunctions } from "./tools.js";

/**
 * @typedef {{ name: string, given: string, result?: string, failed?: boolean }} Call
 * given: its arguments, JSON; result: undefined until it is answered.
 * @typedef {import("./chats.js").Message} Message
 * @typedef {import("./tools.js").Tool} Tool
 * @typedef {import("libwick").ChatMessage} ChatMessage
 */

/** Turns of calls and results before an answer must come. */
export const MOST_ROUNDS = 8;
const UNANSWERED = "The call was not answered.", STOPPED = "The answer was stopped.";

/** Arguments, which some models write as a text that is JSON. @param {unknown} given */
const objectOf = (given) => (typeof given === "string" ? JSON.parse(given || "{}") : given);

/** @param {string} name @param {unknown} given @returns {Call} */
export const callOf = (name, given) => ({ name, given: JSON.stringify(objectOf(given)) });

/**
 * The calls that a model wrote as describeTools wants them; undefined: the text is something else.
 * @param {string} text
 */
export function callsIn(text) {
  try {
    const found = [JSON.parse(text)].flat();
    if (found.length === 0 || found.some((call) => typeof call?.name !== "string")) return undefined;
    return found.map(({ name, arguments: given, parameters }) => callOf(name, given ?? parameters ?? {}));
  } catch {
    return undefined;
  }
}

// --- As they are sent ---

/** @param {string} text @returns {unknown} */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/**
 * Templates may want an answer between two questions, also where it was stopped.
 * @param {Message[]} messages @param {(message: Message) => ChatMessage[]} convert
 */
const alternating = (messages, convert) => messages.flatMap((message, i) => {
  const before = messages[i - 1], isEarly = before && (before.role === "user" || before.calls);
  return [...(isEarly && message.role === "user" ? [{ role: "assistant", content: STOPPED }] : []),
    ...convert(message)];
});

/**
 * Messages as APIs and templates take them, each with the results of its calls after it.
 * @param {Message[]} messages @param {boolean} isTemplate arguments are objects there, and texts in APIs
 */
export function asSent(messages, isTemplate = false) {
  let n = 0;
  return alternating(messages, ({ role, content, calls = [] }) => {
    if (calls.length === 0) return [{ role, content }];
    // Mistral's templates want nine letters or digits.
    const known = calls.map((call) => ({ ...call, id: String(n++).padStart(9, "0") }));
    return [{ role, content, tool_calls: known.map(({ id, name, given }) => ({ id, type: "function",
      function: { name, arguments: isTemplate ? parsed(given) : given } })) },
    ...known.map(({ id, name, result = UNANSWERED }) =>
      ({ role: "tool", name, tool_call_id: id, content: result }))];
  });
}

/** The same for a model whose template knows no tools. @param {Message[]} messages */
export const asPlain = (messages) => alternating(messages, ({ role, content, calls = [] }) => {
  if (calls.length === 0) return [{ role, content }];
  const written = calls.map(({ name, given }) => JSON.stringify({ name, arguments: parsed(given) }));
  return [{ role, content: [content, ...written].filter((text) => text !== "").join("\n") },
    { role: "user", content: calls.map(({ name, result = UNANSWERED }) =>
      `The result of ${name}: ${result}`).join("\n") }];
});

/** What such a model is told of them. @param {Tool[]} tools */
export const describeTools = (tools) => "You can call these functions:\n"
  + asFunctions(tools).map((tool) => JSON.stringify(tool.function)).join("\n")
  + '\nTo call one, answer with JSON alone: {"name": NAME, "arguments": {…}}.';

// --- On the page ---

/** As they are said to those who listen. @param {Call[]} calls */
export const describeCalls = (calls) => calls.map(({ name, result = UNANSWERED }) => `${name}: ${result}`).join(" ");

/** @param {string} text */
function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** A call with its arguments and its result, which is drawn again by draw(). @param {Call} call */
export function makeCallCard(call) {
  const result = make("pre", { hidden: true }), state = make("span", { class: "muted" });
  const element = make("section", { class: "call", "aria-label": `Call of ${call.name}` },
    make("header", {}, make("strong", {}, call.name), state), make("pre", {}, indented(call.given)), result);
  const draw = () => {
    const { result: text, failed = false } = call;
    state.textContent = text === undefined ? "not answered" : failed ? "failed" : "answered";
    result.hidden = text === undefined;
    result.textContent = indented(text ?? "");
    element.classList.toggle("failed", failed);
  };
  draw();
  return { element, draw };
}

/**
 * The visitor's own answer, by a form in the card.
 * @param {Call} call @param {HTMLElement} card @param {AbortSignal} signal
 * @returns {Promise<string>}
 */
function askVisitor({ name }, card, signal) {
  const field = make("textarea", { rows: "2", "aria-label": `Result of ${name}`,
    placeholder: "What the tool answers", required: true });
  const form = make("form", {}, field,
    make("button", { class: "button primary", type: "submit" }, "Send the result"));
  card.append(form);
  announce(`The model calls ${name}, and you answer.`);
  field.focus();
  form.scrollIntoView({ block: "nearest" });
  return /** @type {Promise<string>} */ (new Promise((resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      resolve(field.value);
    });
  })).finally(() => {
    form.remove();
    byId("stop").focus();
  });
}

/**
 * Answers one call: by its tool's code, by the visitor, or with what is wrong. Fails where it is
 * stopped.
 * @param {Call} call @param {Tool[]} tools @param {HTMLElement} card @param {AbortSignal} signal
 */
export async function answerCall(call, tools, card, signal) {
  const tool = tools.find(({ name }) => name === call.name);
  try {
    if (!tool) throw new Error(`there is no tool '${call.name}'`);
    call.result = tool.code.trim() === "" ? await askVisitor(call, card, signal)
      : await runApart(tool.code, JSON.parse(call.given), signal);
  } catch (reason) {
    signal.throwIfAborted();
    call.result = asSentence(/** @type {Error} */ (reason).message);
    call.failed = true;
  }
}
