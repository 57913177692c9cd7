import type { ScheduledTask, ScheduleFilter } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { Page } from "../../frame/page.tsx";
import { useLiveState } from "../../live/live.tsx";
import { Button } from "../../parts/button.tsx";
import { ChipSelect } from "../../parts/chip.tsx";
import { Empty, NoMatch, ShowMore } from "../../parts/notices.tsx";
import { Read } from "../../parts/read.tsx";
import { Link } from "../../parts/router.tsx";
import { type UseFilters, useFilters } from "../../parts/use-filters.ts";
import { useNew } from "../../parts/use-new.ts";
import { keepPreviousData, useInfiniteQuery, useQuery } from "../../queries/use-query.ts";
import { ZONE_CHOICES, zoneOf } from "./due-time.tsx";
import { BarsLegend } from "./run-bars.tsx";
import { ScheduleForm } from "./schedule-form.tsx";
import { ScheduleRow } from "./schedule-row.tsx";
import { byNextDue } from "./schedule-text.ts";
import "./schedules.css";
import { WeekView } from "./week-view.tsx";
import { MY_ZONE } from "./zoned-time.ts";

const FILTERS = {
  status: ["active", "paused", "completed", "failed"],
  agent: undefined,
  times: ZONE_CHOICES,
  view: ["week"],
  from: undefined,
} as const;

type Filtering = UseFilters<typeof FILTERS>;

/** Every schedule: the rule in words, the next due time, and the outcome of its last runs. */
export function SchedulesPage() {
  const { may } = useSession();
  const filtering = useFilters(FILTERS);
  const canChange = may("operate");
  const [isNew, setNew] = useNew("/schedules", canChange);
  const onNew = canChange ? () => setNew(true) : undefined;
  const { view, times } = filtering.filters;
  return (
    <Page
      title="Schedules"
      actions={
        onNew && (
          <Button icon="plus" className="btn-main" aria-label="New schedule" onClick={onNew}>
            <span>
              New<span className="hide-s"> schedule</span>
            </span>
          </Button>
        )
      }
    >
      <Bar filtering={filtering} />
      {view === "week" && may("read") ? (
        <WeekView
          times={times}
          from={filtering.filters.from}
          onFrom={(from) => filtering.set({ from }, { replace: true })}
        />
      ) : (
        <ScheduleList filtering={filtering} onNew={onNew} />
      )}
      {isNew && <ScheduleForm onClose={() => setNew(false)} />}
    </Page>
  );
}

function Bar({ filtering: { filters, set } }: { readonly filtering: Filtering }) {
  const { may } = useSession();
  const isList = filters.view === undefined;
  const { view: _view, from: _from, ...kept } = filters;
  const hrefOf = (search: object) => `/schedules?${new URLSearchParams({ ...kept, ...search })}`;
  return (
    <div className="bar" role="group" aria-label="What is shown">
      {may("read") && (
        <nav className="seg" aria-label="View">
          <Link href={hrefOf({})} aria-current={isList ? "page" : undefined}>
            List
          </Link>
          <Link href={hrefOf({ view: "week" })} aria-current={isList ? undefined : "page"}>
            Week
          </Link>
        </nav>
      )}
      {isList && (
        <>
          <ChipSelect
            label="Status"
            value={filters.status}
            options={FILTERS.status}
            onChange={(status) => set({ status })}
          />
          {may("read") && <AgentChip value={filters.agent ?? ""} onChange={(agent) => set({ agent })} />}
        </>
      )}
      <span className="grow" />
      <ChipSelect
        label="Times in"
        value={filters.times}
        none="each schedule's zone"
        options={[
          ["mine", `my zone (${MY_ZONE})`],
          ["utc", "UTC"],
        ]}
        onChange={(times) => set({ times }, { replace: true })}
      />
    </div>
  );
}

