// What the server of tests has in its files; browsers make the same to compare.

function makeBytes(size, seed) {
  const words = new Uint32Array(Math.ceil(size / 4));
  let state = seed * 2654435761 >>> 0 || 1;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  const bytes = new Uint8Array(words.buffer, 0, size);
  bytes.set(new TextEncoder().encode("GGUF").subarray(0, size));
  return bytes;
}

const made = new Map(); // by size and seed, for most are wanted many times

/** The content of a file: "GGUF", then bytes that are never the same twice. */
export function fileBytes(size, seed = 1) {
  const key = `${size} ${seed}`;
  if (!made.has(key)) made.set(key, makeBytes(size, seed));
  return made.get(key).slice();
}
