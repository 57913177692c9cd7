import { readFileSync } from "node:fs";

const { version, engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

/** Of the package this file belongs to. */
export const VERSION: string = version;

/**
 * Throws on a Node that is too old, before anything is loaded that is compiled for a newer one: SQLite's library would end
 * the process without a word.
 */
export function checkNode(running: string = process.versions.node): void {
  const needed = String(engines.node).replace(">=", "");
  const [major = 0, minor = 0] = needed.split(".").map(Number);
  const [runningMajor = 0, runningMinor = 0] = running.split(".").map(Number);
  if (runningMajor > major || (runningMajor === major && runningMinor >= minor)) return;
  throw new Error(`Rota needs Node ${needed} or newer; this is v${running}.`);
}
