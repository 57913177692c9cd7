import type { Run, RunFilter, RunStatus, ScheduledTask } from "../../../../src/client/index.ts";
import { useSession } from "../../api/session.tsx";
import { ChipSelect } from "../../parts/chip.tsx";
import { formatCount, sayDuration } from "../../parts/format.ts";
import { Fault, Loading, ShowMore } from "../../parts/notices.tsx";
import { Link } from "../../parts/router.tsx";
import { StateBadge } from "../../parts/state.tsx";
import { useNow } from "../../parts/time.tsx";
import { useFilters } from "../../parts/use-filters.ts";
import { useInfiniteQuery } from "../../queries/use-query.ts";
import { BARS_MAX, BarsLegend, RUN_GLYPHS, RunBars, tookText } from "./run-bars.tsx";
import { formatInZone } from "./zoned-time.ts";

const PAGE = 50;
/** A run that begins this long after it was due is late. */
const LATE_SEC = 60;

const STATUSES = ["running", "succeeded", "failed", "skipped", "missed"] as const satisfies RunStatus[];
const FILTERS = { status: STATUSES };

/** Every due time of a schedule with its outcome, newest first. */
export function ScheduleRuns({ schedule }: { readonly schedule: ScheduledTask }) {
  const { client } = useSession();
  const { filters, set } = useFilters(FILTERS);
  const { id, next_fire_at } = schedule;
  const status = filters.status as RunStatus | undefined;
  const filter: RunFilter = { limit: PAGE, ...(status !== undefined && { status }) };
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ["runs", id, status, next_fire_at],
    queryFn: ({ signal, pageParam }) =>
      client.schedules.runs(id, { ...filter, ...(pageParam && { cursor: pageParam }) }, { signal }),
    initialPageParam: "",
    getNextPageParam: ({ next_cursor }) => next_cursor,
    placeholderData: (before, query) => (query?.key[2] === status ? before : undefined),
    meta: { live: (event) => event.scheduleId === id && event.type !== "task.progress" },
  });
  const runs = data?.pages.flatMap((page) => page.runs) ?? [];
  return (
    <section className="cell rule" aria-labelledby="runs-head">
      <div className="cell-head">
        <h2 id="runs-head">Runs</h2>
        <span className="grow" />
        <ChipSelect
          label="Status"
          value={status}
          options={STATUSES.map((each) => [each, RUN_GLYPHS[each]])}
          onChange={(value) => set({ status: value }, { replace: true })}
        />
      </div>
      {data === undefined ? (
        error === null ? (
          <Loading what="runs" />
        ) : (
          <Fault error={error} what="The runs" onRetry={() => void refetch()} />
        )
      ) : runs.length === 0 ? (
        <p className="muted">{status === undefined ? "It has not run yet." : "No such run."}</p>
      ) : (
        <>
          {status === undefined && (
            <div className="runs-bars">
              <RunBars runs={runs.slice(0, BARS_MAX)} />
              <BarsLegend />
            </div>
          )}
          <RunTable runs={runs} zone={schedule.tz} />
        </>
      )}
      {hasNextPage && <ShowMore isFetching={isFetchingNextPage} onMore={fetchNextPage} />}
    </section>
  );
}

function RunTable({ runs, zone }: { readonly runs: readonly Run[]; readonly zone: string }) {
  return (
    <div className="scroll-x" tabIndex={0} role="region" aria-label="All runs">
      <table className="table">
        <thead>
          <tr>
            <th>State</th>
            <th>Due</th>
            <th className="num">Took</th>
            <th className="num">Tokens</th>
            <th>Result</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <RunRow key={run.id} run={run} zone={zone} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RunRow({ run, zone }: { readonly run: Run; readonly zone: string }) {
  const now = useNow();
  const { status, due_at, started_at, moments, queue_task_id, input_tokens, output_tokens } = run;
  const late = started_at > 0 ? started_at - due_at : 0;
  const tokens = input_tokens + output_tokens;
  const state = <StateBadge state={RUN_GLYPHS[status]} />;
  return (
    <tr>
      <td>
        {queue_task_id === null ? (
          state
        ) : (
          <Link className="run-link" href={`/tasks/${queue_task_id}`}>
            {state}
            <span className="vh">, task {queue_task_id}</span>
          </Link>
        )}
      </td>
      <td className="run-due">
        {formatInZone(due_at * 1_000, now, zone)}
        {late >= LATE_SEC && <span className="muted">, {sayDuration(late * 1_000)} late</span>}
        {moments > 1 && <span className="muted">, for {formatCount(moments)} due times</span>}
      </td>
      <td className="num">{tookText(run)}</td>
      <td className="num">{tokens > 0 ? formatCount(tokens) : "–"}</td>
      <td className="run-said">{run.error_message ?? run.reason ?? run.result_summary ?? "–"}</td>
    </tr>
  );
}
