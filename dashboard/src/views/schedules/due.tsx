import type { UpcomingMoment } from "../../../../src/client/index.ts";
import { sayRelative } from "../../parts/format.ts";
import { Link } from "../../parts/router.tsx";
import { cityOf, formatSoon, MY_ZONE, showsSame } from "./zoned-time.ts";

interface DueProps {
  readonly moment: UpcomingMoment;
  readonly now: number;
}

/** A due time of a schedule, in its zone. */
export function Due({ moment, now }: DueProps) {
  const { schedule_id, name, at, zone } = moment;
  const ms = at * 1_000;
  return (
    <li>
      <Link href={`/schedules/${schedule_id}`}>
        <time dateTime={new Date(ms).toISOString()}>
          {formatSoon(ms, now, zone)}
          {!showsSame(ms, zone, MY_ZONE) && <span className="muted"> {cityOf(zone)}</span>}
        </time>
        <span className="due-name">{name ?? `Schedule ${schedule_id}`}</span>
        <span className="r">{sayRelative(ms, now)}</span>
      </Link>
    </li>
  );
}
