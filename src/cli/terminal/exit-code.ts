import { ConnectionError } from "../../client/index.ts";
import { RotaError } from "../../model/errors.ts";
import { UsageError } from "./usage-error.ts";

/** The exit codes of all commands, as `rota --help` and docs/cli.md list them. */
export const EXIT_CODES = {
  0: "It worked; with --wait, the task is done.",
  1: "The task failed, was cancelled or was rejected; the doctor found something; a worker does not keep the protocol; Rota cannot start, or its configuration is invalid.",
  2: "The command or its arguments are wrong, or the server refused the request.",
  3: "There is no such task, session, schedule, run, lane, agent, worker, delivery, tenant or key.",
  4: "The server cannot be reached, or cannot do it now: try again later.",
  5: "The task had not ended when the time for --wait was up.",
  70: "An internal error of Rota. Please report it.",
  130: "Ended by Ctrl-C.",
  143: "Ended by SIGTERM.",
} as const;

export type ExitCode = keyof typeof EXIT_CODES;

/** The exit code after an error. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof UsageError) return 2;
  if (error instanceof ConnectionError) return 4;
  if (!(error instanceof RotaError)) return 70;
  // A task that does not fit into the queue is stored as rejected.
  if (error.code === "queue_full") return 1;
  if (error.status === 404) return 3;
  return error.retryable || error.status >= 500 ? 4 : 2;
}
