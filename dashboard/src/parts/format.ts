/** A narrow no-break space between thousands. */
const GROUP = "\u202f";
const NONE = "–";

/** `1 204`. */
export function formatCount(count: number): string {
  return count.toLocaleString("en-US").replaceAll(",", GROUP);
}

/** `18.2k`, `1.4M`: for columns in which the order of magnitude matters. */
export function formatShortCount(count: number | undefined): string {
  if (count === undefined) return NONE;
  if (count < 1_000) return String(count);
  const [value, unit] = count < 999_500 ? [count / 1_000, "k"] : [count / 1_000_000, "M"];
  return `${value < 100 ? value.toFixed(1) : Math.round(value)}${unit}`;
}

/** `40ms`, `0.2s`, `41s`, `3m 12s`, `2h 05m`, `3d 4h`: for columns. */
export function formatDuration(ms: number | undefined): string {
  if (ms === undefined || !Number.isFinite(ms)) return NONE;
  const seconds = Math.max(0, ms) / 1_000;
  if (seconds < 0.0005) return "0s";
  if (seconds < 0.0995) return `${Math.round(seconds * 1_000)}ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}m ${padded(whole % 60)}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours}h ${padded(minutes % 60)}m`;
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

/** `100 ms`, `41 s`, `14 min`, `2 h 54 min`, `3 days`: for sentences. */
export function sayDuration(ms: number): string {
  if (ms > 0 && ms < 999.5) return `${Math.round(ms)}\u00a0ms`;
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 60) return `${seconds}\u00a0s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes}\u00a0min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours}\u00a0h` : `${hours}\u00a0h ${minutes % 60}\u00a0min`;
  return `${Math.round(hours / 24)}\u00a0days`;
}

/** `in 14 min`, `3 min ago`, `now`. */
export function sayRelative(at: number, now: number): string {
  const ms = at - now;
  if (Math.abs(ms) < 1_000) return "now";
  return ms > 0 ? `in ${sayDuration(ms)}` : `${sayDuration(-ms)} ago`;
}

const CLOCK = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;

/** `21:02` today, `8 Mar` this year, `8 Mar 2025` before: as short as it is clear. */
export function formatMoment(at: number, now: number, timeZone?: string): string {
  if (isSameDay(at, now, timeZone)) return formatIn(CLOCK, timeZone).format(at);
  const year = formatIn({ year: "numeric" }, timeZone);
  const isThisYear = year.format(at) === year.format(now);
  return formatIn(
    { day: "numeric", month: "short", ...(isThisYear ? {} : { year: "numeric" }) },
    timeZone,
  ).format(at);
}

/** `21:02:54`. */
export function formatClock(at: number, timeZone?: string): string {
  return formatIn({ ...CLOCK, second: "2-digit" }, timeZone).format(at);
}

export function isSameDay(one: number, other: number, timeZone?: string): boolean {
  const day = formatIn({ year: "numeric", month: "2-digit", day: "2-digit" }, timeZone);
  return day.format(one) === day.format(other);
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** A list formats hundreds of times every second, and making a format takes a hundred times as long as using it. */
function formatIn(options: Intl.DateTimeFormatOptions, timeZone: string | undefined): Intl.DateTimeFormat {
  const name = JSON.stringify([options, timeZone]);
  let format = formats.get(name);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-GB", { ...options, ...(timeZone !== undefined && { timeZone }) });
    formats.set(name, format);
  }
  return format;
}

/** `2026-03-08 21:02:54.120 UTC+1`: exactly, for titles and for copying. */
export function formatExact(at: number, timeZone?: string): string {
  const parts = formatIn(
    {
      ...CLOCK,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      second: "2-digit",
      fractionalSecondDigits: 3,
      timeZoneName: "short",
    },
    timeZone,
  ).formatToParts(at);
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((each) => each.type === type)?.value ?? "";
  const day = `${part("year")}-${part("month")}-${part("day")}`;
  const time = `${part("hour")}:${part("minute")}:${part("second")}.${part("fractionalSecond")}`;
  return `${day} ${time} ${part("timeZoneName")}`;
}

/** `1st`, `2nd`, `4th`, `11th`. */
export function formatOrdinal(number: number): string {
  const rest = number % 100;
  const ending = rest > 10 && rest < 14 ? "th" : (["th", "st", "nd", "rd"][rest % 10] ?? "th");
  return `${formatCount(number)}${ending}`;
}

/** `tsk_01a1e0…c064`: enough to distinguish two ids. Copying gives the whole id. */
export function shortId(id: string): string {
  return id.length <= 18 ? id : `${id.slice(0, 10)}…${id.slice(-4)}`;
}

/** `1 task`, `1 204 tasks`. */
export function countOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

function padded(number: number): string {
  return String(number).padStart(2, "0");
}
