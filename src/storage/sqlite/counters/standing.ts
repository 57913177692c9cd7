import { agentKey, DEFAULT_AGENT } from "../../../model/agent.ts";
import { PRIORITY_CRITICAL } from "../../../model/priority.ts";
import type { TaskKind } from "../../../model/task.ts";
import { ALONE, type AloneKind, heldKind } from "../../alone-queue.ts";
import { ALL_AGENTS } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";

/** What identifies an agent queue, apart from its lane. */
interface AgentQueueName {
  readonly tenant: string;
  readonly agent: string;
  /** The only kind of tasks in this agent queue; '': all kinds. */
  readonly kind: AgentQueueKind;
}

export type AgentQueueKind = TaskKind | "" | AloneKind;

/**
 * The part of the nodes' abilities that is needed all the time. Only one process writes to the file, so nothing here is out of
 * date.
 */
export class AbilityCache {
  readonly served = new Map<string, boolean>();
  commonKinds: ReadonlySet<TaskKind> | null = null;
  /** Whether some agent queue holds only one kind of tasks. */
  hasQueuesByKind: boolean | null = null;

  clear(): void {
    this.served.clear();
    this.commonKinds = null;
    this.hasQueuesByKind = null;
  }
}

/** `standing` of an agent queue that no live node can execute and whose agent is not served. */
export const UNSERVED = 2;

/** More agents than this are not cached: made-up names must not fill the memory. */
const SERVED_MAX = 20_000;

const LIVE = "n.dead = 0 and n.past = 0";
/** The prefix of the id of a key among the kinds of a node. */
export const KEY = "key:";
/** The prefix of an agent among the kinds of a node whose configuration gives it the executor `worker`. */
export const WORKER_AGENT = "worker:";

const storedAnd = (more: string) => `exists (
  select 1 from agent a where a.tenant = line.tenant and a.agent = line.agent and a.definition ->> '$.executor' is not null ${more})`;
const STORED = storedAnd("");
const FOR_NODES = "and coalesce(a.definition ->> '$.executor.type', '') <> 'worker'";
/** Agents without encrypted headers, which every node can use. */
const STORED_OPEN = storedAnd(`${FOR_NODES} and a.definition ->> '$.sealedWith' is null`);
/** Agents whose headers are encrypted with a key that a live node has. */
const STORED_FOR_KEY = storedAnd(`${FOR_NODES} and exists (
  select 1 from node n join json_each(n.kinds) k where ${LIVE} and k.value = '${KEY}' || (a.definition ->> '$.sealedWith'))`);
const SERVED_BY_NODES = `(exists (select 1 from node_agent x join node n on n.id = x.node
                           where x.agent = line.agent and x.serves = 1 and n.dead = 0)
                 or exists (select 1 from agent_seen x where x.agent = line.agent and x.serves = 1))`;
/** Agents of the configuration of a live node with the executor `worker`. */
const CONFIGURED_FOR_WORKERS = `exists (
  select 1 from node n join json_each(n.kinds) k where n.dead = 0 and k.value = '${WORKER_AGENT}' || line.agent)`;
const NAMED_BY_WORKERS = `exists (
  select 1 from worker_agent w where w.tenant = line.tenant and w.agent = line.agent)`;
const SERVED = `(${SERVED_BY_NODES} or ${CONFIGURED_FOR_WORKERS} or ${NAMED_BY_WORKERS}
                 or exists (select 1 from worker_agent_seen w where w.tenant = line.tenant and w.agent = line.agent))`;
/** Whether workers may run an agent: its executor is `worker`, or it has none on any node, also if that is away. */
const OPEN_TO_WORKERS = `(${storedAnd("and a.definition ->> '$.executor.type' = 'worker'")}
  or (not ${STORED} and (${CONFIGURED_FOR_WORKERS} or not ${SERVED_BY_NODES})))`;
const HAS_WORKER_FOR_ALL = `exists (
  select 1 from worker_agent w where w.tenant = line.tenant and w.agent = '${ALL_AGENTS}')`;
/** Whether a live worker can run the tasks of a row of `line`, if no node can. */
const BY_WORKERS = `((${NAMED_BY_WORKERS} or ${HAS_WORKER_FOR_ALL}) and ${OPEN_TO_WORKERS})`;

/** Whether the tasks of a row of `line` run alone. */
export const IS_ALONE = `substr(kind, 1, ${ALONE.length}) = '${ALONE}'`;

/** The kind of tasks that a row of `line` holds. */
const HELD_KIND = `replace(line.kind, '${ALONE}', '')`;

/** Whether live nodes can execute the tasks of a row of `line`: its `standing`, if its tasks did not have to run alone. */
const EXECUTABLE = `
  case when exists (select 1 from node n where ${LIVE} and n.kinds is null) or ${STORED_OPEN} or ${STORED_FOR_KEY} then 0
       when ${STORED} or ${SERVED} then not exists (select 1 from node_agent x join node n on n.id = x.node
                                        where x.agent = line.agent and x.serves = 1 and ${LIVE})
       when ${HELD_KIND} = '' or exists (select 1 from node n join json_each(n.kinds) k
                                          where ${LIVE} and k.value = ${HELD_KIND}) then 0
       when ${HAS_WORKER_FOR_ALL} and ${OPEN_TO_WORKERS} then 1
       else ${UNSERVED} end`;

/** Whether live workers, and no nodes, can run the tasks of a row of `line`. */
const FOR_WORKERS = `(standing <> 0 and ${BY_WORKERS} and (not ${IS_ALONE} or (${EXECUTABLE}) <> 0))`;

/** The correct `standing` of a row of `line` while there is a live node. Ordinary claims never start tasks that run alone. */
export const STANDING = `max(${EXECUTABLE}, ${IS_ALONE})`;

