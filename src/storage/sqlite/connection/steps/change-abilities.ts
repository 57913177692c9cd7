import { type AgentName, DEFAULT_AGENT } from "../../../../model/agent.ts";
import { TASK_KINDS, type TaskKind } from "../../../../model/task.ts";
import { WAITING_STATES } from "../../../../model/task-state.ts";
import { type Abilities, ALL_AGENTS } from "../../../storage.ts";
import { commonKinds, isServed, KEY, STANDING, UNSERVED, WORKER_AGENT } from "../../counters/standing.ts";
import { WAITING_COLUMNS, type WaitingTask } from "../../tasks/steps/end-waiting-task.ts";
import { moveHeldTask, moveTask } from "../../tasks/steps/move-task.ts";
import { preemptAfterChange, refreshAgentQueues } from "../../tenants/steps/refresh-limits.ts";
import type { Transaction } from "../transaction.ts";

/**
 * Stores what a node can execute; null: everything. Agents that it named before go to `agent_seen`. `lessServed`: an agent may
 * no longer be served.
 */
export function writeAbilities(
  tx: Transaction,
  node: string,
  abilities: Abilities | null,
): { lessServed: boolean } {
  rememberAgents(tx, node);
  tx.prepare("delete from node_agent where node = ?").run(node);
  const add = tx.prepare("insert into node_agent (agent, node, serves) values (?, ?, ?)");
  for (const [agent, serves] of abilities?.agents ?? []) add.run(agent, node, serves ? 1 : 0);
  // A node that names an agent without an executor says that the agent needs none: this overrides `agent_seen`.
  const unserved = tx
    .prepare(
      `update agent_seen set serves = 0
        where serves = 1 and agent in (select agent from node_agent where node = ? and serves = 0)`,
    )
    .run(node);
  const kinds =
    abilities === null
      ? null
      : JSON.stringify([
          ...abilities.kinds,
          ...(abilities.keys ?? []).map((key) => `${KEY}${key}`),
          ...(abilities.workerAgents ?? []).map((agent) => `${WORKER_AGENT}${agent}`),
        ]);
  tx.prepare("update node set kinds = ? where id = ?").run(kinds, node);
  return { lessServed: unserved.changes > 0 };
}

/** Stores the agents of a node in `agent_seen`, before the node replaces them or after it died. */
export function rememberAgents(tx: Transaction, node: string): void {
  tx.prepare(
    `insert into agent_seen (agent, serves, at) select agent, serves, @now from node_agent where node = @node
     on conflict (agent) do update set serves = max(agent_seen.serves, excluded.serves), at = excluded.at`,
  ).run({ node, now: tx.now });
}

/**
 * Updates the agent queues after a node registered, died or changed its abilities, or after agents were forgotten.
 * `lessServed`: an agent may no longer be served. While there is no live node, everything stays as it is.
 */
export function abilitiesChanged(tx: Transaction, { lessServed }: { lessServed: boolean }): void {
  const nodes = tx
    .prepare<{ kinds: string | null }>("select distinct kinds from node where dead = 0 and past = 0")
    .all();
  const before = commonKinds(tx.db);
  tx.db.abilities.clear();
  if (nodes.length === 0) return;
  const common = TASK_KINDS.filter((kind) =>
    nodes.every(({ kinds }) => kinds === null || (JSON.parse(kinds) as TaskKind[]).includes(kind)),
  );
  tx.prepare("delete from common_kind").run();
  for (const kind of common) tx.prepare("insert into common_kind (kind) values (?)").run(kind);
  const isLost = [...before].some((kind) => !common.includes(kind));
  if (lessServed || isLost) splitAgentQueues(tx, ANY);
  relabelAgentQueues(tx, ANY);
}

/** The same for one stored agent that was created, changed or deleted; other agents are not affected. */
export function agentChanged(tx: Transaction, { tenant, agent }: AgentName): void {
  tx.db.abilities.served.clear();
  if (tx.prepare("select 1 from node where dead = 0 and past = 0 limit 1").get() === undefined) return;
  const only = { where: "tenant = ? and agent = ?", values: [tenant, agent] };
  splitAgentQueues(tx, only);
  relabelAgentQueues(tx, only);
}

