import { type History, markOf } from "../history.ts";

/** What was submitted once is there once, however often its submitter had to ask. */
export function acceptedOnce({ tasks }: History): string[] {
  const findings: string[] = [];
  const seen = new Map<string, string>();
  for (const task of tasks.values()) {
    const { marker } = markOf(task);
    // Admission refuses each try by itself.
    if (marker === undefined || task.state === "rejected") continue;
    const other = seen.get(marker);
    if (other !== undefined) findings.push(`${marker} was accepted twice, as ${other} and as ${task.taskId}`);
    seen.set(marker, task.taskId);
  }
  return findings;
}
