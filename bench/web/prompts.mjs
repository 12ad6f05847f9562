// What the engines read: the same texts for both, so the same tokens.

export const SHORT_PROMPT =
  "The old lighthouse keeper climbed the stairs every evening to light the lamp. One night,";

const WORDS = ("the harbour was quiet and ships lay along wall while gulls turned over grey water "
  + "a man with lantern walked slowly past nets counting boats one after another until light of "
  + "morning came up behind hills").split(" ");

/** So many words, most of which are one token. */
export const longPrompt = (n) =>
  Array.from({ length: n }, (_, i) => WORDS[(i * i + 7 * i) % WORDS.length]).join(" ");
