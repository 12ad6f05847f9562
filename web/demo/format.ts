/** Figures as people read them. */

const UNITS = ["bytes", "KB", "MB", "GB", "TB"];

/** Decimal units, as downloads are counted: "98.4 MB". */
export function formatBytes(bytes: number): string {
  let value = bytes, unit = 0;
  for (; value >= 999.5 && unit < UNITS.length - 1; unit++) value /= 1000;
  const digits = unit === 0 || value >= 99.95 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** "8 s", "2 min", "1 h 10 min". */
export function formatSeconds(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Of something that takes milliseconds to seconds: "48 ms", "1.24 s". */
export function formatTime(milliseconds: number): string {
  if (milliseconds < 999.5) return `${Math.round(milliseconds)} ms`;
  return `${(milliseconds / 1000).toFixed(milliseconds < 9995 ? 2 : 1)} s`;
}

/** Three digits: "0.84", "12.3", "1,240". */
export function formatRate(value: number): string {
  if (value >= 99.95) return Math.round(value).toLocaleString("en");
  return value.toFixed(value >= 9.995 ? 1 : 2);
}

export const formatCount = (n: number): string => n.toLocaleString("en");

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a percent sign of its own
  }
}

/** The file's name in an address, without its ending. */
export function nameOfUrl(url: string): string {
  const path = new URL(url, location.href).pathname;
  const last = path.slice(path.lastIndexOf("/") + 1);
  return decoded(last).replace(/\.gguf$/i, "") || url;
}

/** An address at its beginning stays as it is. */
export const asSentence = (text: string): string =>
  (/^\w+:\/\//.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1))
  + (/[.!?]$/.test(text) ? "" : ".");
