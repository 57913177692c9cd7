import { addEvent } from "../log/add-event.ts";
import type { OracleState, OracleTask } from "../state.ts";

/** The holder of an assigned attempt has begun with it. Left out: when it was claimed. */
export function beginAttempt(state: OracleState, task: OracleTask, startedAt?: number): void {
  const attempt = task.attempts.at(-1);
  if (attempt === undefined) throw new Error("An assigned task has an attempt.");
  if (startedAt !== undefined)
    attempt.startedAt = Math.max(Math.min(startedAt, state.clock.now()), attempt.startedAt);
  task.state = "running";
  addStart(state, task);
}

export function addStart(state: OracleState, task: OracleTask): number {
  const { number, startedAt } = task.attempts.at(-1) ?? { number: 1, startedAt: state.clock.now() };
  task.startedAt ??= startedAt;
  return addEvent(state, "task.started", task, { attempt: number });
}
