const RFC_3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(\.\d+)?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

const YEAR_0000_MS = Date.parse("0000-01-01T00:00:00Z");
const YEAR_10000_MS = Date.UTC(10_000, 0);

/**
 * Parses a text like `2026-03-08T12:05:00Z` or `2026-03-08T13:05:00.5+01:00` to milliseconds since 1970. Null: it has no
 * zone, or no such day or hour exists. (`Date.parse` accepts 30 February and guesses zones.) Null also if its offset moves it
 * out of the years 0000 to 9999 of UTC: it could not be written in this form.
 */
export function parseRfc3339(text: string): number | null {
  const match = RFC_3339.exec(text);
  if (match === null) return null;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return null;
  if (hour > 23 || minute > 59 || second > 59) return null;
  const offsetMs = offsetOf(match[8], match[9], match[10]);
  if (offsetMs === null) return null;
  date.setUTCHours(hour, minute, second, Math.trunc(Number(`0${match[7] ?? ""}`) * 1000));
  const ms = date.getTime() - offsetMs;
  return ms < YEAR_0000_MS || ms >= YEAR_10000_MS ? null : ms;
}

function offsetOf(sign: string | undefined, hours = "0", minutes = "0"): number | null {
  if (sign === undefined) return 0;
  if (Number(hours) > 23 || Number(minutes) > 59) return null;
  const ms = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return sign === "-" ? -ms : ms;
}

/** Milliseconds since 1970 as RFC 3339. */
export function rfc3339(ms: number): string {
  const slot = ms & (WRITTEN_MAX - 1);
  if (written.ms[slot] !== ms) {
    written.ms[slot] = ms;
    written.text[slot] = new Date(ms).toISOString();
  }
  return written.text[slot] as string;
}

/**
 * Caches the last few texts. Tasks that are written in one transaction share their times, and formatting a time takes longer
 * than anything else that a start does outside the database.
 */
const WRITTEN_MAX = 64;
const written = { ms: new Array<number>(WRITTEN_MAX), text: new Array<string>(WRITTEN_MAX) };
