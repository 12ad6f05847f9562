/** Light or dark: as the system has it, or as the visitor chose. Runs before the page is drawn. */

/** @typedef {"light" | "dark"} Theme */

const KEY = "wick-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

/** @returns {Theme | undefined} */
function stored() {
  try {
    const theme = localStorage.getItem(KEY);
    return theme === "light" || theme === "dark" ? theme : undefined;
  } catch {
    return undefined; // a browser that keeps nothing
  }
}

/** @returns {Theme} */
const systemTheme = () => (system.matches ? "dark" : "light");
let chosen = stored();

function show() {
  const theme = chosen ?? systemTheme();
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme-button");
  const label = theme === "dark" ? "Light appearance" : "Dark appearance";
  button?.setAttribute("aria-label", label);
  button?.setAttribute("title", label);
}

/** The other one; that of the system is not a choice. */
function toggle() {
  /** @type {Theme} */
  const next = (chosen ?? systemTheme()) === "dark" ? "light" : "dark";
  chosen = next === systemTheme() ? undefined : next;
  try {
    if (chosen) localStorage.setItem(KEY, chosen);
    else localStorage.removeItem(KEY);
  } catch {
    // It is then kept until the page is left.
  }
  show();
}

show();
system.addEventListener("change", show);
document.addEventListener("DOMContentLoaded", () => {
  show();
  document.getElementById("theme-button")?.addEventListener("click", toggle);
});
