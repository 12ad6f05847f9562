/**
 * The little markup that models write, as elements: paragraphs, headings, lists, blocks of code,
 * emphasis. All of a text goes in as text, so that nothing in it can be a part of the page.
 */
import { copyText, make, makeIcon } from "./dom.js";

interface Block {
  kind: "paragraph" | "heading" | "list" | "code";
  /** The Markdown that it is made from: a block whose source is the same is not made again. */
  source: string;
  lines: string[];
  /** Of a heading its level, of code its language, of a list whether it counts. */
  detail: string;
}

const FENCE = /^\s*(```+|~~~+)\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const ITEM = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)$/;

/** Lines of a kind, from the line of an index on. */
function takeBlock(lines: readonly string[], begin: number): { block: Block; end: number } {
  const first = lines[begin]!;
  const fence = FENCE.exec(first);
  if (fence) return takeCode(lines, begin, fence[1]!, fence[2]!);
  const heading = HEADING.exec(first);
  if (heading) {
    const block: Block = { kind: "heading", source: first, lines: [heading[2]!],
      detail: String(heading[1]!.length) };
    return { block, end: begin + 1 };
  }
  const item = ITEM.exec(first);
  return item ? takeList(lines, begin, item[1]) : takeParagraph(lines, begin);
}

function takeCode(lines: readonly string[], begin: number, fence: string, language: string) {
  let end = begin + 1;
  while (end < lines.length && !lines[end]!.trimStart().startsWith(fence)) end++;
  const isClosed = end < lines.length;
  const source = lines.slice(begin, end + 1).join("\n");
  const block: Block = { kind: "code", source, lines: lines.slice(begin + 1, end),
    detail: language };
  return { block, end: isClosed ? end + 1 : end };
}

/** Items; what follows an item without a mark of its own belongs to it. */
function takeList(lines: readonly string[], begin: number, number: string | undefined) {
  const items: string[] = [];
  let end = begin;
  for (; end < lines.length; end++) {
    const line = lines[end]!;
    const item = ITEM.exec(line);
    if (item && (item[1] === undefined) === (number === undefined)) items.push(item[2]!);
    else if (!item && /^\s+\S/.test(line)) items[items.length - 1] += ` ${line.trim()}`;
    else if (line.trim() !== "" || !ITEM.test(lines[end + 1] ?? "")) break;
  }
  const block: Block = { kind: "list", source: lines.slice(begin, end).join("\n"), lines: items,
    detail: number ?? "" };
  return { block, end };
}

function takeParagraph(lines: readonly string[], begin: number) {
  let end = begin + 1;
  while (end < lines.length && lines[end]!.trim() !== ""
         && ![FENCE, HEADING, ITEM].some((start) => start.test(lines[end]!))) end++;
  const own = lines.slice(begin, end);
  const block: Block = { kind: "paragraph", source: own.join("\n"), lines: own, detail: "" };
  return { block, end };
}

function splitBlocks(text: string): Block[] {
  const lines = text.split("\n");
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length;) {
    if (lines[at]!.trim() === "") {
      at++;
      continue;
    }
    const { block, end } = takeBlock(lines, at);
    blocks.push(block);
    at = end;
  }
  return blocks;
}

const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*/g;

function inline(text: string): (Node | string)[] {
  const parts: (Node | string)[] = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(text.slice(at, found.index));
    const [all, code, strong, emphasis] = found;
    if (code !== undefined) parts.push(make("code", {}, code));
    else if (strong !== undefined) parts.push(make("strong", {}, strong));
    else parts.push(make("em", {}, emphasis ?? ""));
    at = found.index + all.length;
  }
  parts.push(text.slice(at));
  return parts;
}

function makeCode({ lines, detail }: Block): HTMLElement {
  const text = lines.join("\n");
  const copy = make("button", { type: "button", class: "text-button", "aria-label": "Copy code",
    onclick: () => void copyText(copy, text) }, makeIcon("copy"), "Copy");
  return make("figure", { class: "code" },
    make("figcaption", {}, make("span", {}, detail || "code"), copy),
    make("pre", { tabindex: "0" }, make("code", {}, text)));
}

function makeBlock(block: Block): HTMLElement {
  const { kind, lines, detail } = block;
  if (kind === "code") return makeCode(block);
  if (kind === "heading") return make(Number(detail) <= 2 ? "h3" : "h4", {}, ...inline(lines[0]!));
  if (kind === "paragraph") return make("p", {}, ...inline(lines.join("\n")));
  const items = lines.map((line) => make("li", {}, ...inline(line)));
  return detail === "" ? make("ul", {}, ...items) : make("ol", { start: detail }, ...items);
}

const sources = new WeakMap<Element, string>();

/** Makes the text the element's content; what of it is there already stays as it is. */
export function renderMarkdown(element: HTMLElement, text: string): void {
  const blocks = splitBlocks(text);
  blocks.forEach((block, i) => {
    const old = element.children[i];
    const source = `${block.kind}${block.detail} ${block.source}`;
    if (old && sources.get(old) === source) return;
    const made = makeBlock(block);
    sources.set(made, source);
    if (old) old.replaceWith(made);
    else element.append(made);
  });
  while (element.children.length > blocks.length) element.lastElementChild!.remove();
}
