import { isTerminal, TERMINAL_STATES } from "../../../model/task-state.ts";
import type { ListTasksParams } from "../../storage.ts";
import { asksForMore, ENDED_LOOKED_MAX } from "../../task-listing.ts";

/** Of the ends of one type: those that match, as `[at, event, task]`, and the last one that was read. */
export interface FoundEnds {
  readonly found: readonly (readonly [string, string, string])[] | null;
  readonly reached: readonly [string, string] | null;
}

/** At least this many ends of each type are read, so that a few retried tasks do not make a page short. */
const ENDS_LOOKED_MIN = 100;

const TYPE_OF_END = {
  done: "task.completed",
  failed: "task.failed",
  cancelled: "task.cancelled",
  rejected: "task.rejected",
} as const;

/**
 * Tasks in the order of their ends, the last one first. The log serves as the index: an end writes one row of it for all tasks
 * that end together. An index on tasks would be written for each task, and would keep the update of the task from staying on its
 * page.
 */
export function endedQuery(
  params: ListTasksParams,
  conditions: (values: unknown[]) => string,
): { text: string; values: unknown[] } | null {
  const { tenant, cursor = null, from = 0, to = Number.MAX_SAFE_INTEGER, limit } = params;
  const states = [...new Set(params.states ?? TERMINAL_STATES)].filter(isTerminal);
  if (states.length === 0) return null;
  const looked = Math.max(Math.floor((params.lookedMax ?? ENDED_LOOKED_MAX) / states.length), 1);
  // Without a filter nearly all ends match: all but those of tasks that were retried since.
  const ends = asksForMore(params, ["states", "from", "to"])
    ? looked
    : Math.min(looked, Math.max(2 * (limit + 1), ENDS_LOOKED_MIN));
  const values: unknown[] = [tenant, cursor, from, to];
  const fitting = conditions(values);
  const pages = states.map((state) => {
    const type = TYPE_OF_END[state];
    const isEnd = (e: string) => `${e}.tenant = $1 and ${e}.type = '${type}'`;
    return `
      select (select array_agg(array[f.at, f.number, f.task] order by f.at desc, f.number desc) from (
                select r.at, r.last_seq - r.count + u.nth as number, t.seq as task
                  from rows_${state} r cross join lateral unnest(r.task_seqs) with ordinality u(seq, nth)
                  join task t on t.seq = u.seq cross join start s
                 where t.completed_at = r.at and t.resting_state = '${state}'
                   and (r.at < s.at or r.last_seq - r.count + u.nth < s.event)
                   -- It may have been retried and have ended again within the same millisecond: the page
                   -- before contained it.
                   and (r.at <> s.at
                        or not exists (select 1 from event o where ${isEnd("o")} and o.at = r.at and o.last_seq > r.last_seq
                                          and t.seq = any (o.task_seqs)))
                   and ${fitting}
                 order by r.at desc, number desc limit ${limit + 1}) f) as found,
             (select array[r.at, r.last_seq - r.count + 1] from rows_${state} r where r.upto >= ${ends}
               order by r.at, r.last_seq limit 1) as reached`;
  });
  // Rows are read whole, so that a page may read one row of each type more than asked for.
  const rows = states.map((state) => {
    const type = TYPE_OF_END[state];
    return `rows_${state} as materialized (
      select * from (
        select e.at, e.last_seq, e.count, e.task_seqs, sum(e.count) over (order by e.at desc, e.last_seq desc) as upto
          from (select e.at, e.last_seq, e.count, e.task_seqs from event e
                 where e.tenant = $1 and e.type = '${type}' and e.at >= $3 and e.at <= (select at from start)
                   and (e.at < (select at from start) or e.last_seq - e.count + 1 < (select event from start))
                 order by e.at desc, e.last_seq desc limit ${ends}) e) w
       where w.upto - w.count < ${ends})`;
  });
  const start = `start as materialized (
    select least(p.at, $4::bigint - 1) as at, case when p.at < $4::bigint then p.event else 9e18::bigint end as event
      from (select 9e15::bigint as at, 9e18::bigint as event where $2::bigint is null
            union all
            select e.at, $2::bigint from (
              select at, last_seq, count from event where last_seq >= $2::bigint order by last_seq limit 1) e
             where e.last_seq - e.count < $2::bigint) p)`;
  return { text: `with ${[start, ...rows].join(", ")} ${pages.join(" union all ")}`, values };
}

interface End {
  readonly at: number;
  readonly event: number;
}

export function mergeEnds(
  pages: readonly FoundEnds[],
  { limit }: ListTasksParams,
): { found: { seq: number; cursor: number }[]; nextCursor: number | null } {
  const latestFirst = (a: End, b: End) => b.at - a.at || b.event - a.event;
  const ends = pages.map(({ found, reached }) => ({
    found: (found ?? []).map(([at, event, task]) => ({
      at: Number(at),
      event: Number(event),
      seq: Number(task),
    })),
    reached: reached === null ? null : { at: Number(reached[0]), event: Number(reached[1]) },
  }));
  const stops = ends.flatMap(({ found, reached }) =>
    found.length > limit ? found.slice(-1) : (reached ?? []),
  );
  const stop = stops.sort(latestFirst).at(0);
  const all = ends
    .flatMap((page) => page.found)
    .filter((end) => stop === undefined || latestFirst(end, stop) <= 0)
    .sort(latestFirst);
  // A task that was retried and ended again within the same millisecond is there twice: its last end counts.
  const found = [...new Map(all.toReversed().map((end) => [end.seq, end])).values()].sort(latestFirst);
  const page = found.slice(0, limit).map(({ seq, event }) => ({ seq, cursor: event }));
  return { found: page, nextCursor: (found.length > limit ? page.at(-1)?.cursor : stop?.event) ?? null };
}