/**
 * Whether live nodes or workers can execute the tasks of a row of `line`, alone or not. While there is no live node: as last stored, and
 * true for tasks that run alone.
 */
export const IS_EXECUTABLE = `
  (standing = 0 or ${BY_WORKERS} or (${IS_ALONE} and (not exists (select 1 from node n where ${LIVE}) or (${EXECUTABLE}) = 0)))`;

/** The `standing` of an agent queue that is about to be created. */
export function standingOf(db: SqliteDatabase, { tenant, agent, kind }: AgentQueueName): number {
  const row = db
    .prepare<{ standing: number }>(
      `select case when exists (select 1 from node n where ${LIVE}) then ${STANDING} else ${IS_ALONE} end as standing
         from (select ? as tenant, ? as agent, ? as kind) line`,
    )
    .get(tenant, agent, kind);
  return row?.standing ?? 0;
}

/** Whether a live node that runs nothing else can execute the tasks of an agent queue. True also while there is no live node. */
export function isExecutable(db: SqliteDatabase, { tenant, agent, kind }: AgentQueueName): boolean {
  return standingOf(db, { tenant, agent, kind: heldKind(kind) }) === 0;
}

/** Whether live workers, and no nodes, can run the tasks of an agent queue. */
export function isForWorkers(db: SqliteDatabase, id: number): boolean {
  return db.prepare(`select 1 from line where id = ? and ${FOR_WORKERS}`).get(id) !== undefined;
}

/** Whether the executor of an agent is `worker`. */
export function isWorkerAgent(db: SqliteDatabase, { tenant, agent }: Omit<AgentQueueName, "kind">): boolean {
  const row = db
    .prepare<{ is: 0 | 1 }>(
      `select ${storedAnd("and a.definition ->> '$.executor.type' = 'worker'")} or (not ${STORED} and ${CONFIGURED_FOR_WORKERS}) as "is"
         from (select ? as tenant, ? as agent) line`,
    )
    .get(tenant, agent);
  return row?.is === 1;
}

/** The first of these agents that workers may not run; null: they may run all. */
export function firstClosedToWorkers(
  db: SqliteDatabase,
  { tenant, agents }: { tenant: string; agents: readonly string[] },
): string | null {
  const row = db
    .prepare<{ agent: string }>(
      `select agent from (select ? as tenant, value as agent, key from json_each(?)) line
        where agent <> '${ALL_AGENTS}' and not ${OPEN_TO_WORKERS} order by key limit 1`,
    )
    .get(tenant, JSON.stringify(agents));
  return row?.agent ?? null;
}

/** The agent queues whose first task is critical, and whose tasks workers run beside others. */
export function criticalQueuesForWorkers(db: SqliteDatabase): number[] {
  return db
    .prepare<number>(
      `select id from line where head_rank <= ${PRIORITY_CRITICAL} and standing <> 0 and not ${IS_ALONE} and ${FOR_WORKERS}
        order by lane, id`,
    )
    .pluck()
    .all();
}

/** The agent queues with ready tasks that workers with these agents can run, up to `limit` of them. */
export function agentQueuesForWorkers(
  db: SqliteDatabase,
  { tenant, agents, limit }: { tenant: string; agents: readonly string[]; limit: number },
): number[] {
  const isOfAny = agents.includes(ALL_AGENTS) ? 1 : 0;
  return db
    .prepare<number>(
      `select id from line
        where tenant = @tenant and ready > 0 and (@isOfAny or agent in (select value from json_each(@agents))) and ${FOR_WORKERS}
        order by last_served, id limit +@limit`,
    )
    .pluck()
    .all({ tenant, agents: JSON.stringify(agents), isOfAny, limit });
}

/** Whether the agent has an executor of its own: in the catalogue, on a node, or on a node that was seen recently. */
export function isServed(db: SqliteDatabase, { tenant, agent }: Omit<AgentQueueName, "kind">): boolean {
  const { served } = db.abilities;
  const key = agentKey({ tenant, agent });
  const known = served.get(key);
  if (known !== undefined) return known;
  const row = db
    .prepare<{ served: 0 | 1 }>(
      `select ${STORED} or ${SERVED} as served from (select ? as tenant, ? as agent) line`,
    )
    .get(tenant, agent);
  if (served.size >= SERVED_MAX) served.clear();
  served.set(key, row?.served === 1);
  return row?.served === 1;
}

/**
 * The `kind` of the agent queue for a task; '': all kinds. An agent that is not served has a separate queue for each kind that
 * not every live node can execute, so that such tasks do not block others.
 */
export function agentQueueKindOf(
  db: SqliteDatabase,
  { tenant, agent, kind }: { tenant: string; agent: string; kind: TaskKind },
): TaskKind | "" {
  const isCommon = agent === DEFAULT_AGENT || commonKinds(db).has(kind);
  return isCommon || isServed(db, { tenant, agent }) ? "" : kind;
}

/** The kinds that every live node can execute for agents that are not served. */
export function commonKinds(db: SqliteDatabase): ReadonlySet<TaskKind> {
  db.abilities.commonKinds ??= new Set(
    db
      .prepare<{ kind: TaskKind }>("select kind from common_kind")
      .all()
      .map(({ kind }) => kind),
  );
  return db.abilities.commonKinds;
}

/** Whether some agent queue holds only one kind of tasks: then an agent may have several queues in one lane. */
export function hasQueuesByKind(db: SqliteDatabase): boolean {
  db.abilities.hasQueuesByKind ??=
    db.prepare("select 1 from line where kind <> '' limit 1").get() !== undefined;
  return db.abilities.hasQueuesByKind;
}
