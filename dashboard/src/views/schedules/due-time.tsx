import { formatExact, sayRelative } from "../../parts/format.ts";
import { useNow } from "../../parts/time.tsx";
import { cityOf, formatSoon, MY_ZONE, showsSame } from "./zoned-time.ts";

/** The time zone in which times are shown: that of each schedule, the reader's, or UTC. */
export const ZONE_CHOICES = ["mine", "utc"] as const;

export function zoneOf(choice: string | undefined, own: string): string {
  return choice === "mine" ? MY_ZONE : choice === "utc" ? "UTC" : own;
}

interface DueTimeProps {
  /** Seconds since 1970. */
  readonly at: number;
  /** The time zone of the schedule. */
  readonly zone: string;
  /** The time zone in which the time is shown. */
  readonly shownIn: string;
}

/** A due time: the time left, and the time in the chosen zone. Hovering shows the schedule's zone and the reader's. */
export function DueTime({ at, zone, shownIn }: DueTimeProps) {
  const now = useNow();
  const ms = at * 1_000;
  return (
    <>
      <time dateTime={new Date(ms).toISOString()} title={titleOf(ms, zone)}>
        {sayRelative(ms, now)}
      </time>
      <small>
        {formatSoon(ms, now, shownIn)}
        {!showsSame(ms, shownIn, MY_ZONE) && ` ${cityOf(shownIn)}`}
      </small>
    </>
  );
}

/** A due time exactly, in the zone of its schedule and in the reader's. */
export function titleOf(ms: number, zone: string): string {
  const own = `${formatExact(ms, safe(zone))} (${zone})`;
  return zone === MY_ZONE ? own : `${own}\n${formatExact(ms)} here`;
}

/** The server may know zones that this browser does not. */
function safe(zone: string): string {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone;
  } catch {
    return "UTC";
  }
}
