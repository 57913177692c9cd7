import { useState } from "react";
import type { ScheduledTask } from "../../../../src/client/index.ts";
import { hasCode } from "../../api/errors.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { useLiveState } from "../../live/live.tsx";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { Fact, Facts } from "../../parts/facts.tsx";
import { formatCount, sayDuration, sayRelative, shortId } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { keptHref } from "../../parts/kept-search.ts";
import { MadeBy } from "../../parts/made-by.tsx";
import { Empty } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { Link, useLocation } from "../../parts/router.tsx";
import { StateGlyph, stateTone } from "../../parts/state.tsx";
import { priorityWord } from "../../parts/task-text.ts";
import { useNow } from "../../parts/time.tsx";
import { useQuery } from "../../queries/use-query.ts";
import { Moments, Notes } from "./preview.tsx";
import { ScheduleForm } from "./schedule-form.tsx";
import { ScheduleRuns } from "./schedule-runs.tsx";
import { statusOf, titleOfSchedule } from "./schedule-text.ts";
import "./schedules.css";
import { useScheduleActions } from "./use-schedule-actions.ts";
import { formatInZone, MY_ZONE, showsSame } from "./zoned-time.ts";

/** The run of a due time is read this long after it. */
const AFTER_DUE_MS = 2_000;
const LATEST_MS = 300_000;

/** The page of one schedule: due times, message, and all its runs. */
export function SchedulePage({ params }: { readonly params: Record<string, string> }) {
  const id = Number(params["id"]);
  const { client } = useSession();
  const { isPaused } = useLiveState();
  const query = useQuery({
    queryKey: ["schedule", id],
    queryFn: ({ signal }) => client.schedules.get(id, { signal }),
    refetchInterval: ({ state }) => {
      const next = state.data?.next_fire_at ?? 0;
      if (isPaused || next === 0) return false;
      return Math.min(Math.max(next * 1_000 - Date.now(), 0) + AFTER_DUE_MS, LATEST_MS);
    },
    meta: { live: (event) => event.scheduleId === id && event.type !== "task.progress" },
  });
  // One that was deleted is not shown any more, although it was read before.
  const isGone = hasCode(query.error, "not_found");
  const data = isGone ? undefined : query.data;
  const title = data === undefined ? "Schedule" : titleOfSchedule(data);
  return (
    <Page title={title} crumb={<Crumb id={params["id"] ?? ""} />}>
      {data === undefined && <h1 className="vh">Schedule {params["id"]}</h1>}
      {isGone ? (
        <Empty
          title="There is no such schedule"
          action={
            <Link className="btn" href={keptHref("/schedules")}>
              All schedules
            </Link>
          }
        >
          It may have been deleted, or belong to another tenant.
        </Empty>
      ) : (
        <Read query={query} what="The schedule">
          {(schedule) => <ScheduleSheet key={id} schedule={schedule} title={title} />}
        </Read>
      )}
    </Page>
  );
}

function Crumb({ id }: { readonly id: string }) {
  return (
    <>
      <Link href={keptHref("/schedules")}>Schedules</Link>
      <Icon name="right" size={12} />
      <span className="id fg">{id}</span>
    </>
  );
}

interface ScheduleProps {
  readonly schedule: ScheduledTask;
}

function ScheduleSheet({ schedule, title }: ScheduleProps & { readonly title: string }) {
  const [glyph, word] = statusOf(schedule);
  const { schedule_phrase, agent_id, tz, paused_reason } = schedule;
  return (
    <div className="split">
      <div>
        <div className="title-block">
          <h1>{title}</h1>
          <div className="title-meta">
            <span className={`state ${stateTone(glyph) ?? ""}`}>
              <StateGlyph state={glyph} />
              {word}
            </span>
            {paused_reason !== null && <span>{paused_reason}</span>}
            <span>{schedule_phrase}</span>
            <span className="muted">{tz}</span>
            <span>
              agent{" "}
              <Link className="link" href={`/tasks?agentId=${encodeURIComponent(agent_id)}`}>
                {agent_id}
              </Link>
            </span>
          </div>
          <Actions schedule={schedule} title={title} />
        </div>
        <Work schedule={schedule} />
        <ScheduleRuns schedule={schedule} />
      </div>
      <Rail schedule={schedule} />
    </div>
  );
}

function Actions({ schedule, title }: ScheduleProps & { readonly title: string }) {
  const { may } = useSession();
  const [, navigate] = useLocation();
  const [open, setOpen] = useState<"edit" | "delete">();
  const { mutate, isPending } = useScheduleActions(schedule.id, {
    onDeleted: () => navigate(keptHref("/schedules")),
  });
  if (!may("operate")) return null;
  const { status } = schedule;
  return (
    <div className="title-acts">
      <Button icon="play" disabled={isPending} onClick={() => mutate("run")}>
        Run now
      </Button>
      {status === "active" && (
        <Button icon="pause" disabled={isPending} onClick={() => mutate("pause")}>
          Pause
        </Button>
      )}
      {status === "paused" && (
        <Button icon="play" className="btn-main" disabled={isPending} onClick={() => mutate("resume")}>
          Resume
        </Button>
      )}
      <Button onClick={() => setOpen("edit")}>Edit</Button>
      <Button icon="bin" onClick={() => setOpen("delete")}>
        Delete
      </Button>
      {open === "edit" && <ScheduleForm schedule={schedule} onClose={() => setOpen(undefined)} />}
      {open === "delete" && (
        <Confirm
          title={`Delete ${title}`}
          action="Delete this schedule"
          onConfirm={() => mutate("delete")}
          onClose={() => setOpen(undefined)}
        >
          <p>Deletes its runs, too, and cancels their unfinished tasks.</p>
        </Confirm>
      )}
    </div>
  );
}

