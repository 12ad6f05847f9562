/**
 * The Markdown that models write, as elements: paragraphs, headings, lists in lists, quotes, tables,
 * blocks of code, links, emphasis. All of a text goes in as text, so that nothing in it can be a
 * part of the page. (JavaScript, as `wick serve` has it in its page, too, which nothing builds.)
 */
import { highlight } from "./code.js";
import { copyText, make, makeIcon } from "./dom.js";

/**
 * source: the Markdown that it is made from: a block whose source is the same is not made again;
 * make: its element.
 * @typedef {{ source: string, make: () => HTMLElement }} Block
 * @typedef {{ block: Block, end: number }} Taken
 */

const FENCE = /^(\s*)(```+|~~~+)\s*([\w+#.-]*)[^`]*$/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+)(.*)$/;
const QUOTE = /^\s{0,3}> ?/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const DELIMITER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/** @param {readonly string[]} lines @param {number} at */
const isTable = (lines, at) => lines[at]?.includes("|") === true
  && lines[at + 1]?.includes("|") === true && DELIMITER.test(lines[at + 1] ?? "");

/** @param {readonly string[]} lines @param {number} at */
const beginsBlock = (lines, at) => isTable(lines, at)
  || [FENCE, HEADING, ITEM, QUOTE, RULE].some((start) => start.test(lines[at] ?? ""));

/** @param {readonly string[]} lines @param {number} begin @returns {Taken} */
function takeBlock(lines, begin) {
  const first = lines[begin] ?? "";
  const heading = HEADING.exec(first);
  if (FENCE.test(first)) return takeCode(lines, begin);
  if (heading) {
    const tag = (heading[1] ?? "").length <= 2 ? "h3" : "h4";
    return { end: begin + 1, block: { source: first,
      make: () => make(tag, {}, ...inline(heading[2] ?? "")) } };
  }
  if (RULE.test(first))
    return { end: begin + 1, block: { source: first, make: () => make("hr") } };
  if (QUOTE.test(first)) return takeQuote(lines, begin);
  if (isTable(lines, begin)) return takeTable(lines, begin);
  return ITEM.test(first) ? takeList(lines, begin) : takeParagraph(lines, begin);
}

/** @param {readonly string[]} lines @param {number} begin @returns {Taken} */
function takeCode(lines, begin) {
  const [, indent = "", fence = "", language = ""] = FENCE.exec(lines[begin] ?? "") ?? [];
  const own = RegExp(`^\\s{0,${indent.length}}`);
  let end = begin + 1;
  while (end < lines.length && !lines[end]?.trimStart().startsWith(fence)) end++;
  const text = lines.slice(begin + 1, end).map((line) => line.replace(own, "")).join("\n");
  const after = Math.min(end + 1, lines.length);
  return { end: after, block: { source: lines.slice(begin, after).join("\n"),
    make: () => makeCode(text, language) } };
}

/** @param {readonly string[]} lines @param {number} begin @returns {Taken} */
function takeQuote(lines, begin) {
  let end = begin;
  while (end < lines.length && QUOTE.test(lines[end] ?? "")) end++;
  const own = lines.slice(begin, end);
  const inner = own.map((line) => line.replace(QUOTE, "")).join("\n");
  return { end, block: { source: own.join("\n"),
    make: () => make("blockquote", { dir: "auto" }, ...makeBlocks(inner)) } };
}

/** @param {string} line */
const cellsOf = (line) => line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "")
  .split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));

/** @param {readonly string[]} lines @param {number} begin @returns {Taken} */
function takeTable(lines, begin) {
  let end = begin + 2;
  while (end < lines.length && lines[end]?.includes("|")) end++;
  const [head = [], marks = [], ...rows] = lines.slice(begin, end).map(cellsOf);
  /** @param {"th" | "td"} tag @param {string[]} cells */
  const row = (tag, cells) => make("tr", {}, ...head.map((_, i) => {
    const mark = marks[i] ?? "";
    const side = !mark.endsWith(":") ? "" : mark.startsWith(":") ? "center" : "end";
    return make(tag, { ...(side && { class: side }), ...(tag === "th" && { scope: "col" }) },
      ...inline(cells[i] ?? ""));
  }));
  return { end, block: { source: lines.slice(begin, end).join("\n"),
    make: () => make("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" },
      make("table", { dir: "auto" }, make("thead", {}, row("th", head)),
        make("tbody", {}, ...rows.map((cells) => row("td", cells))))) } };
}

/**
 * Items, and what is indented below one belongs to it, further lists as well.
 * @param {readonly string[]} lines @param {number} begin @returns {Taken}
 */
function takeList(lines, begin) {
  const [, indent = "", mark = ""] = ITEM.exec(lines[begin] ?? "") ?? [];
  const isCounted = /\d/.test(mark), base = indent.length;
  /** @type {string[][]} */
  const items = [];
  let end = begin;
  for (; end < lines.length; end++) {
    const line = lines[end] ?? "";
    const item = ITEM.exec(line), deep = line.search(/\S/);
    if (deep < 0) {
      const next = lines.slice(end + 1).find((other) => other.trim() !== "") ?? "";
      const nextItem = ITEM.exec(next);
      const goesOn = nextItem ? /\d/.test(nextItem[2] ?? "") === isCounted || next.search(/\S/) > base
        : next.search(/\S/) > base;
      if (!goesOn) break;
      items.at(-1)?.push("");
    } else if (item && deep <= base + 1) {
      if (/\d/.test(item[2] ?? "") !== isCounted || deep < base) break;
      items.push([item[4] ?? ""]);
    } else if (deep > base) {
      items.at(-1)?.push(line.slice(Math.min(deep, base + mark.length + 1)));
    } else break;
  }
  const all = items.map((own) => own.join("\n"));
  return { end, block: { source: lines.slice(begin, end).join("\n"), make: () => {
    const made = all.map((text) => make("li", {}, ...makeItem(text)));
    return isCounted ? make("ol", { start: String(parseInt(mark, 10)), dir: "auto" }, ...made)
      : make("ul", { dir: "auto" }, ...made);
  } } };
}

