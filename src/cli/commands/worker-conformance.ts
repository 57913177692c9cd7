import { Command } from "commander";
import { processEnvironment } from "../../config/process-environment.ts";
import { BEHAVIOURS } from "../../worker-conformance/behaviours.ts";
import { type CheckedBehaviour, runConformance } from "../../worker-conformance/run-conformance.ts";
import { interruption } from "../terminal/interruption.ts";
import { print, printJson, printNotice } from "../terminal/print.ts";
import { UsageError } from "../terminal/usage-error.ts";
import { conformanceLines } from "../views/conformance-lines.ts";
import { ProgressLine } from "../views/progress-line.ts";

interface ConformanceFlags {
  readonly only?: string;
  readonly atOnce: string;
  readonly json?: boolean;
}

/** `rota worker-conformance -- CMD`: holds a worker in any language to the protocol. Needs no server and no database. */
export function workerConformanceCommand(): Command {
  return new Command("worker-conformance")
    .description(
      "Check that a worker in any language keeps the worker protocol, with a test server of its own.",
    )
    .usage("[options] -- <command...>")
    .argument("<command...>", "starts the worker; it gets ROTA_URL, ROTA_KEY and ROTA_AGENTS")
    .option("--only <numbers>", "check only these behaviours: 3,5")
    .option("--at-once <number>", "how many workers run at once, each with a test server of its own", "4")
    .option("--json", "print JSON")
    .passThroughOptions()
    .addHelpText(
      "after",
      "\nExample:\n  rota worker-conformance -- ./my-worker\nThe page docs/worker-conformance.md says what the program must do.",
    )
    .action(check);
}

async function check(command: readonly string[], flags: ConformanceFlags): Promise<void> {
  const { signal, exitCode } = interruption();
  const progress = new ProgressLine(process.stderr);
  const only = flags.only === undefined ? undefined : numbersIn(flags.only);
  let checked = 0;
  const onChecked = ({ number }: CheckedBehaviour): void => {
    checked += 1;
    if (process.stderr.isTTY) progress.show(`checked behaviour ${number} (${checked} in all)`);
  };
  const results = await runConformance({
    command,
    environment: processEnvironment(),
    atOnce: atOnceOf(flags.atOnce),
    onChecked,
    signal,
    ...(only === undefined ? {} : { only }),
  }).finally(() => progress.clear());
  if (signal.aborted) {
    printNotice("Interrupted: not every behaviour was checked.");
    process.exitCode = exitCode();
    return;
  }
  if (flags.json) printJson({ ok: results.every(({ ok }) => ok), behaviours: results });
  else for (const line of conformanceLines(results)) print(line);
  if (results.some(({ ok }) => !ok)) process.exitCode = 1;
}

function numbersIn(text: string): number[] {
  const numbers = text.split(",").map(Number);
  const known = BEHAVIOURS.map(({ number }) => number);
  const unknown = numbers.find((number) => !known.includes(number));
  if (unknown === undefined) return numbers;
  throw new UsageError(`--only must be numbers from 1 to ${known.length}, like 3,5, not ${text}`);
}

function atOnceOf(text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1 && number <= 50) return number;
  throw new UsageError(`--at-once must be a number from 1 to 50, not ${text}`);
}
