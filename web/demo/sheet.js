/** Panels at the side that scripts make: both pages have them. */
import { make, makeIcon } from "./dom.js";

/**
 * A panel, which is a part of the page at once and is shown by showModal().
 * @param {string} id @param {string} title @param {Node[]} content @param {Node[]} footer
 */
export function makeSheet(id, title, content, footer) {
  const heading = make("h2", { id: `${id}-title`, tabindex: "-1" }, title);
  const close = make("button", { type: "button", class: "tool", "aria-label": `Close ${title.toLowerCase()}`,
    onclick: () => sheet.close() }, makeIcon("close"));
  const sheet = make("dialog", { id, class: "sheet", "aria-labelledby": heading.id },
    make("div", {}, make("header", {}, heading, close), make("div", { class: "sheet-body" }, ...content),
      make("footer", {}, ...footer)));
  sheet.addEventListener("click", ({ target }) => {
    if (target === sheet) sheet.close();
  });
  document.body.append(sheet);
  return sheet;
}

/**
 * A field with its label, and a place for what is wrong with it.
 * @template {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} T
 * @param {string} label @param {T} input @param {string} hint
 */
export function makeField(label, input, hint = "") {
  const problem = make("p", { class: "problem", id: `${input.id}-problem`, role: "alert" });
  const about = make("p", { class: "hint", id: `${input.id}-hint` }, hint);
  input.setAttribute("aria-describedby", hint === "" ? problem.id : `${problem.id} ${about.id}`);
  const element = make("div", {}, make("label", { for: input.id }, label), input, problem,
    ...(hint === "" ? [] : [about]));
  /** Empty: nothing is wrong. @param {string} text */
  const say = (text) => {
    problem.textContent = text;
    input.setAttribute("aria-invalid", String(text !== ""));
  };
  return { element, input, say };
}
