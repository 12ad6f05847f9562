/** Colours for code: comments, texts, numbers and the words of most languages, at a glance. */
import { make } from "./dom.js";

const WORDS = `abstract and as assert async await bool boolean break byte case catch char class const
  continue crate def default defer del do double elif else end enum except export extends extern
  false final finally float fn for foreach from func function global go goto if impl implements
  import in int interface is lambda let local long loop match mod module mut namespace new nil none
  None not null nullptr of or package pass private protected pub public raise return self short
  signed sizeof static struct super switch template then this throw throws trait True False true try
  type typedef typename typeof undefined union unless unsafe unsigned until use using var virtual
  void volatile when where while with yield select insert update delete create table join group
  order by limit values into set echo fi done esac`.split(/\s+/);

const HASH = /^(py|python|sh|bash|zsh|shell|console|rb|ruby|r|yaml|yml|toml|perl|make|makefile|cmake|dockerfile|ini|elixir|julia)$/i;
const DASH = /^(sql|lua|haskell|hs|ada|elm)$/i;
const PLAIN = /^(text|txt|plain|output|log|markdown|md)$/i;

const TEXTS = "\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'|`(?:\\\\.|[^`\\\\])*`";
const NUMBERS = "\\b(?:0[xX][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\w*";

/** @param {string} language */
function rulesOf(language) {
  const line = HASH.test(language) ? "#[^\\n]*" : DASH.test(language) ? "--[^\\n]*"
    : "\\/\\/[^\\n]*|\\/\\*[\\s\\S]*?(?:\\*\\/|$)|<!--[\\s\\S]*?(?:-->|$)|^#\\s*(?:include|define|if|ifdef|ifndef|endif|pragma)\\b[^\\n]*";
  const isSql = /^sql$/i.test(language);
  return new RegExp(`(${line})|(${TEXTS})|(${NUMBERS})|\\b(${WORDS.join("|")})\\b`,
                    isSql ? "gmi" : "gm");
}

/**
 * The text in parts, some of them coloured.
 * @param {string} text @param {string} language @returns {(Node | string)[]}
 */
export function highlight(text, language) {
  if (PLAIN.test(language) || text.length > 50_000) return [text];
  /** @type {(Node | string)[]} */
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(rulesOf(language))) {
    const kind = ["comment", "text", "number", "word"].find((_, i) => found[i + 1] !== undefined);
    parts.push(text.slice(at, found.index), make("span", { class: `c-${kind}` }, found[0]));
    at = (found.index ?? 0) + found[0].length;
  }
  return [...parts, text.slice(at)];
}
