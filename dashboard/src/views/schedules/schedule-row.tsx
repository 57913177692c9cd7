import { type RefObject, useEffect, useRef, useState } from "react";
import type { Run, ScheduledTask } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { formatDuration } from "../../parts/format.ts";
import { openRow } from "../../parts/open-row.ts";
import { Link } from "../../parts/router.tsx";
import { StateGlyph, stateTone, stateWord } from "../../parts/state.tsx";
import { Relative } from "../../parts/time.tsx";
import { keepPreviousData, useQuery } from "../../queries/use-query.ts";
import { DueTime } from "./due-time.tsx";
import { BARS_MAX, RUN_GLYPHS, RunBars, tookMs } from "./run-bars.tsx";
import { statusOf, titleOfSchedule, workText } from "./schedule-text.ts";

interface ScheduleRowProps {
  readonly schedule: ScheduledTask;
  readonly shownIn: string;
}

export function ScheduleRow({ schedule, shownIn }: ScheduleRowProps) {
  const { id, agent_id, schedule_phrase, next_fire_at, tz, status } = schedule;
  const row = useRef<HTMLDivElement>(null);
  const runs = useLastRuns(schedule, useSeen(row));
  const [glyph, word] = statusOf(schedule);
  return (
    <div className="lrow" role="row" ref={row} onClickCapture={openRow}>
      <span role="cell" className="no-cut">
        <StateGlyph state={glyph} label={word} />
      </span>
      <span role="cell" className="two c-name">
        <Link className="main-link name" href={`/schedules/${id}`}>
          {titleOfSchedule(schedule)}
        </Link>
        <small>{workText(schedule)}</small>
      </span>
      <span role="cell" className="c-words" title={schedule_phrase}>
        {schedule_phrase}
      </span>
      <span role="cell" className="c-agent sub">
        {agent_id}
      </span>
      <span role="cell" className="two c-next">
        {status === "active" && next_fire_at > 0 ? (
          <DueTime at={next_fire_at} zone={tz} shownIn={shownIn} />
        ) : (
          <>
            <span>{word.toLowerCase()}</span>
            <small>{schedule.paused_reason}</small>
          </>
        )}
      </span>
      <span role="cell" className="c-last">
        <LastRun schedule={schedule} runs={runs} />
      </span>
      <span role="cell" className="c-spark">
        {runs !== undefined && <RunBars runs={runs} />}
      </span>
    </div>
  );
}

interface LastRunProps {
  readonly schedule: ScheduledTask;
  readonly runs: readonly Run[] | undefined;
}

/** The outcome of the last ended run. */
function LastRun({ schedule, runs }: LastRunProps) {
  const { last_status, last_error, consecutive_failures, last_run_at } = schedule;
  if (last_status === null) {
    const isRunning = runs?.[0]?.status === "running";
    return <span className="sub">{isRunning ? "Running for the first time" : "Not run yet"}</span>;
  }
  const state = RUN_GLYPHS[last_status];
  const took = runs?.filter((run) => run.status === last_status).map(tookMs)[0];
  const why = consecutive_failures > 1 ? `, ${consecutive_failures} in a row` : "";
  return (
    <span className={`state last-run ${stateTone(state) ?? "sub"}`} title={last_error ?? undefined}>
      <StateGlyph state={state} />
      <span>
        {state === "failed" && last_error !== null ? last_error : stateWord(state)}
        {state === "done" && took !== undefined && ` in ${took === 0 ? "under 1s" : formatDuration(took)}`}
        {why}
        {state !== "failed" && took === undefined && last_run_at > 0 && (
          <>
            {" "}
            <Relative at={new Date(last_run_at * 1_000).toISOString()} />
          </>
        )}
      </span>
    </span>
  );
}

/** The runs of a row are fetched once the row was on screen: a list of a thousand schedules must not send a thousand requests. */
function useLastRuns(schedule: ScheduledTask, isSeen: boolean): readonly Run[] | undefined {
  const { client } = useSession();
  const { id, next_fire_at } = schedule;
  const { data } = useQuery({
    // A skipped due time publishes no event, but changes the next due time.
    queryKey: ["runs", id, "last", next_fire_at],
    queryFn: ({ signal }) => client.schedules.runs(id, { limit: BARS_MAX }, { signal }),
    enabled: isSeen,
    placeholderData: keepPreviousData,
    meta: { live: (event) => event.scheduleId === id && event.type !== "task.progress" },
  });
  return data?.runs;
}

function useSeen(element: RefObject<HTMLElement | null>): boolean {
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (element.current === null) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setSeen(true);
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return isSeen;
}
