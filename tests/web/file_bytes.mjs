// What the server of tests has in its files; browsers make the same to compare.

/** The content of a file: "GGUF", then bytes that are never the same twice. */
export function fileBytes(size, seed = 1) {
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
