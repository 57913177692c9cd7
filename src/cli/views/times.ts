const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A time as text with its zone, or milliseconds since 1970. */
type Moment = string | number;

/** A span in its largest unit: `450 ms`, `3.2 s`, `42 s`, `5 min`, `3 h`, `12 d`. */
export function shownSpan(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

/** A span that a user set, in the largest unit that is exact: `90 min`, not `1 h`. */
export function exactSpan(ms: number): string {
  const unit = EXACT_UNITS.find(([unitMs]) => ms % unitMs === 0) ?? [1, "ms"];
  return `${ms / unit[0]} ${unit[1]}`;
}

const EXACT_UNITS: readonly (readonly [ms: number, name: string])[] = [
  [DAY, "d"],
  [HOUR, "h"],
  [MINUTE, "min"],
  [SECOND, "s"],
];

/** How long ago, or in how long: `5 min ago`, `in 3 h`, `now`. */
export function shownAgo(moment: Moment, now: number): string {
  const ms = now - new Date(moment).getTime();
  if (Math.abs(ms) < SECOND) return "now";
  return ms > 0 ? `${wholeSpan(ms)} ago` : `in ${nearestSpan(-ms)}`;
}

/** The same, but below a minute in whole seconds. */
export function wholeSpan(ms: number): string {
  return ms < MINUTE ? `${Math.floor(ms / SECOND)} s` : shownSpan(ms);
}

/** Rounded to the nearest: what was scheduled for an hour from now must not show 59 minutes a moment later. */
function nearestSpan(ms: number): string {
  const seconds = Math.round(ms / SECOND);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(ms / MINUTE);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.round(ms / HOUR);
  return hours < 24 ? `${hours} h` : `${Math.round(ms / DAY)} d`;
}

/** A time by the local clock, with how long ago it is: `2026-03-08 12:00:01 (5 min ago)`. */
export function shownMoment(moment: Moment, now: number): string {
  return `${localTime(moment)} (${shownAgo(moment, now)})`;
}

/**
 * A due time by the clock of its zone: `in 2 h, Mon 09:00`. The date is added where the weekday alone could mean another week.
 * `moment` contains the offset of the zone.
 */
export function shownDue(moment: string, now: number): string {
  const [date = "", time = ""] = moment.split("T");
  const weekday = new Intl.DateTimeFormat("en", { weekday: "short", timeZone: "UTC" }).format(new Date(date));
  const isThisWeek = Math.abs(Date.parse(moment) - now) < 6 * DAY;
  return `${shownAgo(moment, now)}, ${weekday} ${isThisWeek ? "" : `${date} `}${time.slice(0, 5)}`;
}

function localTime(moment: Moment): string {
  const date = new Date(moment);
  const two = (number: number) => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${clockTime(date)}`;
}

/** `12:00:01`, by the local clock. */
export function clockTime(date: Date): string {
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((number) => String(number).padStart(2, "0"))
    .join(":");
}

const UNITS_MS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    ms: 1,
    s: SECOND,
    sec: SECOND,
    second: SECOND,
    seconds: SECOND,
    m: MINUTE,
    min: MINUTE,
    minute: MINUTE,
    minutes: MINUTE,
    h: HOUR,
    hour: HOUR,
    hours: HOUR,
    d: DAY,
    day: DAY,
    days: DAY,
  }),
);

/** Parses `30s`, `5m`, `1.5h`, `1h30m` or `10 minutes` into milliseconds. Undefined if it is not a span. */
export function parseSpan(text: string): number | undefined {
  const parts = [...text.trim().matchAll(/\s*(\d+(?:\.\d+)?)\s*([a-z]+)/gy)];
  if (parts.length === 0 || parts.map(([part]) => part).join("") !== text.trim()) return undefined;
  const spans = parts.map(([, number, unit]) => Number(number) * (UNITS_MS.get(unit ?? "") ?? Number.NaN));
  const ms = spans.reduce((sum, span) => sum + span, 0);
  return Number.isNaN(ms) ? undefined : ms;
}
