import { type CSSProperties, useMemo } from "react";
import type { RotaClient, Run, ScheduledTask } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { useLiveState } from "../../live/live.tsx";
import { Button, IconButton } from "../../parts/button.tsx";
import { countOf, formatCount } from "../../parts/format.ts";
import { Empty } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { Link } from "../../parts/router.tsx";
import { type Glyph, StateGlyph, stateWord } from "../../parts/state.tsx";
import { useNow } from "../../parts/time.tsx";
import { keepPreviousData, type UseQueryResult, useQuery } from "../../queries/use-query.ts";
import { zoneOf } from "./due-time.tsx";
import { RUN_GLYPHS } from "./run-bars.tsx";
import { DAY_MS, type PlacedEntry, type WeekParts, weekOf } from "./week.ts";
import { MY_ZONE, wallTime } from "./zoned-time.ts";

/** How many days before today the week begins, unless it is chosen. A phone shows few days: today comes first. */
const DAYS_BEFORE = innerWidth < 720 ? 0 : 3;
const UPCOMING_MAX = 2_000;
const EACH_MAX = 50;
/** Pages of a hundred runs, and of two hundred schedules. */
const RUN_PAGES_MAX = 20;
const SCHEDULE_PAGES_MAX = 5;
/** Due times pass without events. */
const EVERY_MS = 30_000;
/** A week with more pages of runs than this is read at these intervals alone, and not at every event. */
const LIVE_PAGES = 3;
const HOURS = Array.from({ length: 11 }, (_each, index) => 2 * index + 2);

interface WeekViewProps {
  readonly times: string | undefined;
  /** The first day, `2026-11-12`. */
  readonly from: string | undefined;
  readonly onFrom: (from: string) => void;
}

/** Past runs and coming due times of all schedules, as a week. */
export function WeekView({ times, from, onFrom }: WeekViewProps) {
  const { client } = useSession();
  const { isPaused } = useLiveState();
  const now = useNow();
  const zone = zoneOf(times, MY_ZONE);
  const today = wallTime(now, zone);
  const chosen = Date.parse(from ?? "");
  const first = Number.isNaN(chosen) ? today.dayMs - DAYS_BEFORE * DAY_MS : chosen;
  // Nothing changes any more in a week that has passed, and nothing runs in one to come, whatever the zones of its schedules.
  const isPast = first + 8 * DAY_MS < today.dayMs;
  const hasToday = !isPast && first - DAY_MS <= today.dayMs;
  const query: UseQueryResult<WeekData> = useQuery({
    queryKey: ["schedules", "week", first],
    queryFn: ({ signal }) => readWeek(client, first, signal),
    refetchInterval: isPaused || isPast ? false : EVERY_MS,
    placeholderData: keepPreviousData,
    meta: {
      live: ({ scheduleId, type }) => scheduleId !== undefined && type !== "task.progress",
      isHeld: (): boolean => !hasToday || (query.data?.pages ?? 0) > LIVE_PAGES,
    },
  });
  const { data } = query;
  const week = useMemo(() => data && weekOf({ ...data, zoneOf: (own) => zoneOf(times, own) }), [data, times]);
  const go = (days: number) => onFrom(new Date(first + days * DAY_MS).toISOString().slice(0, 10));
  return (
    <>
      <div className="bar">
        <IconButton icon="left" label="Week before" onClick={() => go(-7)} />
        <b aria-live="polite">
          {sayDay(first)} – {sayDay(first + 6 * DAY_MS)}
        </b>
        <IconButton icon="right" label="Week after" onClick={() => go(7)} />
        <Button onClick={() => onFrom("")}>Today</Button>
        {data?.isCut && <span className="muted">There are more than are shown.</span>}
      </div>
      <Read query={{ ...query, data: week }} what="The week">
        {({ bands, days }) =>
          bands.length + days.flat().length === 0 ? (
            <Empty title="Nothing is due">No schedule runs in this week.</Empty>
          ) : (
            <div className="cal-wrap" tabIndex={0} role="region" aria-label="Week">
              <div className="cal">
                <div className="cal-corner" />
                {days.map((_each, index) => {
                  const day = first + index * DAY_MS;
                  const [weekday, date] = sayDay(day).split(" ");
                  return (
                    <div key={day} className="cal-d" aria-current={day === today.dayMs ? "date" : undefined}>
                      {weekday} <b>{date}</b> {day === today.dayMs && <span className="muted">today</span>}
                    </div>
                  );
                })}
                {bands.length > 0 && (
                  <>
                    <div className="cal-corner" />
                    <div className="cal-band">
                      {bands.map(({ scheduleId, name, phrase, runs, failed }) => (
                        <Link key={scheduleId} href={`/schedules/${scheduleId}`}>
                          <StateGlyph state={failed > 0 ? "failed" : "delayed"} />
                          <span>
                            <bdi>{name}</bdi>, {phrase}
                          </span>
                          <span className={failed > 0 ? "state-failed" : "muted"}>
                            {countOf(runs, "run")}
                            {failed > 0 && `, ${formatCount(failed)} failed or missed`}
                          </span>
                        </Link>
                      ))}
                    </div>
                  </>
                )}
                <div className="cal-h">
                  {HOURS.map((hour) => (
                    <span key={hour} style={{ "--y": hour } as CSSProperties}>
                      {String(hour).padStart(2, "0")}:00
                    </span>
                  ))}
                </div>
                {days.map((entries, index) => {
                  const day = first + index * DAY_MS;
                  const isToday = day === today.dayMs;
                  return (
                    <div key={day} className={isToday ? "cal-col today" : "cal-col"}>
                      {entries.map((entry) => (
                        <Event key={entry.key} entry={entry} day={sayDay(day)} />
                      ))}
                      {isToday && <div className="cal-now" style={{ "--y": today.hour } as CSSProperties} />}
                    </div>
                  );
                })}
              </div>
            </div>
          )
        }
      </Read>
      <p className="legend bars-legend" aria-hidden="true">
        {LEGEND.map((status) => {
          const [glyph, word] = shownAs(status);
          return (
            <span key={status}>
              <StateGlyph state={glyph} />
              {word}
            </span>
          );
        })}
      </p>
    </>
  );
}

