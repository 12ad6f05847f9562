/**
 * Runs a visitor's own JavaScript apart from the page: in a worker of a frame that has no origin, so
 * that it sees no page, no storage and no network, and that ends with its frame.
 */
import { make } from "./dom.js";

/** Milliseconds that a tool may take, and characters of its result or of what it throws. */
const LIMIT = 5000, MOST_RESULT = 16_384;

/** The pages' content security policies name this script by its hash. */
const FRAME = `onmessage=({data:{source,given}})=>{const worker=new Worker(URL.createObjectURL(new Blob([source])));`
  + `worker.onmessage=({data})=>parent.postMessage(data,"*");`
  + `worker.onerror=(event)=>{event.preventDefault();parent.postMessage({problem:event.message||"a syntax error"},"*")};`
  + `worker.postMessage(given)}`;
/** The worker has it, too. */
const POLICY = "default-src 'none'; script-src 'unsafe-inline'; worker-src blob:";
const PAGE = `<!doctype html><meta http-equiv="Content-Security-Policy" content="${POLICY}"><script>${FRAME}</script>`;

/** @param {string} code */
const sourceOf = (code) => `onmessage = async ({ data }) => {
  const run = async (args) => {
${code}
  };
  try {
    const result = await run(data);
    postMessage({ result: typeof result === "string" ? result : JSON.stringify(result) ?? "" });
  } catch (reason) {
    postMessage({ problem: String(reason) });
  }
};`;

/**
 * What the body of a function returns for `args`, as a text; fails with what it throws.
 * @param {string} code @param {unknown} given @param {AbortSignal} signal
 * @returns {Promise<string>}
 */
export function runApart(code, given, signal) {
  const frame = make("iframe", { sandbox: "allow-scripts", srcdoc: PAGE, hidden: true, title: "A tool" });
  const ending = new AbortController();
  return /** @type {Promise<string>} */ (new Promise((resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener("abort", () => reject(signal.reason), ending);
    const timer = setTimeout(() => reject(new Error(`the tool took longer than ${LIMIT / 1000} s`)), LIMIT);
    ending.signal.addEventListener("abort", () => clearTimeout(timer));
    addEventListener("message", ({ source, data }) => {
      if (source !== frame.contentWindow) return;
      if (data?.problem !== undefined) reject(new Error(String(data.problem).slice(0, MOST_RESULT)));
      else resolve(String(data?.result ?? "").slice(0, MOST_RESULT));
    }, ending);
    frame.addEventListener("load", () =>
      frame.contentWindow?.postMessage({ source: sourceOf(code), given }, "*"), { once: true });
    document.body.append(frame);
  })).finally(() => {
    ending.abort();
    frame.remove();
  });
}