/** Its first paragraph stands beside the mark. @param {string} text */
function makeItem(text) {
  const [first, ...others] = makeBlocks(text);
  if (first?.tagName !== "P") return first ? [first, ...others] : [];
  return [...first.childNodes, ...others];
}

/** @param {readonly string[]} lines @param {number} begin @returns {Taken} */
function takeParagraph(lines, begin) {
  let end = begin + 1;
  while (end < lines.length && lines[end]?.trim() !== "" && !beginsBlock(lines, end)) end++;
  const source = lines.slice(begin, end).join("\n");
  return { end, block: { source, make: () => make("p", {}, ...inline(source)) } };
}

/** @param {string} text */
function splitBlocks(text) {
  const lines = text.split("\n");
  /** @type {Block[]} */
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    if (lines[at]?.trim() === "") {
      at++;
      continue;
    }
    const { block, end } = takeBlock(lines, at);
    blocks.push(block);
    at = end;
  }
  return blocks;
}

/** Blocks in blocks, of which a model that goes in circles writes thousands. */
const MOST_DEPTH = 50;
let depth = 0;

/** @param {string} text @returns {HTMLElement[]} */
function makeBlocks(text) {
  if (depth === MOST_DEPTH) return [make("p", {}, text)];
  depth++;
  try {
    return splitBlocks(text).map((block) => block.make());
  } finally {
    depth--;
  }
}

/** Text with whole pieces of code in it. */
const RUN = "(?:`[^`\\n]*`|[^`\\n]|`(?![^`\\n]*`))+?";

const INLINE = new RegExp([
  "\\\\([\\\\`*_{}\\[\\]()#+.!|~>-])", "(`+)(.+?)\\2(?!`)", `\\*\\*(?=\\S)(${RUN})\\*\\*(?!\\*)`,
  `\\*(?=[^\\s*])(${RUN})(?<![\\s*])\\*(?!\\*)`, "(?<!\\w)__(?=\\S)(.+?)__(?!\\w)", "(?<!\\w)_(?=[^\\s_])([^_]+?)_(?!\\w)",
  "~~(?=\\S)(.+?)~~",
  "\\[([^\\[\\]\\n]+)\\]"
    + "\\(((?:https?:\\/\\/|mailto:)(?:[^\\s()]|\\([^\\s()]*\\))+)(?:\\s+\"[^\"]*\")?\\)",
  "(https?:\\/\\/[^\\s<>()]*[^\\s<>().,;:!?'\"])",
].join("|"), "g");

/** Of addresses that the regular expression lets through. @param {string} text @param {string} address */
function makeLink(text, address) {
  return make("a", { href: address, target: "_blank", rel: "noopener noreferrer" },
    ...(text === address ? [text] : inline(text)));
}

/** @param {string} text @returns {(Node | string)[]} */
function inline(text) {
  /** @type {(Node | string)[]} */
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(text.slice(at, found.index));
    const [all, escaped, , code, strong1, em1, strong2, em2, gone, title, target, bare] = found;
    const strong = strong1 ?? strong2, em = em1 ?? em2;
    if (escaped !== undefined) parts.push(escaped);
    else if (code !== undefined) parts.push(make("code", {}, code.trim() || code));
    else if (strong !== undefined) parts.push(make("strong", {}, ...inline(strong)));
    else if (em !== undefined) parts.push(make("em", {}, ...inline(em)));
    else if (gone !== undefined) parts.push(make("s", {}, ...inline(gone)));
    else if (title !== undefined) parts.push(makeLink(title, target ?? ""));
    else parts.push(makeLink(bare ?? "", bare ?? ""));
    at = (found.index ?? 0) + all.length;
  }
  parts.push(text.slice(at));
  return parts;
}

/** @param {string} text @param {string} language */
function makeCode(text, language) {
  const copy = make("button", { type: "button", class: "text-button", "aria-label": "Copy code",
    onclick: () => void copyText(copy, text) }, makeIcon("copy"), "Copy");
  return make("figure", { class: "code" },
    make("figcaption", {}, make("span", {}, language || "code"), copy),
    make("pre", { tabindex: "0" }, make("code", {}, ...highlight(text, language))));
}

/** @type {WeakMap<Element, string>} */
const sources = new WeakMap();

/**
 * Makes the text the element's content; what of it is there already stays as it is.
 * @param {HTMLElement} element @param {string} text
 */
export function renderMarkdown(element, text) {
  const blocks = splitBlocks(text);
  blocks.forEach((block, i) => {
    const old = element.children[i];
    if (old && sources.get(old) === block.source) return;
    const made = block.make();
    sources.set(made, block.source);
    if (old) old.replaceWith(made);
    else element.append(made);
  });
  while (element.children.length > blocks.length) element.lastElementChild?.remove();
}
