import { createHash } from "node:crypto";
import { DEFAULT_AGENT } from "../../../model/agent.ts";
import { TASK_KINDS } from "../../../model/task.ts";
import { ALONE } from "../../alone-queue.ts";
import { noExecutorError } from "../../no-executor-error.ts";
import { type Abilities, AGENT_MEMORY_MS, ALL_AGENTS } from "../../storage.ts";
import { preemptAt } from "../tasks/preempt-tasks.ts";
import { RELEASED_MAX } from "../tasks/settle-moves.ts";
import { readSql } from "./sql-file.ts";

/** The arguments of `save_abilities`: profile id, kinds and agents. All are empty for a node that can execute everything. */
export function abilityValues(abilities: Abilities | undefined): [string, string[], string] {
  if (abilities === undefined) return ["", [], "{}"];
  const kinds = [
    ...abilities.kinds,
    ...(abilities.keys ?? []).map((key) => `${KEY}${key}`),
    ...(abilities.workerAgents ?? []).map((agent) => `${WORKER_AGENT}${agent}`),
  ].sort();
  const agents = [...abilities.agents].sort(([a], [b]) => (a < b ? -1 : 1));
  const id = createHash("sha256")
    .update(JSON.stringify([kinds, agents]))
    .digest("hex")
    .slice(0, 32);
  return [id, kinds, JSON.stringify(Object.fromEntries(agents))];
}

/** Marks the id of a key among the kinds of a profile. */
const KEY = "key:";
/** Marks an agent among the kinds of a profile whose nodes' configuration gives it the executor `worker`. */
const WORKER_AGENT = "worker:";

/** `offset 0`, here and below: a plan made while there are few agents and workers would read all of them when there are many. */
const STORED = (n: string, more = "") => `exists (
  select 1 from agent stored
   where stored.tenant = ${n}.tenant and stored.agent = ${n}.agent and readable_json(stored.definition) ->> 'executor' is not null${more} offset 0)`;

/** Not by workers only. */
const FOR_NODES = " and readable_json(stored.definition) #>> '{executor,type}' is distinct from 'worker'";

/** Whether profile `p` has the key that seals the stored agent of `n`. */
const OPENS = (n: string) =>
  STORED(
    n,
    `${FOR_NODES} and exists (
    select 1 from profile f where f.id = p and '${KEY}' || (readable_json(stored.definition) ->> 'sealedWith') = any (f.kinds))`,
  );

const SERVED_BY_NODES = (n: string) => `(
  exists (select 1 from profile_agent named where named.agent = ${n}.agent and named.serves
             and exists (select 1 from node live where live.profile = named.profile and not live.dead))
  or exists (select 1 from agent_seen seen where seen.agent = ${n}.agent and seen.serves))`;

/** Whether the configuration of a live node gives the agent of `n` the executor `worker`. */
const CONFIGURED_FOR_WORKERS = (n: string) => `exists (
  select 1 from profile configured where '${WORKER_AGENT}' || ${n}.agent = any (configured.kinds)
     and exists (select 1 from node live where live.profile = configured.id and not live.dead))`;

const NAMED_BY_WORKERS = (n: string) => `exists (
  select 1 from worker_agent w where w.tenant = ${n}.tenant and w.agent = ${n}.agent offset 0)`;

/**
 * Whether the agent of `n` has an executor of its own: on a live node, on a node that is away, on workers, or stored with the
 * agent.
 */
const SERVED = (
  n: string,
) => `(${SERVED_BY_NODES(n)} or ${STORED(n)} or ${CONFIGURED_FOR_WORKERS(n)} or ${NAMED_BY_WORKERS(n)}
  or exists (select 1 from worker_agent_seen w where w.tenant = ${n}.tenant and w.agent = ${n}.agent))`;

/** Whether the executor of the agent of `n` is `worker`. */
export const isWorkerAgent = (n: string) =>
  `(${STORED(n, " and readable_json(stored.definition) #>> '{executor,type}' = 'worker'")}
    or (not ${STORED(n)} and ${CONFIGURED_FOR_WORKERS(n)}))`;

/** Whether workers may run the agent of `n`: its executor is `worker`, or it has none on any node, also if that is away. */
export const isOpenToWorkers = (n: string) =>
  `(${isWorkerAgent(n)} or (not ${STORED(n)} and not ${SERVED_BY_NODES(n)}))`;

const HAS_WORKER_FOR_ALL = (n: string) => `exists (
  select 1 from worker_agent w where w.tenant = ${n}.tenant and w.agent = '${ALL_AGENTS}' offset 0)`;

/** Whether a live worker can run agent queue `n`, if no node can. */
const BY_WORKERS = (n: string) =>
  `((${NAMED_BY_WORKERS(n)} or ${HAS_WORKER_FOR_ALL(n)}) and ${isOpenToWorkers(n)})`;

