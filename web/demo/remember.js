/** Texts that the browser keeps for this page. */

/** @param {string} key @param {string} value */
export function remember(key, value, storage = localStorage) {
  try {
    storage.setItem(key, value);
    return true;
  } catch {
    return false; // a browser that keeps nothing, or has no room
  }
}

/** Empty: there is none. @param {string} key */
export function remembered(key, storage = localStorage) {
  try {
    return storage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

/**
 * What was remembered as JSON.
 * @template T
 * @param {string} key @param {T} otherwise
 * @returns {T}
 */
export function rememberedValue(key, otherwise) {
  try {
    return JSON.parse(remembered(key) || "null") ?? otherwise;
  } catch {
    return otherwise;
  }
}
