import { describe, expect, test } from "vitest";
import type { Run, ScheduledTask, UpcomingMoment } from "../../../../src/client/index.ts";
import { type Entry, place, weekOf } from "./week.ts";

const FIRST = Date.UTC(2026, 10, 12);
const seconds = (text: string) => Date.parse(text) / 1_000;

const SCHEDULES = [
  { id: 1, name: "Briefing", tz: "Europe/Berlin", schedule_phrase: "every day at 06:00" },
  { id: 2, name: "Inbox", tz: "UTC", schedule_phrase: "every 5 minutes" },
] as ScheduledTask[];

function run(id: number, task_id: number, due: string, status: Run["status"] = "succeeded"): Run {
  return { id, task_id, due_at: seconds(due), status, queue_task_id: `tsk_${id}`, moments: 1 } as Run;
}

function entry(key: string, hour: number): Entry {
  return { key, scheduleId: 1, name: key, status: "due", clock: "", hour, href: "", moments: 1 };
}

describe("a week", () => {
  const parts = { first: FIRST, schedules: SCHEDULES, upcoming: [] as UpcomingMoment[] };

  test("has each run on its day, in the zone that is asked for", () => {
    const runs = [run(1, 1, "2026-11-12T23:30:00Z", "failed"), run(2, 1, "2026-11-19T05:00:00Z")];
    const own = weekOf({ ...parts, runs, zoneOf: (zone) => zone });
    expect(own.days.map((day) => day.length)).toEqual([0, 1, 0, 0, 0, 0, 0]);
    expect(own.days[1]?.[0]).toMatchObject({ name: "Briefing", clock: "00:30", hour: 0.5, status: "failed" });
    const utc = weekOf({ ...parts, runs, zoneOf: () => "UTC" });
    expect(utc.days[0]?.[0]).toMatchObject({ clock: "23:30", href: "/tasks/tsk_1" });
  });

  test("has coming due times, also of schedules that it does not know yet", () => {
    const upcoming = [
      { schedule_id: 9, name: "New", agent: "a", at: seconds("2026-11-18T10:15:00Z"), zone: "UTC" },
    ];
    const { days } = weekOf({ ...parts, runs: [], upcoming, zoneOf: (zone) => zone });
    expect(days[6]?.[0]).toMatchObject({ name: "New", status: "due", hour: 10.25, href: "/schedules/9" });
  });

  test("has one line for a schedule that is due often", () => {
    const runs = Array.from({ length: 50 }, (_each, index) =>
      run(index, 2, new Date(FIRST + index * 300_000).toISOString(), index < 3 ? "missed" : "succeeded"),
    );
    const { bands, days } = weekOf({ ...parts, runs, zoneOf: (zone) => zone });
    expect(bands).toEqual([{ scheduleId: 2, name: "Inbox", phrase: "every 5 minutes", runs: 50, failed: 3 }]);
    expect(days.flat()).toEqual([]);
  });
});

describe("the entries of a day", () => {
  test("move down where they would overlap", () => {
    const placed = place([entry("b", 2.5), entry("a", 2.25), entry("c", 9)]);
    expect(placed.map(({ key, y }) => [key, y])).toEqual([
      ["a", 2.25],
      ["b", 3.29],
      ["c", 9],
    ]);
  });

  test("are counted where there is no room, and never leave the day", () => {
    const placed = place(Array.from({ length: 40 }, (_each, index) => entry(String(index), 22.9)));
    expect(placed.length + placed.reduce((sum, { more }) => sum + more, 0)).toBe(40);
    expect(Math.max(...placed.map(({ y }) => y))).toBeLessThanOrEqual(23.5);
    expect(
      place(Array.from({ length: 9 }, (_each, index) => entry(String(index), 6))).map(({ more }) => more),
    ).toEqual([0, 0, 6]);
  });

  test("show a failure rather than others where there is room for one only", () => {
    const failed: Entry = { ...entry("failed", 23.2), status: "failed" };
    const [shown, ...rest] = place([entry("a", 23.1), failed, entry("b", 23.3)]);
    expect(rest).toEqual([]);
    expect(shown).toMatchObject({ key: "failed", y: 23, more: 2 });
  });
});