function AgentChip({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (agent: string) => void;
}) {
  const { client } = useSession();
  const { data: agents = [] } = useQuery({
    queryKey: ["choices", "agentId"],
    queryFn: async ({ signal }) => (await client.agents.list({}, { signal })).agents.map((agent) => agent.id),
    staleTime: 60_000,
  });
  return <ChipSelect label="Agent" value={value} options={agents} onChange={onChange} />;
}

/** A due time without a run publishes no event. So the list is also refetched by time, within these bounds. */
const SOONEST_MS = 2_000;
const LATEST_MS = 300_000;

interface ScheduleListProps {
  readonly filtering: Filtering;
  readonly onNew: (() => void) | undefined;
}

function ScheduleList({ filtering, onNew }: ScheduleListProps) {
  const { client } = useSession();
  const { isPaused } = useLiveState();
  const { status, agent, times } = filtering.filters;
  const filter = { ...(status && { status }), ...(agent && { agent }) } as ScheduleFilter;
  const query = useInfiniteQuery({
    queryKey: ["schedules", filter],
    queryFn: ({ signal, pageParam }) =>
      client.schedules.list({ ...filter, ...(pageParam && { cursor: pageParam }) }, { signal }),
    initialPageParam: "",
    getNextPageParam: ({ next_cursor }) => next_cursor,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => {
      const shown = state.data?.pages.flatMap(({ schedules }) => schedules) ?? [];
      const next = Math.min(...shown.map((each) => each.next_fire_at).filter((at) => at > 0));
      if (isPaused || !Number.isFinite(next)) return false;
      return Math.min(Math.max(next * 1_000 - Date.now() + SOONEST_MS, SOONEST_MS), LATEST_MS);
    },
    meta: { live: (event) => event.scheduleId !== undefined && event.type !== "task.progress" },
  });
  const { hasNextPage, fetchNextPage, isFetchingNextPage } = query;
  const shown = (schedules: readonly ScheduledTask[]) => (
    <>
      <div className="list cols-sched rows-2" role="table" aria-label="Schedules">
        <div className="lhead" role="row">
          <span role="columnheader">
            <span className="vh">State</span>
          </span>
          <span role="columnheader">Schedule</span>
          <span role="columnheader">When</span>
          <span role="columnheader" className="c-agent">
            Agent
          </span>
          <span role="columnheader">Next due</span>
          <span role="columnheader">Last run</span>
          <span role="columnheader" className="c-spark">
            Last 30 runs
          </span>
        </div>
        {schedules.map((schedule) => (
          <ScheduleRow key={schedule.id} schedule={schedule} shownIn={zoneOf(times, schedule.tz)} />
        ))}
      </div>
      {hasNextPage && (
        <p className="list-end">
          <ShowMore isFetching={isFetchingNextPage} onMore={fetchNextPage} />
        </p>
      )}
      <BarsLegend />
    </>
  );
  return (
    <Read query={query} what="The schedules">
      {({ pages }) => {
        const schedules = byNextDue(pages.flatMap((page) => page.schedules));
        if (schedules.length > 0 || hasNextPage) return shown(schedules);
        const count = (status === undefined ? 0 : 1) + (agent === undefined ? 0 : 1);
        return <NoSchedules count={count} onClear={filtering.clear} onNew={onNew} />;
      }}
    </Read>
  );
}

interface NoSchedulesProps {
  readonly count: number;
  readonly onClear: () => void;
  readonly onNew: (() => void) | undefined;
}

function NoSchedules({ count, onClear, onNew }: NoSchedulesProps) {
  if (count > 0) return <NoMatch what="schedule" filters={count} onClear={onClear} />;
  return (
    <Empty
      title="No schedules yet"
      action={
        onNew && (
          <Button icon="plus" onClick={onNew}>
            Create the first one
          </Button>
        )
      }
    >
      A schedule hands a task to an agent at a time, once or again and again: every weekday at 06:00, for
      example.
    </Empty>
  );
}
