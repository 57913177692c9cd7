import { RotaError } from "../model/errors.ts";
import { createProgram } from "./program.ts";
import { reportError } from "./terminal/report-error.ts";

// The reader of stdout has closed it, as `| head` does. That is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

const args = process.argv.slice(2);
try {
  await (await createProgram(args)).parseAsync(args, { from: "user" });
} catch (error) {
  if (args[0] === "serve" && error instanceof RotaError) {
    process.stderr.write(`Rota cannot start: ${error.message}\n`);
    process.exitCode = 1;
  } else {
    process.exitCode = reportError(error, { json: args.includes("--json") });
  }
}
