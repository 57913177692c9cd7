import type { CSSProperties, ReactNode } from "react";
import type {
  LaneInfo,
  RotaEvent,
  SchedulerStats,
  TaskCounts,
  TaskState,
  UpcomingMoments,
  WaitingReasons,
} from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { useLiveState } from "../../live/live.tsx";
import { countOf, formatCount, formatDuration, sayDuration } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { Read } from "../../parts/read.tsx";
import { Link } from "../../parts/router.tsx";
import { StateGlyph } from "../../parts/state.tsx";
import { useNow } from "../../parts/time.tsx";
import { useFilters } from "../../parts/use-filters.ts";
import { keepPreviousData, type UseQueryResult, useQuery } from "../../queries/use-query.ts";
import { gaugeOf, SlotGauge } from "../lanes/gauge.tsx";
import { Due } from "../schedules/due.tsx";
import { tasksHref, WAITING } from "../tasks/task-filters.ts";
import { concernsOf } from "./attention.ts";
import { Charts } from "./charts.tsx";
import { FirstRun } from "./first-run.tsx";
import { type History, lastOf, RANGES, type RangeName, shareDone, sumOf } from "./history.ts";
import { Oldest } from "./oldest.tsx";
import "./overview.css";
import { SAMPLE_AGENT } from "./sample.ts";
import { SampleNotice, useHasSample } from "./sample-notice.tsx";
import { useHistory } from "./use-history.ts";
import { filterOf, mergeSame, wordsOf } from "./waiting-text.ts";

const FILTERS = { range: Object.keys(RANGES) } as const;
const REASONS_MAX = 10;
const LANES_MAX = 8;
const DUE_MAX = 6;
/** Due times pass without events, so they are refetched. */
const DUE_EVERY_MS = 30_000;

function isChange(event: RotaEvent): boolean {
  return event.type !== "task.progress";
}

/** The overview: running and waiting tasks, why they wait, failures, and the next due schedules. */
export default function OverviewPage() {
  const { client, me } = useSession();
  const { isPaused } = useLiveState();
  const { filters, set } = useFilters(FILTERS);
  const range = (filters.range ?? "1h") as RangeName;
  const stats = useQuery({
    queryKey: ["stats"],
    queryFn: ({ signal }) => client.stats({ signal }),
    meta: { live: isChange },
  });
  const isIdle = stats.data !== undefined && isNothing(stats.data);
  // Only if this node has not seen a task since its start: there may be older ones.
  const counts = useQuery({
    queryKey: ["task-counts"],
    queryFn: ({ signal }) => client.tasks.counts({ signal }),
    enabled: isIdle,
    meta: { live: isChange },
  });
  const waiting = useQuery({
    queryKey: ["waiting"],
    queryFn: async ({ signal }) => {
      const { reasons, total } = await client.waiting({ signal });
      return { reasons: mergeSame(reasons), total };
    },
    enabled: stats.data !== undefined && (!isIdle || waitingIn(counts.data) > 0),
    placeholderData: keepPreviousData,
    meta: { live: isChange },
  });
  const lanes = useQuery({
    queryKey: ["lanes"],
    queryFn: ({ signal }) => client.lanes.list({ signal }),
    meta: { live: isChange },
  });
  const upcoming = useQuery({
    queryKey: ["schedules", "next-due"],
    queryFn: ({ signal }) => client.schedules.upcoming({ limit: DUE_MAX, per_schedule: 1 }, { signal }),
    enabled: me.features.includes("schedules"),
    refetchInterval: isPaused ? false : DUE_EVERY_MS,
    meta: { live: ({ type, scheduleId }) => scheduleId !== undefined && type === "task.created" },
  });
  const history = useHistory(range);
  // Asks only if there was a sample: it is among the counts of this node, or among the next due schedules.
  const hasSample = useHasSample(
    stats.data?.metrics.agents[SAMPLE_AGENT] !== undefined ||
      upcoming.data?.moments.some(({ agent }) => agent === SAMPLE_AGENT) === true,
  );
  const isFirstRun = isIdle && counts.data?.total === 0;
  // Lanes run the tasks of all tenants: how long tasks of others have waited is no news for this one.
  const isShared = me.tenantId !== "default";
  const ownLanes = isShared ? [] : (lanes.data?.lanes ?? []);
  const lanesSection = (
    <Section query={lanes} what="The lanes">
      {(data) => <Lanes lanes={data.lanes} readAt={lanes.dataUpdatedAt} isShared={isShared} />}
    </Section>
  );
  const dueSection = (className: string) =>
    upcoming.isEnabled && (
      <Section query={upcoming} what="The due times" className={className}>
        {(data) => <NextDue upcoming={data} />}
      </Section>
    );
  return (
    <Page title="Overview" actions={!isFirstRun && <RangeSwitch range={range} onChange={set} />}>
      <Read query={stats} what="The overview">
        {(data) => (
          <>
            <Figures
              stats={data}
              waiting={waiting.isEnabled ? waiting.data?.total : 0}
              lanes={lanes.data?.lanes}
              history={history.data}
              range={range}
            />
            {hasSample && <SampleNotice />}
            {isFirstRun ? (
              <>
                <FirstRun />
                <div className="over-pair">
                  {lanesSection}
                  {dueSection("cell")}
                </div>
              </>
            ) : (
              <div className="over-grid">
                <div className="over-main">
                  <Section query={history} what="The history">
                    {(data) => <Charts history={data} range={range} />}
                  </Section>
                  <div className="over-pair">
                    {waiting.isEnabled && (
                      <Section query={waiting} what="Why work waits">
                        {(data) => <WhyWorkWaits waiting={data} oldestMs={oldestOf(ownLanes)} />}
                      </Section>
                    )}
                    {lanesSection}
                  </div>
                </div>
                <div className="over-side">
                  <Attention
                    agents={data.metrics.agents}
                    reasons={waiting.data?.reasons ?? []}
                    lanes={ownLanes}
                  />
                  {dueSection("cell rule due-cell")}
                </div>
              </div>
            )}
          </>
        )}
      </Read>
    </Page>
  );
}

