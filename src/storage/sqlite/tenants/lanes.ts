import { FRONT_RANK } from "../../../model/priority.ts";
import { WAITING_STATES } from "../../../model/task-state.ts";
import type { EndedTask, LaneRecord, LaneSetting, LaneStorage } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import type { LaneRow } from "../counters/ledger.ts";
import { RANK } from "../tasks/rank.ts";
import { fillReadySet } from "../tasks/ready-set.ts";
import { endNow, signalCancelled } from "../tasks/steps/cancel-all.ts";
import { WAITING_COLUMNS, type WaitingTask } from "../tasks/steps/end-waiting-task.ts";
import {
  followSecondTenant,
  preemptAfterChange,
  refreshAgentQueues,
  refreshTenants,
} from "./steps/refresh-limits.ts";

export function sqliteLanes(db: SqliteDatabase): LaneStorage {
  return {
    async configure({ lanes }) {
      await db.transactDurably((tx) => {
        const save = tx.prepare(
          `insert into lane (name, total, per_agent, per_tenant, strategy, aging_ms) values (?, ?, ?, ?, ?, ?)
           on conflict (name) do update
             set total = excluded.total, per_agent = excluded.per_agent, per_tenant = excluded.per_tenant,
                 strategy = excluded.strategy, aging_ms = excluded.aging_ms`,
        );
        for (const { name, total, perAgent, perTenant, strategy, agingMs } of lanes) {
          const before = tx.prepare<LaneRow>("select * from lane where name = ?").get(name);
          save.run(name, total, perAgent, perTenant, strategy, agingMs);
          if (before !== undefined && before.aging_ms !== agingMs) putInOrder(tx, name, agingMs);
        }
        followSecondTenant(tx);
        for (const { name } of lanes) refreshTenants(tx, name);
        tx.db.agentQueues.clear();
        for (const { name } of lanes) refreshAgentQueues(tx, "lane = ?", [name]);
        preemptAfterChange(
          tx,
          lanes.map(({ name }) => name),
        );
        tx.signal("work");
      });
    },
    async put({ name, concurrency, total }) {
      await db.transactDurably((tx) => {
        tx.prepare(
          `insert into lane_setting (name, concurrency, total) values (?, ?, ?)
           on conflict (name) do update set concurrency = excluded.concurrency, total = excluded.total`,
        ).run(name, concurrency, total);
        tx.signal("lanes");
      });
    },
    async settings() {
      return db.read(() =>
        db.prepare<LaneSetting>("select name, concurrency, total from lane_setting order by name").all(),
      );
    },
    clear: (params) => db.transactDurably((tx) => clearLane(tx, params)),
    async list() {
      const rows = db
        .prepare<LaneRow & { running: number }>(
          `select lane.*, (select count(*) from lease l join line n on n.id = l.line
                            where n.lane = lane.name and l.state = 'running') as running
             from lane order by name`,
        )
        .all();
      return rows.map(
        ({
          name,
          total,
          per_agent,
          per_tenant,
          strategy,
          aging_ms,
          waiting,
          inflight,
          running,
        }): LaneRecord => ({
          name,
          total,
          perAgent: per_agent,
          perTenant: per_tenant,
          strategy,
          agingMs: aging_ms,
          waiting,
          inflight,
          running,
          oldestAt: oldestReady(db, name),
        }),
      );
    },
  };
}

/** How many tasks `oldestReady` reads at most: the first of each agent queue and rank. */
const HEADS_MAX = 10_000;

/** When the oldest ready task of a lane was accepted; null: none is ready. */
function oldestReady(db: SqliteDatabase, lane: string): number | null {
  const agentQueues = db
    .prepare<{ id: number }>("select id from line where lane = ? and ready > 0 limit +?")
    .all(lane, HEADS_MAX);
  // Steps from rank to rank: within a rank the first task is the oldest.
  const next = db.prepare<{ rank: number; task_seq: number }>(
    "select rank, task_seq from ready where line = ? and rank > ? order by rank, task_seq limit 1",
  );
  let oldest = Number.POSITIVE_INFINITY;
  let looked = 0;
  for (const { id } of agentQueues) {
    let head = next.get(id, Number.MIN_SAFE_INTEGER);
    for (; head !== undefined && looked < HEADS_MAX; looked += 1) {
      oldest = Math.min(oldest, head.task_seq);
      head = next.get(id, head.rank);
    }
  }
  if (oldest === Number.POSITIVE_INFINITY) return null;
  return (
    db.prepare<{ at: number }>("select created_at as at from task where seq = ?").get(oldest)?.at ?? null
  );
}

function clearLane(
  tx: Transaction,
  params: { tenant: string; name: string; error: string; limit: number; cutoff?: number },
): { cancelled: EndedTask[]; more: boolean; cutoff: number } {
  const { tenant, name, error, limit, cutoff = tx.db.lastTaskSeq } = params;
  const waiting = WAITING_STATES.flatMap((state) =>
    tx
      .prepare<WaitingTask & { id: string }>(
        `select t.id, ${WAITING_COLUMNS} from task t
          where t.resting_state = '${state}' and t.tenant = ? and t.seq <= ?
            and t.line in (select id from line where lane = ? and tenant = t.tenant)
            and not exists (select 1 from lease l where l.task_seq = t.seq)
          order by t.seq limit +?`,
      )
      .all(tenant, cutoff, name, limit + 1),
  ).sort((a, b) => a.seq - b.seq);
  const cancelled = waiting.slice(0, limit).map((task) => endNow(tx, task, error));
  signalCancelled(tx, cancelled);
  return { cancelled, more: waiting.length > limit, cutoff };
}

/** Orders the waiting tasks by the new ageing. Pre-empted tasks stay in front. The cost grows with the waiting tasks. */
function putInOrder(tx: Transaction, lane: string, agingMs: number): void {
  for (const state of WAITING_STATES) {
    tx.prepare(
      `update task set rank = ${RANK}
        where resting_state = '${state}' and rank <> ${FRONT_RANK} and line in (select id from line where lane = @lane)`,
    ).run({ lane, agingMs });
  }
  tx.prepare("delete from ready where line in (select id from line where lane = ?)").run(lane);
  fillReadySet(tx, lane);
  tx.prepare(
    `update line set head_rank = (select rank from ready where line = id order by rank, task_seq limit 1),
                     head_seq = (select task_seq from ready where line = id order by rank, task_seq limit 1)
      where lane = ?`,
  ).run(lane);
  tx.db.agentQueues.clear();
}
