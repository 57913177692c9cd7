/** The zone of the reader. */
export const MY_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

const DAY_MS = 86_400_000;
const formats = new Map<string, Intl.DateTimeFormat>();

/** The local time of a zone, in parts. A zone that this browser does not know is read as UTC. */
function partsIn(at: number, zone: string): Readonly<Record<string, string>> {
  let format = formats.get(zone);
  if (format === undefined) {
    format = newFormat(zone) ?? newFormat("UTC") ?? new Intl.DateTimeFormat("en-GB");
    formats.set(zone, format);
  }
  return Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
}

function newFormat(timeZone: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat("en-GB", {
      timeZone,
      weekday: "short",
      day: "numeric",
      month: "short",
      year: "numeric",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
      timeZoneName: "shortOffset",
    });
  } catch {
    return undefined;
  }
}

/** `21:10` today, `Mon 16 Nov 02:30` this year, `Sun 28 Mar 2027 03:00` later, all in the zone. */
export function formatInZone(at: number, now: number, zone: string): string {
  const parts = partsIn(at, zone);
  const today = partsIn(now, zone);
  // Of what is due several times a minute. They are the same in every zone.
  const seconds = Math.floor(at / 1_000) % 60;
  const clock = `${parts["hour"]}:${parts["minute"]}${seconds > 0 ? `:${String(seconds).padStart(2, "0")}` : ""}`;
  const isThisYear = parts["year"] === today["year"];
  if (isThisYear && parts["day"] === today["day"] && parts["month"] === today["month"]) return clock;
  const day = `${parts["weekday"]} ${parts["day"]} ${parts["month"]}`;
  return isThisYear ? `${day} ${clock}` : `${day} ${parts["year"]} ${clock}`;
}

/** The same, but with only the weekday where that is clear: `Mon 02:30`. */
export function formatSoon(at: number, now: number, zone: string): string {
  const text = formatInZone(at, now, zone);
  return at > now && at - now < 6 * DAY_MS ? text.replace(/ \d.* (?=\d)/, " ") : text;
}

/** `UTC+1`. */
export function offsetIn(at: number, zone: string): string {
  return (partsIn(at, zone)["timeZoneName"] ?? "").replace("GMT", "UTC");
}

/** What the clocks of a zone show: the day as if it was in UTC, hours since midnight, and `02:30`. */
export function wallTime(at: number, zone: string): { dayMs: number; hour: number; clock: string } {
  const [, sign = "+", hours = "0", minutes = "0"] = /UTC([+-])(\d+):?(\d*)/.exec(offsetIn(at, zone)) ?? [];
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000;
  const wall = at + (sign === "-" ? -offset : offset);
  const dayMs = Math.floor(wall / DAY_MS) * DAY_MS;
  return { dayMs, hour: (wall - dayMs) / 3_600_000, clock: new Date(wall).toISOString().slice(11, 16) };
}

/** `New York` for `America/New_York`. */
export function cityOf(zone: string): string {
  return (zone.split("/").at(-1) ?? zone).replaceAll("_", " ");
}

/** Whether the clocks of two zones show the same time. */
export function showsSame(at: number, one: string, other: string): boolean {
  return one === other || offsetIn(at, one) === offsetIn(at, other);
}

/** The next clock change of a zone, to the minute, within 400 days. Undefined: there is none. */
export function nextClockChange(zone: string, from: number): number | undefined {
  const before = offsetIn(from, zone);
  for (let day = 1; day <= 400; day += 1) {
    if (offsetIn(from + day * DAY_MS, zone) === before) continue;
    let [low, high] = [from + (day - 1) * DAY_MS, from + day * DAY_MS];
    while (high - low > 60_000) {
      const middle = (low + high) / 2;
      if (offsetIn(middle, zone) === before) low = middle;
      else high = middle;
    }
    // Clocks change at whole minutes.
    return Math.floor(high / 60_000) * 60_000;
  }
  return undefined;
}
