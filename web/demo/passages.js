/** Texts as passages, and those of them that are nearest to a question. */

/**
 * Characters of a passage, and of one with letters that are not Latin: encoders read 512 tokens, and
 * all-MiniLM has one for four characters of English, one for each of Chinese, three for two of Korean.
 */
const MOST = 800, MOST_OTHERS = 300;
const OTHERS = /(?!\p{Script=Latin})\p{Letter}/u;
const SENTENCE = /[.!?]["')\]]*\s|[。！？][”」』）]*/g;

/** A long paragraph, cut after sentences where it has them. @param {string} text @returns {string[]} */
function cut(text) {
  const parts = [];
  for (let rest = text; ;) {
    const most = OTHERS.test(rest.slice(0, MOST)) ? MOST_OTHERS : MOST;
    if (rest.length <= most) return [...parts, rest];
    const head = rest.slice(0, most);
    const end = [...head.matchAll(SENTENCE)].at(-1) ?? [...head.matchAll(/\s/g)].at(-1);
    const at = end ? end.index + end[0].length : most;
    parts.push(rest.slice(0, at).trim());
    rest = rest.slice(at).trim();
  }
}

/** The paragraphs of a text, in order, none of them twice. @param {string} text */
export const passagesOf = (text) => [...new Set(text.split(/\n\s*\n/).map((part) => part.trim())
  .filter((part) => part !== "").flatMap(cut))];

/** @typedef {ArrayLike<number>} Vector */

/** The cosine of the angle between two vectors; 0 for a vector of zeros. @param {Vector} a @param {Vector} b */
export function cosine(a, b) {
  let dot = 0, aa = 0, bb = 0;
  for (let i = 0; i < a.length; i++) {
    const x = /** @type {number} */ (a[i]), y = /** @type {number} */ (b[i]);
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa > 0 && bb > 0 ? dot / Math.sqrt(aa * bb) : 0;
}

/**
 * The n passages nearest to a question, the nearest first.
 * @param {Vector} question @param {string[]} passages @param {Vector[]} vectors one for each
 */
export const nearest = (question, passages, vectors, n = 5) => passages
  .map((text, i) => ({ text, score: cosine(question, /** @type {Vector} */ (vectors[i])) }))
  .sort((a, b) => b.score - a.score).slice(0, n);
