import { Cron } from "croner";
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  changesIn,
  shownAt,
  type WallTime,
  type WatchedRule,
  wallTime,
  watch,
} from "../../test/support/watched-clock.ts";
import { type Rule, WEEKDAYS, type Weekday } from "../model/rule.ts";
import { countOnWall } from "./clock-changes.ts";
import { readCron } from "./cron.ts";
import { countMoments, lastMoment, momentsBetween, nextMoment, nextMoments } from "./moments.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Zones and years with clock changes worth a test, and two without any. */
const PLACES = [
  ["America/New_York", 2007],
  ["America/New_York", 2031],
  ["America/Santiago", 2026],
  ["America/St_Johns", 2007],
  ["Africa/Casablanca", 2024],
  ["Africa/Cairo", 2024],
  ["Asia/Gaza", 2011],
  ["Asia/Kathmandu", 2026],
  ["Australia/Lord_Howe", 2026],
  ["Europe/Berlin", 2026],
  ["Europe/Lisbon", 2024],
  ["Pacific/Apia", 2011],
  ["UTC", 2026],
] as const;

interface Scene {
  readonly tz: string;
  /** On a full minute. */
  readonly after: number;
}

/** Mostly the hours around a clock change, which is where rules differ: from well before it, or just after. */
const scenes: fc.Arbitrary<Scene> = fc
  .record({
    place: fc.constantFrom(...PLACES),
    which: fc.nat({ max: 3 }),
    start: fc.constantFrom(-20 * HOUR, -20 * HOUR, 10 * MINUTE),
  })
  .map(({ place: [tz, year], which, start }) => {
    const changes = changesIn(tz, year);
    const change = changes[which % Math.max(1, changes.length)] ?? Date.UTC(year, which, 28);
    return { tz, after: change + start };
  });

const LENGTH = 2 * DAY;

/** A field of a cron expression, and what it stands for. */
interface Field {
  readonly text: string;
  readonly has: (value: number) => boolean;
}

function field(min: number, max: number): fc.Arbitrary<Field> {
  const value = fc.integer({ min, max });
  return fc.oneof(
    fc.constant({ text: "*", has: () => true }),
    fc.integer({ min: 1, max: max - min }).map((step) => ({
      text: `*/${step}`,
      has: (number: number) => (number - min) % step === 0,
    })),
    fc.uniqueArray(value, { minLength: 1, maxLength: 4 }).map((values) => ({
      text: values.join(","),
      has: (number: number) => values.includes(number),
    })),
    fc.tuple(value, value).map(([a, b]) => ({
      text: `${Math.min(a, b)}-${Math.max(a, b)}`,
      has: (number: number) => number >= Math.min(a, b) && number <= Math.max(a, b),
    })),
  );
}

const HOURS = Array.from({ length: 24 }, (_, hour) => hour);
const star: Field = { text: "*", has: () => true };

interface Case {
  readonly rule: (tz: string) => Rule;
  readonly watched: (scene: Scene) => WatchedRule;
}

/** As cron has it: where both days are restricted, either will do. */
function cronCase(
  second: Field | null,
  [minute, hour, day, month, weekday]: readonly Field[] & { length: 5 },
): Case {
  const fields = [second, minute, hour, day, month, weekday] as Field[];
  const expr = fields.flatMap((part) => (part === null ? [] : [part.text])).join(" ");
  const [, , , d, m, w] = fields as [Field, Field, Field, Field, Field, Field];
  const dayMatches = (wall: WallTime) =>
    d.text !== "*" && w.text !== "*"
      ? d.has(wall.day) || w.has(wall.weekday)
      : d.has(wall.day) && w.has(wall.weekday);
  return {
    rule: (tz) => ({ kind: "cron", expr, tz }),
    watched: () => ({
      isFixed: !HOURS.every((value) => (hour as Field).has(value)),
      matches: (wall) =>
        (second === null ? wall.second === 0 : second.has(wall.second)) &&
        (minute as Field).has(wall.minute) &&
        (hour as Field).has(wall.hour) &&
        m.has(wall.month) &&
        dayMatches(wall),
    }),
  };
}

const cronCases = fc
  .tuple(
    field(0, 59),
    field(0, 23),
    fc.oneof({ weight: 3, arbitrary: fc.constant(star) }, field(1, 31)),
    fc.oneof({ weight: 3, arbitrary: fc.constant(star) }, field(1, 12)),
    fc.oneof({ weight: 3, arbitrary: fc.constant(star) }, field(0, 6)),
  )
  .map((fields) => cronCase(null, fields));

const times = fc.record({ hour: fc.integer({ min: 0, max: 23 }), minute: fc.integer({ min: 0, max: 59 }) });
const steps = fc.integer({ min: 1, max: 3 });

function timeText({ hour, minute }: { hour: number; minute: number }): string {
  return [hour, minute].map((number) => String(number).padStart(2, "0")).join(":");
}

