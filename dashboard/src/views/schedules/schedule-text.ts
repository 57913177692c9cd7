import type { ScheduledTask } from "../../../../src/client/index.ts";
import type { Glyph } from "../../parts/state.tsx";

/** The name of the schedule, or the beginning of its message. */
export function titleOfSchedule({ id, name, message, instruction, payload }: ScheduledTask): string {
  const text = name ?? message ?? instruction ?? (payload === undefined ? "" : JSON.stringify(payload));
  return text.trim().split("\n")[0] || `Schedule ${id}`;
}

/** The message of the schedule, if it has a name besides. */
export function workText({ name, message, instruction, payload }: ScheduledTask): string | undefined {
  if (name === null) return undefined;
  return message ?? instruction ?? (payload === undefined ? undefined : JSON.stringify(payload));
}

/** Glyph and word of the status. */
export function statusOf({ status, consecutive_failures }: ScheduledTask): readonly [Glyph, string] {
  switch (status) {
    case "active":
      return consecutive_failures > 0 ? ["failed", "Active, failing"] : ["delayed", "Active"];
    case "paused":
      return ["paused", "Paused"];
    case "completed":
      return ["done", "Completed"];
    case "failed":
      return ["failed", "Failed"];
  }
}

/** Sorts schedules by their next due time, then those without one by name. */
export function byNextDue(schedules: readonly ScheduledTask[]): ScheduledTask[] {
  const due = (each: ScheduledTask) =>
    each.status === "active" && each.next_fire_at > 0 ? each.next_fire_at : Number.POSITIVE_INFINITY;
  return schedules.toSorted((one, other) => {
    const [first, second] = [due(one), due(other)];
    return first === second ? titleOfSchedule(one).localeCompare(titleOfSchedule(other)) : first - second;
  });
}
