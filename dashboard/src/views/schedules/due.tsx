import type { UpcomingMoment } from "../../../../src/client/index.ts";
import { sayRelative } from "../../parts/format.ts";
import { Link } from "../../parts/router.tsx";
import { useTimeZone } from "../../parts/zone.ts";
import { titleOf } from "./due-time.tsx";
import { formatSoon, MY_ZONE } from "./zoned-time.ts";

interface DueProps {
  readonly moment: UpcomingMoment;
  readonly now: number;
}

/** A due time of a schedule, in the zone of the reader. Hovering shows it in that of the schedule, too. */
export function Due({ moment, now }: DueProps) {
  const { schedule_id, name, at, zone } = moment;
  const ms = at * 1_000;
  const shownIn = useTimeZone() ?? MY_ZONE;
  return (
    <li>
      <Link href={`/schedules/${schedule_id}`}>
        <time dateTime={new Date(ms).toISOString()} title={titleOf(ms, zone)}>
          {formatSoon(ms, now, shownIn)}
        </time>
        <span className="due-name">{name ?? `Schedule ${schedule_id}`}</span>
        <span className="r">{sayRelative(Math.max(ms, now), now)}</span>
      </Link>
    </li>
  );
}
