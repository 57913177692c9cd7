import { PRIORITY_CRITICAL } from "../../../model/priority.ts";
import { HELD_STATES, type TaskState } from "../../../model/task-state.ts";
import type { ListTasksParams } from "../../storage.ts";
import { asksForMore, behindPrefix, LISTED_LOOKED_MAX, type ListFilter } from "../../task-listing.ts";

/** What decides which index is used. */
export interface LookedAround {
  /** Null: there is no session with this key. */
  readonly session: string | null;
  /** How many tasks have one of the requested states as their resting state. */
  readonly resting: number;
  /** How many of them are queued and not held. */
  readonly ready: number;
  /** Agents with tasks in the requested lane: a few more than are merged at most. */
  readonly agents: readonly string[];
  /** How many ids begin with the search text: a few more than are read at most. */
  readonly ids: number;
  readonly above: number;
  readonly below: number;
}

/** Up to this many tasks are all read, whatever the other filters. */
export const FEW = 1_000;
/** Up to this many agents are read one by one and merged. */
export const AGENTS_MERGED_MAX = 16;
/** An index that has tasks in order of acceptance. */
interface Source {
  /** The columns of the index on `task t` before the seq, and their values. */
  readonly columns: readonly (readonly [column: string, value: string])[];
  /** The predicate of the index. */
  readonly condition?: string;
  /** The filters that all its tasks match. Null: there are so few tasks that all may be read. */
  readonly answers: readonly ListFilter[] | null;
}

/** A statement that returns a row for each source: the tasks that match, and how far it read. Null: there is nothing to read. */
export function listQuery(
  params: ListTasksParams,
  look: LookedAround,
): { text: string; values: unknown[] } | null {
  const { order = "newest", limit, cursor, lookedMax = LISTED_LOOKED_MAX } = params;
  const isNewest = order === "newest";
  const above = Math.max(look.above, isNewest ? 0 : (cursor ?? 0));
  const below = Math.min(look.below, isNewest ? (cursor ?? look.below) : look.below);
  const values: unknown[] = [params.tenant, above, below];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const sources = sourcesFor(params, look, bind);
  if (sources.length === 0) return null;
  const bounded = sources.filter(({ answers }) => answers !== null).length;
  const looked = Math.max(Math.floor(lookedMax / Math.max(bounded, 1)), 1);
  const walks = sources.map((source) => {
    const { answers } = source;
    const isBounded = answers !== null && asksForMore(params, answers);
    const fitting = conditionsFor(params, look, values, answers ?? []);
    return walkQuery(source, { isNewest, limit, fitting, lookedMax: isBounded ? looked : null });
  });
  return { text: walks.join(" union all "), values };
}

interface WalkParams {
  readonly isNewest: boolean;
  readonly limit: number;
  /** What the tasks of the list match. */
  readonly fitting: string;
  /** How many tasks may be read; null: all of the source. */
  readonly lookedMax: number | null;
}

/** Walks one source, in order, up to the last task that the page needs. */
function walkQuery({ columns, condition = "true" }: Source, params: WalkParams): string {
  const { isNewest, limit, fitting, lookedMax } = params;
  const direction = isNewest ? "desc" : "asc";
  const [last] = columns.slice(-1);
  const row = last === undefined ? ["t.seq"] : [last[0], "t.seq"];
  const rowAt = (seq: string) => `(${last === undefined ? seq : `${last[1]}, ${seq}`})`;
  const equal = columns.slice(0, -1).map(([column, value]) => `${column} = ${value}`);
  // The last column and the seq are compared and ordered together, so that the planner can only use the index that has them in
  // this order. Where most tasks are of one tenant, it would otherwise walk all tasks: for a tenant without any, to the end.
  const between = [
    ...equal,
    `(${row.join(", ")}) > ${rowAt("$2")} and (${row.join(", ")}) < ${rowAt("$3")}`,
    condition,
  ].join(" and ");
  const inOrder = row.map((column) => `${column} ${direction}`).join(", ");
  const inRange = `from task t where ${between} order by ${inOrder}`;
  const found = (bound: string) => `
    select array_agg(t.seq order by t.nth) as found, coalesce(max(t.nth), 0) as looked, count(*) as count
      from (select t.seq, t.nth
              from (select t.*, ${row.length > 1 ? row[0] : "null"} as lead, row_number() over (order by ${inOrder}) as nth
                      ${inRange} ${bound}) t
             where ${fitting} order by t.lead ${direction}, t.seq ${direction} limit ${limit + 1}) t`;
  if (lookedMax === null) return `select f.found, f.looked, null::bigint as reached from (${found("")}) f`;
  // Only if too few match does it count how many were read.
  return `
    select f.found, case when f.count > ${limit} then f.looked else s.count end as looked,
           case when s.count = ${lookedMax} then s.last end as reached
      from (${found(`limit ${lookedMax}`)}) f
      cross join lateral (
        select count(*) as count, ${isNewest ? "min" : "max"}(t.seq) as last
          from (select t.seq ${inRange} limit ${lookedMax}) t where f.count <= ${limit}) s`;
}

/**
 * The conditions of a list, without those that the index ensures. Repeating these would make the planner expect fewer rows, and
 * read and sort all there are. No condition is written the way an index has it.
 */
