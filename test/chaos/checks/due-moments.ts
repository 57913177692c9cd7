import type { Run } from "../../../src/interface/schedules.ts";
import type { Task } from "../../../src/model/task.ts";
import type { History } from "../history.ts";

/** Schedules of a run are due every second. */
const EVERY_SEC = 1;

/** Every due moment has left one row, from the first to the last; and what it became is what its task became. */
export function dueMoments({ runs, tasks, schedules, fickle = [] }: History): string[] {
  const findings: string[] = [];
  for (const [id, rows] of Map.groupBy(runs, (run) => run.task_id))
    if (!fickle.includes(id)) findings.push(...ofSchedule(id, rows));
  const runOf = new Map<string, Run>();
  for (const run of runs) {
    if (run.status === "running") findings.push(`run ${run.id} has not ended`);
    if (run.queue_task_id === null) continue;
    const other = runOf.get(run.queue_task_id);
    if (other !== undefined)
      findings.push(`${run.queue_task_id} is the task of run ${other.id} and of run ${run.id}`);
    runOf.set(run.queue_task_id, run);
    const finding = unlike(run, tasks.get(run.queue_task_id));
    if (finding !== null) findings.push(finding);
  }
  const isGone = (id: number) => fickle.includes(id) && !schedules.includes(id);
  for (const { taskId, scheduleId } of tasks.values())
    if (scheduleId !== undefined && !runOf.has(taskId) && !isGone(scheduleId))
      findings.push(`${taskId} is of schedule ${scheduleId} and of none of its runs`);
  return findings;
}

function ofSchedule(id: number, rows: readonly Run[]): string[] {
  const findings: string[] = [];
  // A row that stands for several moments shows the last of them.
  const spans = rows.map(({ due_at, moments }) => ({ from: due_at - (moments - 1) * EVERY_SEC, to: due_at }));
  let expected: number | null = null;
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from || a.to - b.to)) {
    if (expected !== null && from < expected)
      findings.push(`schedule ${id}: the moment ${from} has two rows`);
    if (expected !== null && from > expected)
      findings.push(`schedule ${id}: no row for the moments from ${expected} to before ${from}`);
    expected = Math.max(expected ?? 0, to + EVERY_SEC);
  }
  return findings;
}

function unlike(run: Run, task: Task | undefined): string | null {
  if (task === undefined) return `run ${run.id} became ${run.queue_task_id}, which is not there`;
  if (task.scheduleId !== run.task_id)
    return `run ${run.id} became ${task.taskId}, which is of another schedule`;
  const status = task.state === "done" ? "succeeded" : "failed";
  return run.status === status ? null : `run ${run.id} is ${run.status}, and its task ${task.state}`;
}