/** The number of the first day, from the scene's on, on which a time still comes. */
function firstDay({ tz, after }: Scene, { hour, minute }: { hour: number; minute: number }): number {
  const wall = shownAt(tz, after);
  const { hour: nowHour, minute: nowMinute } = wallTime(wall);
  return Math.floor(wall / DAY) + (nowHour * 60 + nowMinute < hour * 60 + minute ? 0 : 1);
}

function dayNumber({ year, month, day }: WallTime): number {
  return Date.UTC(year, month - 1, day) / DAY;
}

const daysCases: fc.Arbitrary<Case> = fc.record({ time: times, every: steps }).map(({ time, every }) => ({
  rule: (tz) => ({ kind: "days", every, at: timeText(time), tz }),
  watched: (scene) => {
    const first = firstDay(scene, time);
    return {
      isFixed: true,
      matches: (wall) =>
        wall.hour === time.hour && wall.minute === time.minute && (dayNumber(wall) - first) % every === 0,
    };
  },
}));

const weeksCases: fc.Arbitrary<Case> = fc
  .record({ time: times, every: steps, days: fc.subarray([...WEEKDAYS], { minLength: 1 }) })
  .map(({ time, every, days }) => ({
    rule: (tz) => ({ kind: "weeks", every, on: days, at: timeText(time), tz }),
    watched: (scene) => {
      const isOn = (day: number) => days.includes(WEEKDAYS[(day + 3) % 7] as Weekday);
      let first = firstDay(scene, time);
      while (!isOn(first)) first += 1;
      const weekOf = (day: number) => Math.floor((day + 3) / 7);
      return {
        isFixed: true,
        matches: (wall) =>
          wall.hour === time.hour &&
          wall.minute === time.minute &&
          isOn(dayNumber(wall)) &&
          (weekOf(dayNumber(wall)) - weekOf(first)) % every === 0,
      };
    },
  }));

/** Compares as texts first: vitest takes long over lists of thousands. */
function expectSame(found: readonly number[], watched: readonly number[], rule: Rule): void {
  if (found.join() === watched.join()) return;
  const iso = (moment: number) => new Date(moment).toISOString();
  expect(found.map(iso), JSON.stringify(rule)).toEqual(watched.map(iso));
}

