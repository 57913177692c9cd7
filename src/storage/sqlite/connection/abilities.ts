import { DEFAULT_AGENT } from "../../../model/agent.ts";
import { TASK_KINDS, type TaskKind } from "../../../model/task.ts";
import { WAITING_STATES } from "../../../model/task-state.ts";
import { noExecutorError } from "../../no-executor-error.ts";
import { type Abilities, AGENT_MEMORY_MS, type TaskPlace } from "../../storage.ts";
import { Ledger, type Line, placeOf } from "../counters/ledger.ts";
import { commonKinds, isServed, KEY, STANDING, UNSERVED } from "../counters/standing.ts";
import { endWaitingTask, WAITING_COLUMNS, type WaitingTask } from "../tasks/end-waiting-task.ts";
import type { Lease } from "../tasks/lease.ts";
import { preemptTasks } from "../tasks/preempt-tasks.ts";
import { settleMoves } from "../tasks/settle-moves.ts";
import { preemptAfterChange, refreshLines } from "../tenants/lanes.ts";
import type { SqliteDatabase } from "./database.ts";

/**
 * Stores what a node can execute; null: everything. Agents that it named before go to `agent_seen`. `lessServed`: an agent may
 * no longer be served.
 */
export function writeAbilities(
  db: SqliteDatabase,
  node: string,
  abilities: Abilities | null,
  now: number,
): { lessServed: boolean } {
  rememberAgents(db, node, now);
  db.prepare("delete from node_agent where node = ?").run(node);
  const add = db.prepare("insert into node_agent (agent, node, serves) values (?, ?, ?)");
  for (const [agent, serves] of abilities?.agents ?? []) add.run(agent, node, serves ? 1 : 0);
  // A node that names an agent without an executor says that the agent needs none: this overrides `agent_seen`.
  const unserved = db
    .prepare(
      `update agent_seen set serves = 0
        where serves = 1 and agent in (select agent from node_agent where node = ? and serves = 0)`,
    )
    .run(node);
  const kinds =
    abilities === null
      ? null
      : JSON.stringify([...abilities.kinds, ...(abilities.keys ?? []).map((key) => `${KEY}${key}`)]);
  db.prepare("update node set kinds = ? where id = ?").run(kinds, node);
  return { lessServed: unserved.changes > 0 };
}

/** Stores the agents of a node in `agent_seen`, before the node replaces them or after it died. */
export function rememberAgents(db: SqliteDatabase, node: string, now: number): void {
  db.prepare(
    `insert into agent_seen (agent, serves, at) select agent, serves, @now from node_agent where node = @node
     on conflict (agent) do update set serves = max(agent_seen.serves, excluded.serves), at = excluded.at`,
  ).run({ node, now });
}

/** Deletes agents that no node has named for `AGENT_MEMORY_MS`. */
export function forgetAgents(db: SqliteDatabase): void {
  db.write((now) => {
    const forgotten = db.prepare("delete from agent_seen where at <= ?").run(now - AGENT_MEMORY_MS);
    if (forgotten.changes > 0) abilitiesChanged(db, now, { lessServed: true });
  });
}

/**
 * Updates the agent queues after a node registered, died or changed its abilities, or after agents were forgotten.
 * `lessServed`: an agent may no longer be served. While there is no live node, everything stays as it is.
 */
export function abilitiesChanged(
  db: SqliteDatabase,
  now: number,
  { lessServed }: { lessServed: boolean },
): void {
  const nodes = db
    .prepare<{ kinds: string | null }>("select distinct kinds from node where dead = 0 and past = 0")
    .all();
  const before = commonKinds(db);
  db.abilities.clear();
  if (nodes.length === 0) return;
  const common = TASK_KINDS.filter((kind) =>
    nodes.every(({ kinds }) => kinds === null || (JSON.parse(kinds) as TaskKind[]).includes(kind)),
  );
  db.prepare("delete from common_kind").run();
  for (const kind of common) db.prepare("insert into common_kind (kind) values (?)").run(kind);
  const isLost = [...before].some((kind) => !common.includes(kind));
  if (lessServed || isLost) splitLines(db, ANY);
  relabelLines(db, ANY, now);
}

