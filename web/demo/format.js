/** Figures as people read them. */

const UNITS = ["bytes", "KB", "MB", "GB", "TB"];

/**
 * Decimal units, as downloads are counted: "98.4 MB".
 * @param {number} bytes
 */
export function formatBytes(bytes) {
  let value = bytes, unit = 0;
  for (; value >= 999.5 && unit < UNITS.length - 1; unit++) value /= 1000;
  const digits = unit === 0 || value >= 99.95 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

/**
 * "8 s", "2 min", "1 h 10 min".
 * @param {number} seconds
 */
export function formatSeconds(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/**
 * Of something that takes milliseconds to seconds: "48 ms", "1.24 s".
 * @param {number} milliseconds
 */
export function formatTime(milliseconds) {
  if (milliseconds < 999.5) return `${Math.round(milliseconds)} ms`;
  return `${(milliseconds / 1000).toFixed(milliseconds < 9995 ? 2 : 1)} s`;
}

/**
 * Three digits: "0.84", "12.3", "1,240".
 * @param {number} value
 */
export function formatRate(value) {
  if (value >= 99.95) return Math.round(value).toLocaleString("en");
  return value.toFixed(value >= 9.995 ? 1 : 2);
}

/** @param {number} n */
export const formatCount = (n) => n.toLocaleString("en");

/**
 * @param {string} part
 */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a percent sign of its own
  }
}

/**
 * The file's name in an address, without its ending.
 * @param {string} url
 */
export function nameOfUrl(url) {
  const path = new URL(url, location.href).pathname;
  const last = path.slice(path.lastIndexOf("/") + 1);
  return decoded(last).replace(/\.gguf$/i, "") || url;
}

/**
 * An address at its beginning stays as it is.
 * @param {string} text
 */
export const asSentence = (text) =>
  (/^\w+:\/\//.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1))
  + (/[.!?]$/.test(text) ? "" : ".");