/** No task waits or runs, and none was submitted since this node started. */
function isNothing({ queue, metrics }: SchedulerStats): boolean {
  return queue.totalQueued + queue.totalInflight + metrics.tasksSubmitted === 0;
}

/** The number of waiting tasks, if the counts are known. */
function waitingIn(counts: TaskCounts | undefined): number {
  return WAITING.split(",").reduce((sum, state) => sum + (counts?.counts[state as TaskState] ?? 0), 0);
}

interface SectionProps<Data> {
  readonly query: UseQueryResult<Data>;
  readonly what: string;
  readonly className?: string;
  readonly children: (data: Data) => ReactNode;
}

/** A part of the page with a request of its own: its error does not affect the others. */
function Section<Data>({ query, what, className = "cell", children }: SectionProps<Data>) {
  return (
    <section className={className}>
      <Read query={query} what={what}>
        {children}
      </Read>
    </section>
  );
}

interface RangeSwitchProps {
  readonly range: RangeName;
  readonly onChange: (filters: { readonly range: string }, options: { readonly replace: boolean }) => void;
}

function RangeSwitch({ range, onChange }: RangeSwitchProps) {
  return (
    <fieldset className="seg">
      <legend className="vh">Time</legend>
      {Object.entries(RANGES).map(([name, { label }]) => (
        <label key={name}>
          <input
            type="radio"
            name="range"
            checked={name === range}
            onChange={() => onChange({ range: name === "1h" ? "" : name }, { replace: true })}
          />
          {label}
        </label>
      ))}
    </fieldset>
  );
}

interface FiguresProps {
  readonly stats: SchedulerStats;
  /** All waiting tasks. The scheduler's numbers exclude tasks that admission does not count, such as messages of sessions. */
  readonly waiting: number | undefined;
  readonly lanes: readonly LaneInfo[] | undefined;
  readonly history: History | undefined;
  readonly range: RangeName;
}