/** The same for one stored agent that was created, changed or deleted; other agents are not affected. */
export function agentChanged(
  db: SqliteDatabase,
  { tenant, agent }: { tenant: string; agent: string },
  now: number,
): void {
  db.abilities.served.clear();
  if (db.prepare("select 1 from node where dead = 0 and past = 0 limit 1").get() === undefined) return;
  const only = { where: "tenant = ? and agent = ?", values: [tenant, agent] };
  splitLines(db, only);
  relabelLines(db, only, now);
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
function splitLines(db: SqliteDatabase, { where, values }: Selection): void {
  const mixed = db
    .prepare<{ id: number; tenant: string; agent: string }>(
      `select id, tenant, agent from line
        where kind = '' and waiting + inflight > 0 and agent <> '${DEFAULT_AGENT}' and ${where}`,
    )
    .all(...values)
    .filter((line) => !isServed(db, line));
  if (mixed.length === 0) return;
  const ledger = new Ledger(db);
  const ids = JSON.stringify(mixed.map(({ id }) => id));
  for (const state of WAITING_STATES) {
    const tasks = db
      .prepare<MovingTask>(
        `select ${WAITING_COLUMNS}, t.tenant, t.concurrency_key, t.spec ->> '$.work.kind' as kind, l.task_seq is not null as held
           from task t left join lease l on l.task_seq = t.seq
          where t.resting_state = '${state}' and t.line in (select value from json_each(?))`,
      )
      .all(ids);
    for (const task of tasks) if (!commonKinds(db).has(task.kind)) moveToKind(db, ledger, task);
  }
  ledger.save();
}

interface MovingTask extends WaitingTask {
  readonly tenant: string;
  readonly kind: TaskKind;
  readonly held: 0 | 1;
}

function moveToKind(db: SqliteDatabase, ledger: Ledger, task: MovingTask): void {
  const from = ledger.line(task.line);
  const to = ledger.lineOf(from.lane, from.tenant, from.agent, task.kind);
  if (task.held === 1) {
    moveHeldTask(db, ledger, { ...task, task_seq: task.seq }, to);
    db.prepare("update lease set line = ? where task_seq = ?").run(to.id, task.seq);
    db.leases.forget(task.seq);
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
  moveTask(db, task.seq, from, to);
  contestKey(db, from.tenant, task.concurrency_key);
}

/** Moves a running task to another queue of its agent. The caller changes its lease. */
export function moveHeldTask(
  db: SqliteDatabase,
  ledger: Ledger,
  held: Pick<Lease, "task_seq" | "line" | "concurrency_key">,
  to: Line,
): void {
  const from = ledger.line(held.line);
  from.inflight -= 1;
  to.inflight += 1;
  moveTask(db, held.task_seq, from, to);
  contestKey(db, from.tenant, held.concurrency_key);
}

function moveTask(db: SqliteDatabase, seq: number, from: Line, to: Line): void {
  from.tasks -= 1;
  to.tasks += 1;
  db.prepare("update task set line = ? where seq = ?").run(to.id, seq);
  db.prepare("update task_of_line set line = ? where line = ? and task_seq = ?").run(to.id, from.id, seq);
}

/** The tasks with this key may be in several agent queues now. */
function contestKey(db: SqliteDatabase, tenant: string, key: string | null): void {
  if (key === null) return;
  db.prepare("update key_hold set contested = 1 where tenant = ? and key = ?").run(tenant, key);
  db.mayContest = true;
}

function relabelLines(db: SqliteDatabase, { where, values }: Selection, now: number): void {
  const changed = db
    .prepare<{ id: number; lane: string; was: number; standing: number }>(
      `select id, lane, was, standing
         from (select id, lane, standing as was, ${STANDING} as standing from line where ${where})
        where was <> standing`,
    )
    .all(...values);
  if (changed.length > 0) {
    const set = db.prepare("update line set standing = ? where id = ?");
    for (const { id, standing } of changed) set.run(standing, id);
    db.lines.clear();
    refreshLines(db, "id in (select value from json_each(?))", [JSON.stringify(changed.map(({ id }) => id))]);
    db.prepare(
      `delete from unserved where not exists (
         select 1 from task t join line n on n.id = t.line where t.seq = task_seq and n.standing = ${UNSERVED})`,
    ).run();
  }
  const found = changed.filter(({ standing }) => standing === 0).map(({ lane }) => lane);
  preemptAfterChange(db, found, now);
  db.signal({ kind: "work" });
}

/** Fails tasks of agents that are not served, if no live node has been able to execute them for `afterMs`. */
export async function failUnserved(
  db: SqliteDatabase,
  { afterMs, limit }: { afterMs: number; limit: number },
): Promise<{ failed: TaskPlace[]; nextAt: number | null }> {
  // Usually there is no such agent queue, and then nothing is written.
  if (
    db.prepare(`select 1 from line where standing = ${UNSERVED} and waiting > 0 limit 1`).get() === undefined
  ) {
    return { failed: [], nextAt: null };
  }
  const answer = db.write((now) => {
    // Tasks that have ended in another way.
    db.prepare(
      "delete from unserved where not exists (select 1 from task t where t.seq = task_seq and t.completed_at is null)",
    ).run();
    const marked = markUnserved(db, limit, now);
    const due = db
      .prepare<WaitingTask & { kind: TaskKind }>(
        `select ${WAITING_COLUMNS}, t.spec ->> '$.work.kind' as kind from unserved u join task t on t.seq = u.task_seq
          where u.at <= ? order by u.at, u.task_seq limit +?`,
      )
      .all(now - afterMs, limit + 1);
    const ledger = new Ledger(db);
    const failed = due.slice(0, limit).map((task) => {
      const line = ledger.line(task.line);
      endWaitingTask(db, ledger, task, {
        state: "failed",
        error: noExecutorError(line.agent, task.kind),
        now,
      });
      db.prepare("delete from unserved where task_seq = ?").run(task.seq);
      return placeOf(line);
    });
    settleMoves(db, ledger, now);
    preemptTasks(db, ledger, now);
    ledger.save();
    if (failed.length > 0) db.signal({ kind: "events" });
    const next = db.prepare<{ at: number | null }>("select min(at) as at from unserved").get();
    const nextAt = next?.at == null ? null : next.at + afterMs;
    return { failed, nextAt: marked > limit || due.length > limit ? now : nextAt };
  });
  await db.durable();
  return answer;
}

/** Starts the clock for up to `limit` tasks. Returns how many unmarked ones it found, at most `limit + 1`. */
function markUnserved(db: SqliteDatabase, limit: number, now: number): number {
  const unmarked = db
    .prepare<{ seq: number }>(
      `with waiting as (
         select r.task_seq as seq from line n join ready r on r.line = n.id where n.standing = ${UNSERVED} and n.waiting > 0
         union all
         select t.seq from line n join task t indexed by task_parked on t.line = n.id and t.parked is not null
          where n.standing = ${UNSERVED} and n.waiting > 0)
       select seq from waiting where not exists (select 1 from unserved u where u.task_seq = seq) order by seq limit +?`,
    )
    .all(limit + 1);
  const mark = db.prepare("insert into unserved (task_seq, at) values (?, ?)");
  for (const { seq } of unmarked.slice(0, limit)) mark.run(seq, now);
  return unmarked.length;
}
