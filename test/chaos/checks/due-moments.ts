import type { Run } from "../../../src/interface/schedules.ts";
import type { Task } from "../../../src/model/task.ts";
import type { History } from "../history.ts";
import { deletedSchedules, isDueIn, momentsIn, type Timetable, timetables } from "./due-times.ts";

/** By default schedules are due every second. */
const EVERY_SEC = 1;

/** Every due time has one row, from the first to the last, with the same outcome as its task. */
export function dueMoments(history: History): string[] {
  const { runs, tasks, schedules, fickle = [] } = history;
  const findings: string[] = [];
  const known = timetables(history);
  for (const [id, timetable] of known)
    findings.push(...ofTimetable(timetable).map((said) => `schedule ${id}: ${said}`));
  for (const [id, rows] of Map.groupBy(runs, (run) => run.task_id))
    if (!known.has(id) && !fickle.includes(id))
      findings.push(...ofUnknown(rows).map((said) => `schedule ${id}: ${said}`));
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
  const deleted = deletedSchedules(history);
  const isGone = (id: number) => deleted.has(id) || (fickle.includes(id) && !schedules.includes(id));
  for (const { taskId, scheduleId } of tasks.values())
    if (scheduleId !== undefined && !runOf.has(taskId) && !isGone(scheduleId))
      findings.push(`${taskId} is of schedule ${scheduleId} and of none of its runs`);
  return findings;
}

/** Of those that were deleted nothing is left to look at. */
function ofTimetable({ times, rows, strays, deleted }: Timetable): string[] {
  if (deleted) return [];
  const findings: string[] = [];
  const covered = new Map<number, number>();
  const stepsOf = ({ due_at }: Run) => {
    const steps = new Set(times.filter((time) => isDueIn(time, due_at)).map(({ everySec }) => everySec));
    return steps.size === 0 ? [EVERY_SEC] : [...steps];
  };
  // Those that can stand for other moments after a change than before it come last: for what no other row stands for.
  for (const row of rows.toSorted((a, b) => stepsOf(a).length - stepsOf(b).length)) {
    const candidates = stepsOf(row).map((everySec) => momentsOf(row, everySec));
    const chosen =
      candidates.find((moments) => !moments.some((at) => covered.has(at))) ?? candidates[0] ?? [];
    for (const at of chosen) covered.set(at, (covered.get(at) ?? 0) + 1);
  }
  for (const at of times.flatMap(momentsIn))
    if (!covered.has(at)) findings.push(`no row for the moment ${at}`);
  const doubled = [...covered].filter(([, count]) => count > 1);
  if (doubled.length > strays)
    findings.push(...doubled.map(([at, count]) => `the moment ${at} has ${count} rows`));
  return findings;
}

/** A row that stands for several moments shows the last of them. */
function momentsOf({ due_at, moments }: Run, everySec: number): number[] {
  return Array.from({ length: moments }, (_, index) => due_at - index * everySec);
}

/** For a schedule whose due times no client knows: its rows are consistent in themselves. */
function ofUnknown(rows: readonly Run[]): string[] {
  const findings: string[] = [];
  const spans = rows.map(({ due_at, moments }) => ({ from: due_at - (moments - 1) * EVERY_SEC, to: due_at }));
  let expected: number | null = null;
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from || a.to - b.to)) {
    if (expected !== null && from < expected) findings.push(`the moment ${from} has two rows`);
    if (expected !== null && from > expected)
      findings.push(`no row for the moments from ${expected} to before ${from}`);
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