function Figures({ stats, waiting, lanes, history, range }: FiguresProps) {
  const { totalInflight } = stats.queue;
  const slots = lanes?.reduce((sum, lane) => sum + gaugeOf(lane).slots, 0);
  const done = history && sumOf(history.done);
  const failed = history && sumOf(history.failed);
  const { words } = RANGES[range];
  const [p50, p95] = [lastOf(history?.wait.p50 ?? []), lastOf(history?.wait.p95 ?? [])];
  const run = lastOf(history?.run.p95 ?? []);
  const ended = (state: string) => ({ state, from: range, order: "completed" });
  return (
    <div className="figures">
      <Figure
        icon={<StateGlyph state="running" />}
        name="Running"
        count={totalInflight}
        text={slots === undefined ? "" : `of ${countOf(slots, "slot")}`}
        filter={{ state: "running,assigned" }}
      />
      <Figure
        icon={<StateGlyph state="queued" />}
        name="Waiting"
        count={waiting ?? null}
        text={waiting === 0 ? "nothing waits" : "for a slot, time or task"}
        filter={{ state: WAITING, order: "oldest" }}
      />
      <Figure
        icon={<StateGlyph state="done" />}
        name="Done"
        count={done ?? null}
        text={[words, shareDone(done ?? 0, failed ?? 0)].filter(Boolean).join(", ")}
        filter={ended("done")}
      />
      <Figure
        icon={<StateGlyph state="failed" />}
        name="Failed"
        count={failed ?? null}
        text={words}
        filter={ended("failed")}
      />
      <Figure
        icon={<Icon name="clock" size={14} />}
        name="Wait p95"
        text={
          history === undefined
            ? words
            : p50 === null
              ? "after the first tasks"
              : `p50 ${formatDuration(p50)}${run === null ? "" : ` · run p95 ${formatDuration(run)}`}`
        }
        filter={{ from: range }}
      >
        {p95 !== null && <Units text={formatDuration(p95)} />}
      </Figure>
    </div>
  );
}

interface FigureProps {
  readonly icon: ReactNode;
  readonly name: string;
  /** Null: unknown. */
  readonly count?: number | null;
  /** Replaces the count. */
  readonly children?: ReactNode;
  readonly text: string;
  readonly filter: Readonly<Record<string, string>>;
}

function Figure({ icon, name, count = null, children, text, filter }: FigureProps) {
  return (
    <Link className="figure" href={tasksHref(filter)}>
      <span className="k">
        {icon}
        {name}
      </span>
      <span className={!count && !children ? "v muted" : "v"}>
        {children || (count === null ? "–" : formatCount(count))}
      </span>
      <span className="d">{text}</span>
    </Link>
  );
}

/** `2m 14s`, the units smaller than the numbers. */
function Units({ text }: { readonly text: string }) {
  return text.split(/([a-z]+)/).map((part, index) =>
    index % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: numbers and units take turns.
      <small key={index}>{part}</small>
    ) : (
      part
    ),
  );
}

/** The longest wait of a task that could start; null: there is none. */
function oldestOf(lanes: readonly LaneInfo[]): number | null {
  const waits = lanes.flatMap(({ oldestWaitMs }) => (oldestWaitMs === null ? [] : [oldestWaitMs]));
  return waits.length === 0 ? null : Math.max(...waits);
}

interface WhyWorkWaitsProps {
  readonly waiting: WaitingReasons;
  readonly oldestMs: number | null;
}

