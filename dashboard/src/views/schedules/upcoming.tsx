import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { UpcomingMoment } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { useLiveState } from "../../live/live.tsx";
import { sayRelative } from "../../parts/format.ts";
import { Empty, Fault, Loading } from "../../parts/notices.tsx";
import { useNow } from "../../parts/time.tsx";
import { zoneOf } from "./due-time.tsx";
import { cityOf, formatInZone, formatSoon, MY_ZONE, showsSame } from "./zoned-time.ts";

const UPCOMING_MAX = 100;
/** The most due times of one schedule, so that one that is due every minute leaves room for the others. */
const EACH_MAX = 10;
/** Due times pass without events, so they are refetched. */
const EVERY_MS = 30_000;

/** The next due times of all schedules, within a week, the earliest first. */
export function Upcoming({ times }: { readonly times: string | undefined }) {
  const { client } = useSession();
  const { isPaused } = useLiveState();
  const { data, error, refetch } = useQuery({
    queryKey: ["schedules", "upcoming"],
    queryFn: ({ signal }) =>
      client.schedules.upcoming({ limit: UPCOMING_MAX, per_schedule: EACH_MAX }, { signal }),
    refetchInterval: isPaused ? false : EVERY_MS,
    meta: { live: (event) => event.scheduleId !== undefined && event.type === "task.created" },
  });
  const now = useNow();
  if (data === undefined) {
    return error === null ? (
      <Loading what="due times" />
    ) : (
      <Fault error={error} what="The due times" onRetry={() => void refetch()} />
    );
  }
  if (data.moments.length === 0) {
    return <Empty title="Nothing is due">No active schedule is due within the next 7 days.</Empty>;
  }
  return (
    <section className="cell">
      <h2 className="vh">Next due</h2>
      <ol className="due due-all">
        {data.moments.map((moment) => (
          <Due key={`${moment.schedule_id} ${moment.at}`} moment={moment} times={times} now={now} />
        ))}
      </ol>
      <p className="muted due-more">
        {data.truncated
          ? `These are the next ${UPCOMING_MAX}, ${EACH_MAX} of one schedule at most; there are more within 7 days.`
          : `All within 7 days, ${EACH_MAX} of one schedule at most.`}
      </p>
    </section>
  );
}

interface DueProps {
  readonly moment: UpcomingMoment;
  readonly times: string | undefined;
  readonly now: number;
  /** Without the agent, and with a short day. */
  readonly isShort?: boolean;
}

export function Due({ moment, times, now, isShort = false }: DueProps) {
  const { schedule_id, name, agent, at, zone } = moment;
  const ms = at * 1_000;
  const shownIn = zoneOf(times, zone);
  return (
    <li>
      <Link href={`/schedules/${schedule_id}`}>
        <time dateTime={new Date(ms).toISOString()}>
          {(isShort ? formatSoon : formatInZone)(ms, now, shownIn)}
          {!showsSame(ms, shownIn, MY_ZONE) && <span className="muted"> {cityOf(shownIn)}</span>}
        </time>
        <span className="due-name">
          {name ?? `Schedule ${schedule_id}`} {!isShort && <span className="muted">{agent}</span>}
        </span>
        <span className="r">{sayRelative(ms, now)}</span>
      </Link>
    </li>
  );
}
