import type { Run, RunStatus, ScheduledTask, UpcomingMoment } from "../../../../src/client/index.ts";
import { titleOfSchedule } from "./schedule-text.ts";
import { wallTime } from "./zoned-time.ts";

export const DAY_MS = 86_400_000;
/** A schedule that is due more often than this in a week has one line for all of them. */
const OFTEN = 35;
/** An entry needs the room of an hour. One that would be this far from its time is only counted. */
const ROOM_H = 1.04;
const SHIFT_MAX_H = 2.5;
const LAST_H = 23;

/** One past run or one coming due time. */
export interface Entry {
  readonly key: string;
  readonly scheduleId: number;
  readonly name: string;
  readonly status: RunStatus | "due";
  /** `02:30`. */
  readonly clock: string;
  /** Hours since midnight. */
  readonly hour: number;
  readonly href: string;
  /** How many due times it stands for. */
  readonly moments: number;
}

/** One that has its place: hours since midnight, and how many further ones there are at this place. */
export interface PlacedEntry extends Entry {
  readonly y: number;
  readonly more: number;
}

/** A schedule that is due often. */
export interface Band {
  readonly scheduleId: number;
  readonly name: string;
  readonly phrase: string;
  readonly runs: number;
  readonly failed: number;
}

export interface Week {
  readonly bands: readonly Band[];
  /** Seven days. */
  readonly days: readonly (readonly PlacedEntry[])[];
}

export interface WeekParts {
  /** Midnight of the first day, as if it was in UTC. */
  readonly first: number;
  readonly runs: readonly Run[];
  readonly upcoming: readonly UpcomingMoment[];
  readonly schedules: readonly ScheduledTask[];
  /** In which zone the times of a schedule are shown. */
  readonly zoneOf: (own: string) => string;
}

/** Sorts past runs and coming due times into seven days. */
export function weekOf({ first, runs, upcoming, schedules, zoneOf }: WeekParts): Week {
  const known = new Map(schedules.map((schedule) => [schedule.id, schedule]));
  const days: Entry[][] = Array.from({ length: 7 }, () => []);
  const bands = new Map<number, Band>();
  const counts = new Map<number, number>();
  const all = [...runs.map(({ task_id }) => task_id), ...upcoming.map(({ schedule_id }) => schedule_id)];
  for (const id of all) counts.set(id, (counts.get(id) ?? 0) + 1);

  const add = (at: number, zone: string, entry: Omit<Entry, "clock" | "hour">) => {
    const { dayMs, hour, clock } = wallTime(at * 1_000, zoneOf(zone));
    const day = days[Math.round((dayMs - first) / DAY_MS)];
    if (day === undefined) return;
    const { scheduleId, name, status } = entry;
    if ((counts.get(scheduleId) ?? 0) <= OFTEN) {
      day.push({ ...entry, clock, hour });
      return;
    }
    const band = bands.get(scheduleId);
    bands.set(scheduleId, {
      scheduleId,
      name,
      phrase: known.get(scheduleId)?.schedule_phrase ?? "often",
      runs: (band?.runs ?? 0) + (status === "due" ? 0 : 1),
      failed: (band?.failed ?? 0) + (hasFailed(entry) ? 1 : 0),
    });
  };
  for (const { id, task_id, due_at, status, queue_task_id, moments } of runs) {
    const schedule = known.get(task_id);
    add(due_at, schedule?.tz ?? "UTC", {
      key: `run ${id}`,
      scheduleId: task_id,
      name: schedule === undefined ? `Schedule ${task_id}` : titleOfSchedule(schedule),
      status,
      href: queue_task_id === null ? `/schedules/${task_id}` : `/tasks/${queue_task_id}`,
      moments,
    });
  }
  for (const { schedule_id, name, at, zone } of upcoming) {
    const schedule = known.get(schedule_id);
    add(at, zone, {
      key: `due ${schedule_id} ${at}`,
      scheduleId: schedule_id,
      name: schedule === undefined ? (name ?? `Schedule ${schedule_id}`) : titleOfSchedule(schedule),
      status: "due",
      href: `/schedules/${schedule_id}`,
      moments: 1,
    });
  }
  return { bands: [...bands.values()], days: days.map(place) };
}

/**
 * Entries that would overlap move down. Those that would move too far are counted at the one before. Of these a failure is shown
 * rather than another.
 */
export function place(entries: readonly Entry[]): readonly PlacedEntry[] {
  const placed: PlacedEntry[] = [];
  for (const entry of entries.toSorted((one, other) => one.hour - other.hour)) {
    const last = placed.at(-1);
    const y = Math.max(Math.min(entry.hour, LAST_H), last === undefined ? 0 : last.y + ROOM_H);
    if (last !== undefined && (y - entry.hour > SHIFT_MAX_H || y > LAST_H + 0.5)) {
      const shown = hasFailed(entry) && !hasFailed(last) ? { ...entry, y: last.y } : last;
      placed[placed.length - 1] = { ...shown, more: last.more + 1 };
    } else {
      placed.push({ ...entry, y, more: 0 });
    }
  }
  return placed;
}

function hasFailed({ status }: Pick<Entry, "status">): boolean {
  return status === "failed" || status === "missed";
}
