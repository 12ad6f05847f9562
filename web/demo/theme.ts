/** Light or dark: as the system has it, or as the visitor chose. Runs before the page is drawn. */

type Theme = "light" | "dark";

const KEY = "wick-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme | undefined {
  try {
    const theme = localStorage.getItem(KEY);
    return theme === "light" || theme === "dark" ? theme : undefined;
  } catch {
    return undefined; // a browser that keeps nothing
  }
}

const systemTheme = (): Theme => (system.matches ? "dark" : "light");
let chosen = stored();

function show(): void {
  const theme = chosen ?? systemTheme();
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme-button");
  const label = theme === "dark" ? "Light appearance" : "Dark appearance";
  button?.setAttribute("aria-label", label);
  button?.setAttribute("title", label);
}

/** The other one; that of the system is not a choice. */
function toggle(): void {
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