function WhyWorkWaits({ waiting: { reasons, total }, oldestMs }: WhyWorkWaitsProps) {
  const most = Math.max(1, ...reasons.map(({ count }) => count));
  return (
    <>
      <div className="cell-head">
        <h2>Why work waits</h2>
        {total > 0 && <span className="muted">{countOf(total, "task")}, by first reason</span>}
        {total > 0 && oldestMs !== null && (
          <Link className="more" href={tasksHref({ state: "queued", order: "oldest" })}>
            Oldest: {sayDuration(oldestMs)}
          </Link>
        )}
      </div>
      {total === 0 && <p className="sub">No tasks are waiting.</p>}
      <ul className="why">
        {reasons.slice(0, REASONS_MAX).map((reason) => {
          const { code, lane, agentId, count } = reason;
          const [before, name, after] = wordsOf(reason);
          return (
            <li key={[code, lane, agentId].join(" ")}>
              <Link href={tasksHref(filterOf(reason))}>
                <span className="cut">
                  {before}
                  {name !== "" && <b>{name}</b>}
                  {after}
                </span>
                <span className="meter">
                  <i style={{ "--p": `${(count / most) * 100}%` } as CSSProperties} />
                </span>
                <span className="num">{formatCount(count)}</span>
              </Link>
            </li>
          );
        })}
      </ul>
      {total > 0 && <Oldest />}
    </>
  );
}

interface LanesProps {
  readonly lanes: readonly LaneInfo[];
  readonly readAt: number;
  readonly isShared: boolean;
}

function Lanes({ lanes, readAt, isShared }: LanesProps) {
  const now = useNow();
  const busiest = lanes
    .toSorted((one, other) => other.running + other.waiting - one.running - one.waiting)
    .slice(0, LANES_MAX);
  return (
    <>
      <div className="cell-head">
        <h2>Lanes</h2>
        {isShared && <span className="muted">of all tenants</span>}
        <Link className="more" href="/lanes">
          All lanes
        </Link>
      </div>
      <ul className="lane-rows">
        {lanes.map((lane) => {
          // The busiest ones, in an order of their own: rows that change places cannot be read.
          if (!busiest.includes(lane)) return null;
          const { name, running, waiting, oldestWaitMs } = lane;
          const { slots, isFull } = gaugeOf(lane);
          return (
            <li key={name}>
              <Link href={tasksHref({ lane: name })}>
                <b className="cut">{name}</b>
                <SlotGauge lane={lane} />
                <span className={isFull ? "num state-ask" : "num"}>
                  {isFull && "full, "}
                  {formatCount(running)} of {formatCount(slots)}
                </span>
                <span className={waiting === 0 ? "num muted" : "num"}>
                  {waiting > 0 ? `${formatCount(waiting)} waiting` : running === 0 ? "idle" : "none waits"}
                </span>
                <span className="num muted old">
                  {oldestWaitMs === null ? "–" : sayDuration(oldestWaitMs + Math.max(0, now - readAt))}
                </span>
              </Link>
            </li>
          );
        })}
      </ul>
    </>
  );
}

function Attention(props: Parameters<typeof concernsOf>[0]) {
  const concerns = concernsOf(props);
  return (
    <section className="cell">
      <div className="cell-head">
        <h2>Needs attention</h2>
        {concerns.length > 0 && <span className="count">{concerns.length}</span>}
      </div>
      {concerns.length === 0 && (
        <p className="sub">Nothing: no agent keeps failing, and no task waits for long.</p>
      )}
      <ul className="attn">
        {concerns.map(({ kind, title, text, filter }) => (
          <li key={title}>
            <Link href={tasksHref(filter)}>
              {kind === "failed" ? (
                <StateGlyph state="failed" label="Failing" />
              ) : (
                <span className="warn">
                  <Icon name={kind === "waits" ? "clock" : "alert"} />
                </span>
              )}
              <span className="cut">
                <b className="cut">{title}</b>
                <small className="cut">{text}</small>
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function NextDue({ upcoming: { moments } }: { readonly upcoming: UpcomingMoments }) {
  const now = useNow();
  return (
    <>
      <div className="cell-head">
        <h2>Next due</h2>
        <Link className="more" href="/schedules">
          All schedules
        </Link>
      </div>
      {moments.length === 0 && <p className="sub">No schedule is due within 7 days.</p>}
      <ul className="due">
        {moments.map((moment) => (
          <Due key={`${moment.schedule_id} ${moment.at}`} moment={moment} now={now} />
        ))}
      </ul>
    </>
  );
}
