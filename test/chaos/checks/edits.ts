import type { Edit, History } from "../history.ts";
import { isDueIn, timetables } from "./due-times.ts";

/**
 * What was done to a schedule holds: it has rows only for moments at which it was due as it was last made, changed, paused or
 * resumed, and none before its time; and one that was deleted stays away.
 */
export function edits(history: History): string[] {
  const findings: string[] = [];
  for (const [id, { times, rows, strays, deleted }] of timetables(history)) {
    if (deleted) continue;
    for (const { started_at, due_at } of rows)
      if (started_at !== 0 && started_at < due_at)
        findings.push(`schedule ${id} fired for ${due_at} at ${started_at}`);
    const undue = rows.filter(({ due_at }) => !times.some((time) => isDueIn(time, due_at)));
    if (undue.length > strays)
      findings.push(
        ...undue.map(({ due_at }) => `schedule ${id} has a row for ${due_at}, when it was not due`),
      );
  }
  for (const edit of history.edits)
    if (edit.deed === "deleted")
      findings.push(
        ...leftOf(edit, history).map((said) => `schedule ${edit.scheduleId} was deleted, and ${said}`),
      );
  return findings;
}

function leftOf(
  { scheduleId, before }: Extract<Edit, { deed: "deleted" }>,
  { schedules, runs, events }: History,
): string[] {
  const findings: string[] = [];
  if (schedules.includes(scheduleId)) findings.push("is there");
  for (const { id, task_id } of runs) if (task_id === scheduleId) findings.push(`has run ${id}`);
  const gone = events.findIndex(({ type, taskId }) => type === "task.created" && taskId === before);
  for (const { type, taskId, scheduleId: of } of gone === -1 ? [] : events.slice(gone))
    if (type === "task.created" && of === scheduleId) findings.push(`fired ${taskId} after that`);
  return findings;
}
