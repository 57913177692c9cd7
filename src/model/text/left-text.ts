import type { BoundName } from "../bounds.ts";

const WORDS: Readonly<Partial<Record<BoundName, string>>> = {
  maxActiveSchedules: "schedules",
  maxSubmitsPerHour: "submits this hour",
  maxOpenTasks: "open tasks",
  maxDescendants: "tasks below this root task",
};

/** One line with what the bounds of the caller still allow; none if there are no bounds. */
export function leftText(left: Readonly<Partial<Record<BoundName, number>>> | undefined): string[] {
  const parts = Object.entries(left ?? {}).map(([name, count]) => `${count} ${WORDS[name as BoundName]}`);
  return parts.length === 0 ? [] : [`Left for you: ${parts.join(", ")}.`];
}
