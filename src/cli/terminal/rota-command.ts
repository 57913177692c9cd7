import { isRunByNpm, isRunByNpx } from "../../config/process-environment.ts";

/** How the user starts a command of Rota, to paste: by npx, from a checkout by npm, else by its name. */
export function rotaCommand(): string {
  if (isRunByNpx()) return "npx rota";
  return isRunByNpm() ? "npm run --silent rota --" : "rota";
}