const TONES: Readonly<Record<PlacedEntry["status"], string>> = {
  due: "",
  running: "",
  succeeded: "ev-past",
  failed: "ev-failed",
  missed: "ev-failed",
  skipped: "ev-skip",
};

const LEGEND = ["due", "running", "succeeded", "failed", "skipped", "missed"] as const;

function shownAs(status: PlacedEntry["status"]): readonly [Glyph, string] {
  if (status === "due") return ["queued", "Due"];
  const glyph = RUN_GLYPHS[status];
  return [glyph, stateWord(glyph)];
}

function Event({ entry, day }: { readonly entry: PlacedEntry; readonly day: string }) {
  const { status, clock, name, href, y, more, moments } = entry;
  const [glyph, word] = shownAs(status);
  const also = more > 0 ? `, and ${formatCount(more)} more` : "";
  const stands = moments > 1 ? `, for ${formatCount(moments)} due times` : "";
  return (
    <Link
      href={href}
      className={`ev ${TONES[status]}`}
      style={{ "--y": y } as CSSProperties}
      title={`${word}: ${name}, ${day} ${clock}${stands}${also}`}
    >
      <StateGlyph state={glyph} label={word} />
      <span>
        {clock} <bdi>{name}</bdi>
      </span>
      {more > 0 && <b>+{formatCount(more)}</b>}
    </Link>
  );
}

/** `Thu 12 Nov`. */
function sayDay(day: number): string {
  return new Date(day)
    .toLocaleDateString("en-GB", { timeZone: "UTC", weekday: "short", day: "numeric", month: "short" })
    .replace(",", "");
}

type WeekData = Omit<WeekParts, "zoneOf"> & {
  readonly isCut: boolean;
  /** How many pages of runs were read. */
  readonly pages: number;
};

async function readWeek(client: RotaClient, first: number, signal: AbortSignal): Promise<WeekData> {
  // A day more on both sides: the zones of schedules differ by up to 26 hours from the reader's.
  const [from, to] = [first / 1_000 - 86_400, first / 1_000 + 8 * 86_400];
  const now = Math.floor(Date.now() / 1_000);
  const [schedules, { runs, isCut, pages }, upcoming] = await Promise.all([
    readSchedules(client, signal),
    from < now ? readRuns(client, from, to, signal) : { runs: [], isCut: false, pages: 0 },
    to > now
      ? client.schedules.upcoming(
          { from: Math.max(from, now), to, limit: UPCOMING_MAX, per_schedule: EACH_MAX },
          { signal },
        )
      : { moments: [], truncated: false },
  ]);
  return { first, schedules, runs, upcoming: upcoming.moments, isCut: isCut || upcoming.truncated, pages };
}

async function readSchedules(client: RotaClient, signal: AbortSignal): Promise<readonly ScheduledTask[]> {
  const all: ScheduledTask[] = [];
  for (
    let page = 0, cursor: string | null | undefined = "start";
    page < SCHEDULE_PAGES_MAX && cursor !== null;
    page += 1
  ) {
    const read = await client.schedules.list({ cursor: cursor ?? "start" }, { signal });
    all.push(...read.schedules);
    cursor = read.next_cursor;
  }
  return all;
}

/** The log can be read from now on back only, so weeks long ago need more pages than are read. */
async function readRuns(client: RotaClient, from: number, to: number, signal: AbortSignal) {
  const runs: Run[] = [];
  for (let pages = 1, cursor: string | null = ""; pages <= RUN_PAGES_MAX; pages += 1) {
    const read = await client.runs.list({ since: from, limit: 100, ...(cursor && { cursor }) }, { signal });
    runs.push(...read.runs.filter(({ due_at }) => due_at >= from && due_at < to));
    cursor = read.next_cursor;
    if (cursor === null) return { runs, isCut: false, pages };
  }
  return { runs, isCut: true, pages: RUN_PAGES_MAX };
}
