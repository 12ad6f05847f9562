/**
 * The page's elements: found, made, filled. Text only ever goes in as text. (JavaScript, as `wick
 * serve` has it in its page, too, which nothing builds.)
 */

/**
 * The element of an id, which the page's HTML has.
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element '${id}'`);
  return /** @type {T} */ (found);
}

/** @typedef {Record<string, string | boolean | ((event: Event) => void)>} Attributes */

/**
 * A new element; `onclick` is a function, true an attribute without a value, false none.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} attributes
 * @param {(Node | string)[]} children
 */
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

/**
 * A new element of a drawing.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {(Node | string)[]} children
 * @returns {SVGElement}
 */
export function makeSvg(tag, attributes = {}, ...children) {
  const made = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/**
 * One of the icons of the page's sprite.
 * @param {string} name
 */
export const makeIcon = (name) =>
  makeSvg("svg", { class: "icon", "aria-hidden": "true" }, makeSvg("use", { href: `#i-${name}` }));

/**
 * A small button of an icon.
 * @param {string} label
 * @param {string} icon
 * @param {() => void} onclick
 * @param {string} more its other classes
 */
export const makeTool = (label, icon, onclick, more = "") => make("button", { type: "button",
  class: `tool small ${more}`, "aria-label": label, title: label, onclick }, makeIcon(icon));

/**
 * A list of facts: names and values.
 * @param {HTMLElement} list
 * @param {[string, string][]} facts
 */
export function fillFacts(list, facts) {
  list.replaceChildren(...facts.map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

/**
 * Says something to those who listen to the page.
 * @param {string} text
 */
export function announce(text) {
  byId("status").textContent = text;
}

/**
 * Copies text, and shows on the button that it did.
 * @param {HTMLElement} button
 * @param {string} text
 */
export async function copyText(button, text) {
  /** @type {{ clipboard?: Clipboard }} */
  const { clipboard } = navigator; // only secure pages have one
  const isCopied = await clipboard?.writeText(text).then(() => true, () => false) ?? false;
  const said = isCopied ? "Copied" : "The browser does not allow copying here";
  announce(said);
  if (button.dataset.isCopied) return;
  button.dataset.isCopied = "yes";
  const before = [...button.childNodes];
  const isIcon = isCopied && button.classList.contains("tool");
  button.replaceChildren(isCopied ? makeIcon("check") : "", isIcon ? "" : said);
  setTimeout(() => {
    button.replaceChildren(...before);
    delete button.dataset.isCopied;
  }, 1500);
}