/** The same for the agents of a worker that was registered or is gone; `*`: all of its tenant. */
export function workerAgentsChanged(
  tx: Transaction,
  { worker, tenant, agents: named }: { worker: string; tenant: string; agents: readonly string[] },
): void {
  tx.db.abilities.served.clear();
  // While other workers run an agent, one more or less changes nothing.
  const byOthers = tx.prepare(
    "select 1 from worker_agent where tenant = ? and agent = ? and worker <> ? limit 1",
  );
  const agents = named.filter((agent) => byOthers.get(tenant, agent, worker) === undefined);
  if (agents.length === 0) return;
  if (tx.prepare("select 1 from node where dead = 0 and past = 0 limit 1").get() === undefined) return;
  const only = agents.includes(ALL_AGENTS)
    ? { where: "tenant = ?", values: [tenant] }
    : {
        where: "tenant = ? and agent in (select value from json_each(?))",
        values: [tenant, JSON.stringify(agents)],
      };
  splitAgentQueues(tx, only);
  relabelAgentQueues(tx, only);
}

/** A condition that selects agent queues. */
interface Selection {
  readonly where: string;
  readonly values: readonly string[];
}

const ANY: Selection = { where: "true", values: [] };

/**
 * Moves tasks that not every live node can execute any more out of agent queues that hold all kinds. The cost grows with the
 * waiting tasks.
 */
function splitAgentQueues(tx: Transaction, { where, values }: Selection): void {
  const mixed = tx
    .prepare<{ id: number; tenant: string; agent: string }>(
      `select id, tenant, agent from line
        where kind = '' and waiting + inflight > 0 and agent <> '${DEFAULT_AGENT}' and ${where}`,
    )
    .all(...values)
    .filter((agentQueue) => !isServed(tx.db, agentQueue));
  if (mixed.length === 0) return;
  const ids = JSON.stringify(mixed.map(({ id }) => id));
  for (const state of WAITING_STATES) {
    const tasks = tx
      .prepare<MovingTask>(
        `select ${WAITING_COLUMNS}, t.tenant, t.concurrency_key, t.spec ->> '$.work.kind' as kind, l.task_seq is not null as held
           from task t left join lease l on l.task_seq = t.seq
          where t.resting_state = '${state}' and t.line in (select value from json_each(?))`,
      )
      .all(ids);
    for (const task of tasks) if (!commonKinds(tx.db).has(task.kind)) moveToKind(tx, task);
  }
  // `relabelLines` pre-empts, once it is known which queues can start something.
  tx.ledger.newCriticalTasks.length = 0;
  tx.save();
}

interface MovingTask extends WaitingTask {
  readonly tenant: string;
  readonly kind: TaskKind;
  readonly held: 0 | 1;
}

function moveToKind(tx: Transaction, task: MovingTask): void {
  const { ledger } = tx;
  const from = ledger.agentQueue(task.line);
  const to = ledger.agentQueueOf(from.lane, from.tenant, from.agent, task.kind);
  if (task.held === 1) {
    moveHeldTask(tx, { ...task, task_seq: task.seq }, to);
    tx.prepare("update lease set line = ? where task_seq = ?").run(to.id, task.seq);
    tx.db.leases.forget(task.seq);
    return;
  }
  from.waiting -= 1;
  to.waiting += 1;
  if (task.origin !== "task") {
    from.exempt -= 1;
    to.exempt += 1;
  }
  if (task.resting_state === "queued" && task.parked === null) {
    const entry = { rank: task.rank, task_seq: task.seq };
    ledger.removeReady(from, entry);
    ledger.addReady(to, entry);
  }
  moveTask(tx, { ...task, task_seq: task.seq }, { from, to });
}

function relabelAgentQueues(tx: Transaction, { where, values }: Selection): void {
  const changed = tx
    .prepare<{ id: number; lane: string; was: number; standing: number }>(
      `select id, lane, was, standing
         from (select id, lane, standing as was, ${STANDING} as standing from line where ${where})
        where was <> standing`,
    )
    .all(...values);
  if (changed.length > 0) {
    const set = tx.prepare("update line set standing = ? where id = ?");
    for (const { id, standing } of changed) set.run(standing, id);
    tx.db.agentQueues.clear();
    refreshAgentQueues(tx, "id in (select value from json_each(?))", [
      JSON.stringify(changed.map(({ id }) => id)),
    ]);
    tx.prepare(
      `delete from unserved where not exists (
         select 1 from task t join line n on n.id = t.line where t.seq = task_seq and n.standing = ${UNSERVED})`,
    ).run();
  }
  const found = changed.filter(({ standing }) => standing === 0).map(({ lane }) => lane);
  preemptAfterChange(tx, found);
  tx.signal("work");
}