/** Whether live workers, and no nodes, can run agent queue `n`. */
export const isForWorkers = (n: string) =>
  `(${n}.standing <> 0 and (not ${isAlone(n)} or ${n}.pool = 0) and ${BY_WORKERS(n)})`;

/** Whether a worker with these agents can run agent queue `n`, given `isForWorkers`. */
export const canWorkerRun = (n: string, agents: string) =>
  `(${n}.agent = any (${agents}) or '${ALL_AGENTS}' = any (${agents}))`;

/** Whether the tasks of agent queue `n` run alone. */
export const isAlone = (n: string) => `left(${n}.kind, ${ALONE.length}) = '${ALONE}'`;

/**
 * Whether live nodes or workers can execute the tasks of agent queue `n`, if only alone. While no node is alive, `standing` keeps its last
 * value.
 */
export const isExecutable = (n: string) =>
  `(${n}.standing = 0 or ${BY_WORKERS(n)} or (${isAlone(n)} and (${n}.pool <> 0 or not exists (select 1 from node where not dead))))`;

/** The profiles among `live` whose nodes can execute the tasks of agent queue `n`. */
const ABLE = (n: string, live: string) => `
  case when ${n}.kind in ('', '${ALONE}') and not ${n}.served or ${STORED(n, `${FOR_NODES} and readable_json(stored.definition) ->> 'sealedWith' is null`)} then ${live}
       when ${n}.served then array(
         select p from unnest(${live}) p
          where p = '' or exists (
            select 1 from profile_agent named where named.agent = ${n}.agent and named.profile = p and named.serves)
             or ${OPENS(n)}
          order by p collate "C")
       else array(
         select p from unnest(${live}) p
          where p = '' or exists (select 1 from profile f where f.id = p and replace(${n}.kind, '${ALONE}', '') = any (f.kinds))
          order by p collate "C") end`;

/** The `kind` of the agent queue of a task; empty: it holds all kinds. `served`: whether the task's agent is served. */
export function queueKind(task: string, served: string): string {
  return `case when ${task}.agent = '${DEFAULT_AGENT}' or ${task}.kind = any ((select common_kinds from ability)::text[]) or ${served}
               then '' else ${task}.kind end`;
}

/** `standing` of agent queue `n`, given `able`. An ordinary claim never starts tasks that run alone. */
const standingOf = (n: string, able: string) =>
  `case when ${able} <> '{}' then (${isAlone(n)})::integer when ${n}.served or (${HAS_WORKER_FOR_ALL(n)} and ${isOpenToWorkers(n)}) then 1 else 2 end`;

/** `standing` and `pool` of a new agent queue, given its `served`. */
export function newLabel(n: string): string {
  return `(
    select ${standingOf(n, "able")} as standing,
           case when able = '{}' or (able = live and ${n}.kind = '') then 0 else pool_of(able) end as pool
      from (select live, ${ABLE(n, "live")} as able
              from (select case when exists (select 1 from node where not dead) then a.live else '{}' end as live from ability a) a) l
     where live <> '{}'
    union all
    select (${isAlone(n)})::integer, 0 where not exists (select 1 from node where not dead))`;
}

/** The kind of the agent queue that task `t` of agent queue `n` moves to when it has to run alone. */
const ALONE_KIND = `'${ALONE}' || case when n.agent = '${DEFAULT_AGENT}' then '' else readable_json(t.spec) #>> '{work,kind}' end`;

export const ABILITY_FUNCTIONS = readSql(new URL("./abilities.sql", import.meta.url), {
  SERVED: SERVED("n"),
  AGENT_MEMORY_MS,
  ALL_AGENTS,
  TASK_KINDS: TASK_KINDS.join(","),
  DEFAULT_AGENT,
  IS_ALONE_QUEUE: isAlone("v_queue"),
  QUEUE_KIND: queueKind("t", "is_served(t.tenant, t.agent)"),
  ALONE_KIND,
  IS_ALONE: isAlone("n"),
  ABLE: ABLE("n", "p_live"),
  STANDING: standingOf("l", "l.able"),
  PREEMPT_AT_P_NOW: preemptAt("p_now"),
  NO_EXECUTOR_ERROR: sqlError(),
  RELEASED_MAX,
  PREEMPT_AT_V_NOW: preemptAt("v_now"),
});

/** `noExecutorError` of task `t`, in SQL. */
function sqlError(): string {
  const text = noExecutorError("\u0001", "\u0002" as never).replaceAll("'", "''");
  return `replace(replace('${text}', '\u0001', t.agent), '\u0002', readable_json(t.spec) #>> '{work,kind}')`;
}