describe("a simulation of a wall clock agrees", () => {
  test("minute by minute, for cron expressions, days and weeks", () => {
    fc.assert(
      fc.property(
        scenes,
        fc.oneof({ weight: 3, arbitrary: cronCases }, daysCases, weeksCases),
        (scene, made) => {
          const { tz, after } = scene;
          const until = after + LENGTH;
          const rule = made.rule(tz);
          const found = momentsBetween(rule, { after, anchor: after, until, limit: 10_000 });
          const watched = watch(made.watched(scene), { tz, after, until });
          expectSame(found, watched, rule);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("second by second, around a change", () => {
    const zones = fc.constantFrom("America/New_York", "Australia/Lord_Howe");
    const cases = fc
      .tuple(field(0, 59), field(0, 59), field(0, 4))
      .map(([second, minute, hour]) => cronCase(second, [minute, hour, star, star, star]));
    fc.assert(
      fc.property(zones, fc.nat({ max: 1 }), cases, (tz, place, made) => {
        const after = (changesIn(tz, 2026)[place] as number) - HOUR;
        const scene = { tz, after };
        const until = after + 2.5 * HOUR;
        const rule = made.rule(tz);
        const found = momentsBetween(rule, { after, anchor: after, until, limit: 100_000 });
        const watched = watch(made.watched(scene), { tz, after, until, tickMs: 1_000, memoryMs: HOUR });
        expectSame(found, watched, rule);
      }),
      { numRuns: 60 },
    );
  });
});

const daily: Rule = { kind: "days", every: 1, at: "09:00", tz: "UTC" };
const at = (iso: string) => Date.parse(iso);

describe("by elapsed time", () => {
  const rule: Rule = { kind: "every", everyMs: 90_000, tz: "UTC" };
  const anchor = at("2026-01-01T00:00:17.123Z");

  test("moments lie on a grid from the anchor, without drift", () => {
    expect(nextMoment(rule, { after: anchor, anchor })).toBe(anchor + 90_000);
    expect(nextMoment(rule, { after: anchor + 90_000, anchor })).toBe(anchor + 180_000);
    expect(nextMoment(rule, { after: anchor + 1_000_000_000_001, anchor })).toBe(
      anchor + 11_111_112 * 90_000,
    );
  });

  test("the first moment is a step after the anchor, even if asked for from before", () => {
    expect(nextMoment(rule, { after: 0, anchor })).toBe(anchor + 90_000);
  });

  test("a million due times are counted without computing each", () => {
    const until = anchor + 90_000 * 1_000_000_000;
    expect(countMoments(rule, { after: anchor, anchor, until, max: 1e12 })).toBe(1_000_000_000);
    expect(countMoments(rule, { after: 0, anchor, until: anchor, max: 10 })).toBe(0);
  });
});

test("a one-time rule is due at its time and never after", () => {
  const rule: Rule = { kind: "once", atMs: 1_000, phrase: "in 1 second", tz: "UTC" };
  expect(nextMoment(rule, { after: 999, anchor: 0 })).toBe(1_000);
  expect(nextMoment(rule, { after: 1_000, anchor: 0 })).toBeNull();
});

test("a range includes its end but not its start", () => {
  const [after, until] = [at("2026-01-01T09:00:00Z"), at("2026-01-03T09:00:00Z")];
  expect(
    momentsBetween(daily, { after, until, anchor: 0, limit: 10 }).map((moment) =>
      new Date(moment).getUTCDate(),
    ),
  ).toEqual([2, 3]);
  expect(countMoments(daily, { after, until, anchor: 0, max: 10 })).toBe(2);
  expect(lastMoment(daily, { after, until, anchor: 0 })).toBe(until);
  expect(lastMoment(daily, { after, until: until - 1, anchor: 0 })).toBe(until - DAY);
  expect(lastMoment(daily, { after, until: after + HOUR, anchor: 0 })).toBeNull();
});

test("lists and counts stop at their limit", () => {
  const [after, until] = [at("2026-01-01T09:00:00Z"), at("2027-01-01T09:00:00Z")];
  expect(momentsBetween(daily, { after, until, anchor: 0, limit: 3 })).toHaveLength(3);
  expect(countMoments(daily, { after, until, anchor: 0, max: 100 })).toBe(100);
});

test("`lastMoment` returns the last due time of the list", () => {
  fc.assert(
    fc.property(scenes, cronCases, fc.integer({ min: 0, max: LENGTH }), ({ tz, after }, made, length) => {
      const between = { after, anchor: after, until: after + length };
      const all = momentsBetween(made.rule(tz), { ...between, limit: 10_000 });
      expect(lastMoment(made.rule(tz), between)).toBe(all.at(-1) ?? null);
      expect(countMoments(made.rule(tz), { ...between, max: 10_000 })).toBe(all.length);
    }),
    { numRuns: 200 },
  );
});

test("`countMoments` counts as many due times as the list has, for every rule", () => {
  const rules = fc.oneof({ weight: 3, arbitrary: cronCases }, daysCases, weeksCases);
  fc.assert(
    fc.property(scenes, rules, fc.integer({ min: 0, max: 30 * DAY }), ({ tz, after }, made, length) => {
      const between = { after: after + 17, anchor: after, until: after + length };
      const all = momentsBetween(made.rule(tz), { ...between, limit: 20_000 });
      expect(countMoments(made.rule(tz), { ...between, max: 20_000 })).toBe(all.length);
    }),
    { numRuns: 200 },
  );
});

describe("a year of due times each second", () => {
  const [after, until] = [at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z")];

  test("is counted in a step for each day", () => {
    const match = vi.spyOn(Cron.prototype, "match");
    onTestFinished(() => match.mockRestore());
    const rule: Rule = { kind: "cron", expr: "* * * * * *", tz: "Europe/Berlin" };
    expect(countMoments(rule, { after, anchor: 0, until, max: 1e12 })).toBe(365 * 24 * 60 * 60);
    expect(match.mock.calls.length).toBeLessThan(400);
    expect(countMoments(rule, { after, anchor: 0, until, max: 100_000 })).toBe(100_000);
  });

  test("is looked at a few times between two clock changes", () => {
    const pattern = readCron("*/2 * 1-22 * * *");
    const watched = { ...pattern, next: vi.fn(pattern.next), count: vi.fn(pattern.count) };
    const looks = () => watched.next.mock.calls.length + watched.count.mock.calls.length;
    expect(countOnWall(watched, "UTC", { after, until, max: 1e12 })).toBe(365 * 22 * 30 * 60);
    expect(looks()).toBeLessThan(5);
    countOnWall(watched, "Europe/Berlin", { after, until, max: 1e12 });
    expect(looks()).toBeLessThan(20);
  });
});

test("lists go no further than a hundred years, and nothing is due from the year 3000 on", () => {
  const yearly: Rule = { kind: "cron", expr: "@yearly", tz: "UTC" };
  const after = at("2026-06-01T00:00:00Z");
  expect(nextMoments(yearly, { after, anchor: after, limit: 1_000 })).toHaveLength(100);
  for (const rule of [yearly, daily, { kind: "every", everyMs: HOUR, tz: "UTC" } as const]) {
    expect(nextMoment(rule, { after: at("2999-12-31T23:30:00Z"), anchor: after })).toBeNull();
    expect(nextMoment(rule, { after: at("9999-01-01T00:00:00Z"), anchor: after })).toBeNull();
  }
});
