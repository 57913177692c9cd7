/**
 * When rules are due, found the slow way: by watching a wall clock, tick by tick. It
 * shares nothing with src/schedules but the meaning of a rule, and asks Intl what the clock shows.
 */
export interface WatchedRule {
  /** Whether a time on the wall is one of the rule's. */
  readonly matches: (wall: WallTime) => boolean;
  /** Whether it names times of a day, rather than something of every hour. */
  readonly isFixed: boolean;
}

export interface WallTime {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  /** 0 for Sunday. */
  readonly weekday: number;
}

export interface Watch {
  readonly tz: string;
  /** The moments wanted come after it; on a full minute. */
  readonly after: number;
  readonly until: number;
  /** How often the clock is looked at; by default every minute. */
  readonly tickMs?: number;
  /** How long before `after` it is looked at, to know what it has shown before and where it jumps. */
  readonly memoryMs?: number;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Longer than any clock was ever set back or forward. */
const MEMORY = 25 * HOUR;

/** Every moment after `after` and not after `until` at which the rule is due. */
export function watch(
  rule: WatchedRule,
  { tz, after, until, tickMs = MINUTE, memoryMs = MEMORY }: Watch,
): number[] {
  const due: number[] = [];
  const seen = new Set<number>();
  const shown = shownFrom(tz, after - memoryMs, until, tickMs);
  for (let index = 0; index < shown.length; index++) {
    const wall = shown[index] as number;
    const moment = after - memoryMs + index * tickMs;
    if (moment > after && isDue(rule, { wall, previous: shown[index - 1] ?? wall, seen, tickMs }))
      due.push(moment);
    seen.add(wall);
  }
  return due;
}

interface Look {
  readonly wall: number;
  readonly previous: number;
  readonly seen: ReadonlySet<number>;
  readonly tickMs: number;
}

function isDue(rule: WatchedRule, { wall, previous, seen, tickMs }: Look): boolean {
  if (!rule.isFixed) return rule.matches(wallTime(wall));
  if (rule.matches(wallTime(wall)) && !seen.has(wall)) return true;
  for (let skipped = previous + tickMs; skipped < wall; skipped += tickMs) {
    if (rule.matches(wallTime(skipped))) return true;
  }
  return false;
}

const wallTimes = new Map<number, WallTime>();

export function wallTime(wall: number): WallTime {
  let time = wallTimes.get(wall);
  if (time === undefined) {
    time = readWall(wall);
    wallTimes.set(wall, time);
  }
  return time;
}

function readWall(wall: number): WallTime {
  const date = new Date(wall);
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
    second: date.getUTCSeconds(),
    weekday: date.getUTCDay(),
  };
}

/** The clock changes of a year, to the minute. */
export function changesIn(tz: string, year: number): readonly number[] {
  const key = `${tz} ${year}`;
  const known = changesByYear.get(key);
  if (known !== undefined) return known;
  const changes: number[] = [];
  changesByYear.set(key, changes);
  const offset = (moment: number) => shownAt(tz, moment) - moment;
  const end = Date.UTC(year + 1, 0);
  for (let start = Date.UTC(year, 0); start < end; start += 6 * HOUR) {
    if (offset(start) === offset(start + 6 * HOUR)) continue;
    let moment = start;
    while (offset(moment) === offset(start)) moment += MINUTE;
    changes.push(moment);
  }
  return changes;
}

const changesByYear = new Map<string, readonly number[]>();

function shownFrom(tz: string, from: number, until: number, tickMs: number): number[] {
  const count = Math.floor((until - from) / tickMs) + 1;
  return Array.from({ length: count }, (_, index) => shownAt(tz, from + index * tickMs));
}

interface Clock {
  readonly format: Intl.DateTimeFormat;
  /** The same hours are watched for many rules, and Intl is slow. */
  readonly shown: Map<number, number>;
}

const clocks = new Map<string, Clock>();

/** What the clock shows, as if it hung in UTC. */
export function shownAt(tz: string, moment: number): number {
  const clock = clockOf(tz);
  let wall = clock.shown.get(moment);
  if (wall === undefined) {
    wall = Date.parse(`${clock.format.format(moment).replace(" ", "T")}Z`);
    clock.shown.set(moment, wall);
  }
  return wall;
}

function clockOf(tz: string): Clock {
  let clock = clocks.get(tz);
  if (clock === undefined) {
    const format = new Intl.DateTimeFormat("sv-SE", {
      timeZone: tz,
      dateStyle: "short",
      timeStyle: "medium",
    });
    clock = { format, shown: new Map() };
    clocks.set(tz, clock);
  }
  return clock;
}
