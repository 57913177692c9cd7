const ITEM = "rota.theme";

/** Applies the theme that was chosen on this device. Without a choice the system decides. */
export function applyTheme(): void {
  try {
    const kept = localStorage.getItem(ITEM);
    if (kept === "light" || kept === "dark") document.documentElement.dataset["theme"] = kept;
  } catch {
    // Storage is disabled in this browser: the system decides.
  }
}

export function switchTheme(): void {
  const root = document.documentElement;
  const isDark = (root.dataset["theme"] ?? (prefersDark() ? "dark" : "light")) === "dark";
  root.dataset["theme"] = isDark ? "light" : "dark";
  try {
    localStorage.setItem(ITEM, root.dataset["theme"]);
  } catch {
    // The choice lasts as long as the page.
  }
}

function prefersDark(): boolean {
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
