import { CommanderError } from "commander";
import { ConnectionError } from "../../client/index.ts";
import { RotaError } from "../../model/errors.ts";
import { oneLine, safeJson } from "./display-text.ts";
import { type ExitCode, exitCodeOf } from "./exit-code.ts";
import { UsageError } from "./usage-error.ts";

export interface ReportOptions {
  readonly json?: boolean;
  /** The id that the error is about, if the command has several. */
  readonly about?: string;
}

/** Prints an error to stderr, as a sentence or with `--json` as JSON, and returns the exit code. */
export function reportError(error: unknown, { json = false, about }: ReportOptions = {}): ExitCode {
  // Commander has printed the reason already. For help and version it "fails" with 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const subject = about === undefined ? "" : `${oneLine(about)}: `;
  process.stderr.write(
    json ? `${safeJson(JSON.stringify(toJson(error)))}\n` : `error: ${subject}${sentenceOf(error)}\n`,
  );
  return exitCodeOf(error);
}

function sentenceOf(error: unknown): string {
  if (error instanceof ConnectionError && error.status === undefined && !error.mayHaveHappened) {
    return `${error.message}\nIs it running? Start it with "rota serve", or set its address with --url or ROTA_URL.`;
  }
  if (error instanceof RotaError && error.code === "unauthorized") {
    const which = /missing/.test(error.message) ? "it" : "another";
    return `${error.message}; give ${which} with --key or ROTA_KEY`;
  }
  // Only a worker can register again: here its id is wrong.
  if (error instanceof RotaError && error.code === "unknown_worker") {
    return `worker not found${whereListed("worker not found")}`;
  }
  if (error instanceof RotaError && error.code === "not_found") {
    return `${error.message}${whereListed(error.message)}`;
  }
  if (isExpected(error)) return error.message;
  // Anything else is a bug of ours. The stack shows where.
  return `${error instanceof Error ? error.stack : String(error)}`;
}

/** The command that lists the ids of what was not found. */
function whereListed(message: string): string {
  const [, noun] =
    /^(task|session|schedule|run|lane|agent|worker|tenant|key|delivery) not found$/.exec(message) ?? [];
  if (noun === undefined) return "";
  return `: "rota ${noun === "delivery" ? "deliveries" : `${noun}s`}" lists what there is`;
}

/** The error of the server if there is one, else one in the same form. */
function toJson(error: unknown): object {
  if (error instanceof RotaError) return error.toJSON();
  const code =
    error instanceof ConnectionError ? "unreachable" : isExpected(error) ? "usage" : "internal_error";
  return { code, error: error instanceof Error ? error.message : String(error) };
}

function isExpected(error: unknown): error is Error {
  return error instanceof RotaError || error instanceof ConnectionError || error instanceof UsageError;
}
