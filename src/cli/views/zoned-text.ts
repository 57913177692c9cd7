/**
 * A time by the clock of a zone, as ISO 8601: `2026-05-11T09:00:00+02:00`. Without a zone it is the local time, and with an
 * unknown zone it is UTC.
 */
export function zonedText(moment: number, tz?: string): string {
  const parts = new Map(
    formatFor(tz)
      .formatToParts(moment)
      .map(({ type, value }) => [type, value]),
  );
  const [year, month, day] = [parts.get("year")?.padStart(4, "0"), parts.get("month"), parts.get("day")];
  const time = [parts.get("hour"), parts.get("minute"), parts.get("second")].join(":");
  const offset = parts.get("timeZoneName")?.replace(/^GMT/, "") || "+00:00";
  return `${year}-${month}-${day}T${time}${offset}`;
}

function formatFor(timeZone: string | undefined): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat("en-US", { ...NUMBERS, ...(timeZone === undefined ? {} : { timeZone }) });
  } catch {
    return new Intl.DateTimeFormat("en-US", { ...NUMBERS, timeZone: "UTC" });
  }
}

const NUMBERS = {
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
  timeZoneName: "longOffset",
} as const;
