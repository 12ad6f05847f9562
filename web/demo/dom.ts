/** The page's elements: found, made, filled. Text only ever goes in as text. */

/** The element of an id, which the page's HTML has. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element '${id}'`);
  return found as T;
}

type Attributes = Record<string, string | boolean | ((event: Event) => void)>;

/** A new element; `onclick` is a function, true an attribute without a value, false none. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: (Node | string)[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

/** A new element of a drawing. */
export function makeSvg(tag: string, attributes: Record<string, string | number> = {},
                        ...children: (Node | string)[]): SVGElement {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** One of the icons of the page's sprite. */
export const makeIcon = (name: string): SVGElement =>
  makeSvg("svg", { class: "icon", "aria-hidden": "true" }, makeSvg("use", { href: `#i-${name}` }));

/** A list of facts: names and values. */
export function fillFacts(list: HTMLElement, facts: [string, string][]): void {
  list.replaceChildren(...facts.map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

/** Says something to those who listen to the page. */
export function announce(text: string): void {
  byId("status").textContent = text;
}

/** Copies text, and shows on the button that it did. */
export async function copyText(button: HTMLElement, text: string): Promise<void> {
  const { clipboard } = navigator as { clipboard?: Clipboard }; // only secure pages have one
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
