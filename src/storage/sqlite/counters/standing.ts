import { agentKey, DEFAULT_AGENT } from "../../../model/agent.ts";
import type { TaskKind } from "../../../model/task.ts";
import { ALONE, type AloneKind, heldKind } from "../../alone-queue.ts";
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

const storedAnd = (more: string) => `exists (
  select 1 from agent a where a.tenant = line.tenant and a.agent = line.agent and a.definition ->> '$.executor' is not null ${more})`;
const STORED = storedAnd("");
/** Agents without encrypted headers, which every node can use. */
const STORED_OPEN = storedAnd("and a.definition ->> '$.sealedWith' is null");
/** Agents whose headers are encrypted with a key that a live node has. */
const STORED_FOR_KEY = storedAnd(`and exists (
  select 1 from node n join json_each(n.kinds) k where ${LIVE} and k.value = '${KEY}' || (a.definition ->> '$.sealedWith'))`);
const SERVED = `(exists (select 1 from node_agent x join node n on n.id = x.node
                           where x.agent = line.agent and x.serves = 1 and n.dead = 0)
                 or exists (select 1 from agent_seen x where x.agent = line.agent and x.serves = 1))`;

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
       else ${UNSERVED} end`;

/** The correct `standing` of a row of `line` while there is a live node. Ordinary claims never start tasks that run alone. */
export const STANDING = `max(${EXECUTABLE}, ${IS_ALONE})`;

/**
 * Whether live nodes can execute the tasks of a row of `line`, alone or not. While there is no live node: as last stored, and
 * true for tasks that run alone.
 */
export const IS_EXECUTABLE = `
  (standing = 0 or (${IS_ALONE} and (not exists (select 1 from node n where ${LIVE}) or (${EXECUTABLE}) = 0)))`;

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
