import { isRunByNpm } from "../../config/process-environment.ts";

/** How the user starts a command of Rota, to paste: from a checkout by npm, else by its name. */
export function rotaCommand(): string {
  return isRunByNpm() ? "npm run --silent rota --" : "rota";
}