function Work({ schedule: { message, instruction, payload } }: ScheduleProps) {
  const kind = message !== null ? "Message" : instruction !== undefined ? "Instruction" : "Payload";
  return (
    <section className="cell rule">
      <div className="cell-head">
        <h2>{kind}</h2>
      </div>
      <JsonView value={message ?? instruction ?? payload} label={kind} />
    </section>
  );
}

/** Due times and settings: at the side, or below on a phone. */
function Rail({ schedule }: ScheduleProps) {
  const { overlap, catch_up, retry, timeout, useful_for, run_count, max_runs, until, tz } = schedule;
  const { created_by: madeBy } = schedule;
  return (
    <aside className="rail" aria-label="Details">
      <NextDue schedule={schedule} />
      <Facts title="Details">
        <Fact name="Still running">{OVERLAP_WORDS[overlap]}</Fact>
        <Fact name="After downtime">{CATCH_UP_WORDS[catch_up]}</Fact>
        <Fact name="Retries">{retry.max_retries === 0 ? "none" : formatCount(retry.max_retries)}</Fact>
        <Fact name="Time limit">{timeout !== null && `${sayDuration(timeout)} per attempt`}</Fact>
        <Fact name="Useful for">{useful_for !== null && sayDuration(useful_for * 1_000)}</Fact>
        <Fact name="Pauses after">
          {!!schedule.pause_after_failures && `${schedule.pause_after_failures} failures in a row`}
        </Fact>
        <Fact name="Lane">{schedule.lane ?? "cron"}</Fact>
        <Fact name="Priority">{schedule.priority !== undefined && priorityWord(schedule.priority)}</Fact>
        <Fact name="Runs">
          {formatCount(run_count)}
          {max_runs !== undefined && ` of ${formatCount(max_runs)}`}
        </Fact>
        <Fact name="Until">{until !== undefined && formatInZone(until * 1_000, Date.now(), tz)}</Fact>
        <Fact name="Session">{schedule.session_key ?? false}</Fact>
        <Fact name="Created">{madeBy !== undefined && <MadeBy maker={makerOf(madeBy)} />}</Fact>
        <Fact name="Within">
          {schedule.parent_task_id !== undefined && (
            <Link className="link mono" href={`/tasks/${schedule.parent_task_id}`}>
              {shortId(schedule.parent_task_id)}
            </Link>
          )}
        </Fact>
      </Facts>
    </aside>
  );
}

const OVERLAP_WORDS = {
  skip: "skip the next",
  queue: "the next waits",
  replace: "the next replaces it",
  allow: "run both",
} as const;
const CATCH_UP_WORDS = { one: "run once", none: "run none", all: "run all" } as const;

/** The routes of schedules speak snake_case. */
function makerOf(maker: NonNullable<ScheduledTask["created_by"]>) {
  const { key_id: keyId, agent_id: agentId, ...rest } = maker;
  return { keyId, agentId, ...rest };
}

const SHOWN = 5;

/**
 * The next due times. The server computes a preview as of a schedule made at `from`: elapsed time is counted from the first of them, and
 * days and weeks from just before it, so that it is the first one of them, too.
 */
function NextDue({ schedule }: ScheduleProps) {
  const { client } = useSession();
  const now = useNow();
  const { next_fire_at, schedule_phrase, recur_json, tz, status, max_runs, run_count, until } = schedule;
  const isDue = status === "active" && next_fire_at > 0;
  const first = next_fire_at * 1_000;
  // Null: it is due once.
  const rule = JSON.parse(recur_json ?? "null") as { readonly kind: string } | null;
  const from = new Date(rule?.kind === "every" ? first : first - 1);
  const { data } = useQuery({
    queryKey: ["schedule-preview", schedule_phrase, tz, next_fire_at],
    queryFn: ({ signal }) =>
      client.schedules.preview({ schedule: schedule_phrase, tz, from, count: SHOWN }, { signal }),
    enabled: isDue && rule !== null,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const left = max_runs === undefined ? SHOWN : Math.max(1, max_runs - run_count);
  const later = (data?.next ?? []).filter((moment) => {
    const at = Date.parse(moment);
    return at > first && (until === undefined || at <= until * 1_000);
  });
  const moments = [new Date(first).toISOString(), ...later].slice(0, Math.min(SHOWN, left));
  return (
    <section className="cell">
      <div className="cell-head">
        <h2>Next due</h2>
      </div>
      {isDue ? (
        <>
          <p className="next-first">
            <b>{sayRelative(first, now)}</b>
            {!showsSame(first, tz, MY_ZONE) && (
              <span className="muted">
                {" "}
                {formatInZone(first, now, MY_ZONE)} here ({MY_ZONE})
              </span>
            )}
          </p>
          <Moments moments={moments} zone={tz} />
          <p className="muted">Times in {tz}</p>
          <Notes notes={data?.notes ?? []} />
        </>
      ) : (
        <p className="muted">{status === "paused" ? "Not while it is paused" : "Never again"}</p>
      )}
    </section>
  );
}