export function conditionsFor(
  params: ListTasksParams,
  look: LookedAround,
  values: unknown[],
  answered: readonly ListFilter[] = [],
): string {
  const conditions = ["(t.tenant = $1) is true"];
  const filter = (name: ListFilter, value: unknown, condition: (value: string) => string) => {
    if (params[name] === undefined || answered.includes(name)) return;
    conditions.push(`(${condition(`$${values.push(value)}`)}) is true`);
  };
  const { agent, priority, priorityMax, batch, lane, schedule, root, search, states } = params;
  filter("agent", agent, (value) => `t.agent = ${value}`);
  filter("priority", priority, (value) => `t.priority = ${value}`);
  filter("priorityMax", priorityMax, (value) => `t.priority <= ${value}`);
  filter("batch", batch, (value) => `t.batch = ${value}`);
  filter(
    "lane",
    lane,
    (value) => `t.line in (select n.id from line n where n.tenant = $1 and n.lane = ${value})`,
  );
  filter("session", look.session, (value) => `t.session = ${value}`);
  filter("schedule", schedule, (value) => `t.schedule = ${value}`);
  filter("root", root, (value) => `t.root_task = ${value}`);
  filter(
    "search",
    search,
    (value) =>
      `starts_with(t.id, ${value}) or case when t.batch is not null then t.batch = ${value} or readable_json(t.spec) ->> 'key' = ${value} end`,
  );
  if (params.order !== "completed") {
    filter("from", params.from, (value) => `t.created_at >= ${value}`);
    filter("to", params.to, (value) => `t.created_at < ${value}`);
  }
  filter(
    "states",
    states,
    (value) =>
      `coalesce((select l.state from lease l where l.task_seq = t.seq), t.resting_state) = any (${value})`,
  );
  return conditions.join(" and ");
}

function sourcesFor(params: ListTasksParams, look: LookedAround, bind: (value: unknown) => string): Source[] {
  const { batch, search, session, schedule, root, agent, priority, priorityMax } = params;
  if (batch !== undefined) return [ofBatch(bind(batch))];
  if (search !== undefined) return sourcesOfSearch(search, look, bind);
  if (root !== undefined)
    return [
      {
        columns: [["t.root_task", bind(root)]],
        condition: "t.root_task is not null",
        answers: ["root"],
      },
    ];
  if (session !== undefined)
    return [
      {
        columns: [["t.session + 0", `${bind(look.session)}::bigint`]],
        condition: "t.session + 0 is not null",
        answers: ["session"],
      },
    ];
  if (schedule !== undefined)
    return [
      {
        columns: [["t.schedule + 0", `${bind(schedule)}::bigint`]],
        condition: "t.schedule + 0 is not null",
        answers: ["schedule"],
      },
    ];
  const byState = sourcesOfStates(params.states, look);
  if (byState !== null && look.resting <= FEW) return byState;
  if (agent !== undefined) return [{ columns: [OF_TENANT, ["t.agent", bind(agent)]], answers: ["agent"] }];
  if (priority !== undefined && priority !== 2)
    return [
      {
        columns: [OF_TENANT, ["t.priority", `${bind(priority)}::integer`]],
        condition: "t.priority <> 2",
        answers: ["priority"],
      },
    ];
  if (priorityMax !== undefined && priorityMax <= PRIORITY_CRITICAL)
    return [
      {
        columns: [OF_TENANT],
        condition: `t.priority <= ${PRIORITY_CRITICAL}`,
        answers: priorityMax === 0 ? ["priorityMax"] : [],
      },
    ];
  if (byState !== null) return byState;
  if (params.lane !== undefined && look.agents.length <= AGENTS_MERGED_MAX) {
    // An agent may have tasks in other lanes, too. Without agents there is nothing to read.
    return look.agents.map((each) => ({
      columns: [OF_TENANT, ["t.agent", bind(each)]],
      answers: ["agent"],
    }));
  }
  return [{ columns: [OF_TENANT], answers: [] }];
}

const OF_TENANT = ["t.tenant", "$1"] as const;

function ofBatch(batch: string): Source {
  return { columns: [["t.batch", batch]], condition: "t.batch is not null", answers: null };
}

/** Reads each state through its own index. Null: one of them has none. */
function sourcesOfStates(states: readonly TaskState[] | undefined, look: LookedAround): Source[] | null {
  if (states === undefined || states.includes("done")) return null;
  if (states.includes("queued") && look.ready > FEW) return null;
  const sources = states
    .filter((state) => state !== "queued" && !isHeld(state))
    .map(
      (state): Source => ({
        columns: [OF_TENANT, ["t.listed_state", `'${state}'`]],
        condition: "t.listed_state is not null",
        answers: ["states"],
      }),
    );
  if (states.includes("queued")) sources.push({ columns: [], condition: IS_QUEUED, answers: null });
  if (states.some(isHeld))
    sources.push({
      columns: [],
      condition: "t.seq = any (array(select h.task_seq from lease h))",
      answers: null,
    });
  return sources;
}

/** Ready, or parked by a batch, a key or a session. */
const IS_QUEUED = `t.seq = any (array(
  select r.task_seq from line n join ready r on r.line = n.id where n.tenant = $1 and n.ready > 0
  union all select p.seq from task p where p.tenant = $1 and p.parked is not null
  union all select u.task_seq from session s join turn u on u.session = s.id and u.stage = 'parked'
             where s.tenant || '' = $1 and s.parked > 0))`;

function isHeld(state: TaskState): boolean {
  return (HELD_STATES as readonly TaskState[]).includes(state);
}

function sourcesOfSearch(search: string, look: LookedAround, bind: (value: unknown) => string): Source[] {
  const text = bind(search);
  const byId: Source =
    look.ids > FEW
      ? { columns: [OF_TENANT], answers: [] }
      : {
          columns: [],
          condition: `t.seq = any (array(select i.seq from task i where i.id >= ${text} and i.id < ${bind(behindPrefix(search))}))`,
          answers: null,
        };
  return [
    byId,
    ofBatch(text),
    {
      columns: [OF_TENANT, ["(readable_json(t.spec) ->> 'key')", text]],
      condition: "t.batch is not null",
      answers: ["search"],
    },
  ];
}
