import type { CallOptions, RotaClient } from "../../client/index.ts";
import type { RotaEvent } from "../../model/event.ts";
import type { Task } from "../../model/task.ts";
import { isTerminal } from "../../model/task-state.ts";
import { secondsFlag } from "../flags/flag-values.ts";
import { oneLine } from "../terminal/display-text.ts";
import { type Interruption, interruption } from "../terminal/interruption.ts";
import { print, printJson, printNotice } from "../terminal/print.ts";
import { eventText } from "../views/event-line.ts";
import { jsonText } from "../views/task-sheet.ts";

export interface WaitParams {
  /** The longest wait; true: no limit. */
  readonly wait: string | true;
  readonly json: boolean;
}

/**
 * Submits a task and waits for its end. Progress goes to stderr, the result to stdout, and the outcome is the exit code.
 * `submit` returns null if there is nothing to wait for.
 */
export async function submitAndWait(
  rota: RotaClient,
  submit: (
    options: CallOptions,
  ) => Promise<{ readonly taskId: string; readonly warnings?: readonly string[] } | null>,
  { wait, json }: WaitParams,
): Promise<void> {
  const timeoutMs = wait === true ? {} : { timeoutMs: secondsFlag("--wait", wait) * 1_000 };
  const interrupted = interruption();
  const over = new AbortController();
  const events = rota.events({ signal: AbortSignal.any([interrupted.signal, over.signal]) });
  let taskId: string | undefined;
  try {
    // Subscribes first, so that no event after the submit is missed.
    await events.ready;
    const submitted = await submit({ signal: interrupted.signal });
    if (submitted === null) return;
    taskId = submitted.taskId;
    printNotice(`Submitted ${taskId}.`);
    for (const warning of submitted.warnings ?? []) printNotice(`warning: ${warning}`);
    void printProgress(events, taskId);
    const task = await rota.tasks.wait(taskId, { signal: interrupted.signal, ...timeoutMs });
    if (json) printJson(task);
    else printEnd(task);
    if (task.state !== "done") process.exitCode = 1;
  } catch (error) {
    process.exitCode = codeForLeaving(error, interrupted);
    if (taskId === undefined) printNotice("Interrupted: the task may or may not have been submitted.");
    else printNotice(`The task continues: "rota task ${taskId}" shows it, "rota cancel ${taskId}" ends it.`);
  } finally {
    over.abort();
  }
}

/** The exit code if the wait ended before the task: a timeout or an interruption. Throws any other error. */
function codeForLeaving(error: unknown, interrupted: Interruption): number {
  if (interrupted.signal.aborted) return interrupted.exitCode();
  if (error instanceof DOMException && error.name === "TimeoutError") return 5;
  throw error;
}

/** Prints progress. The wait does not depend on it, so a failure of the event stream is ignored. */
async function printProgress(events: AsyncIterable<RotaEvent>, taskId: string): Promise<void> {
  try {
    for await (const event of events) {
      // `rota.tasks.wait` reports the end.
      const isProgress = event.type !== "task.created" && !isTerminal(event.state);
      if (event.taskId === taskId && isProgress) printNotice(eventText(event));
    }
  } catch {
    // Ignored: see above.
  }
}

function printEnd({ state, result, error }: Task): void {
  if (state !== "done") {
    const ended = state === "failed" ? "failed" : `was ${state}`;
    printNotice(`error: the task ${ended}${error === undefined ? "" : `: ${oneLine(error)}`}`);
  }
  const text = jsonText(result);
  if (text !== undefined) print(text);
}
