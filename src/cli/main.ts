import { Command } from "commander";
import { RotaError } from "../model/errors.ts";
import { VERSION } from "../version.ts";
import { serveCommand } from "./serve.ts";

const program = new Command("rota")
  .description("The scheduler for AI agents: decides which agent works on what, and when.")
  .version(VERSION)
  .showHelpAfterError("Run `rota --help` or `rota serve --help` to see what there is.")
  .addCommand(serveCommand());

try {
  await program.parseAsync();
} catch (error) {
  // What Rota says itself is a sentence for people; anything else is a fault of ours and keeps its stack.
  if (!(error instanceof RotaError)) throw error;
  process.stderr.write(`Rota cannot start: ${error.message}\n`);
  process.exitCode = 1;
}
