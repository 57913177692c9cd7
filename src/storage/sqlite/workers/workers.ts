import { type AttemptEnd, NOT_POLLING_MS, workersFull } from "../../../model/worker.ts";
import type {
  AttemptUsage,
  NewWorker,
  NotifiedWorker,
  WorkerCount,
  WorkerRecord,
  WorkerStorage,
} from "../../storage.ts";
import {
  AGENTS_SEEN_MAX,
  ALL_AGENTS,
  CLAIM_KEPT_MS,
  type Held,
  LOST_WORKERS_MAX,
  SILENT_FOR,
  WORKER_BACK,
  WORKER_KEPT_MS,
} from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { workerAgentsChanged } from "../connection/steps/change-abilities.ts";
import type { Transaction } from "../connection/transaction.ts";
import { firstClosedToWorkers } from "../counters/standing.ts";
import { notifyOfWorker } from "../log/steps/notify.ts";
import { hasSecondTenant } from "../tasks/steps/admit-task.ts";
import { beginAndFinish } from "../tasks/steps/finish-held-tasks.ts";
import { exchangeForWorkers } from "./exchange.ts";
import { DUE_AT, overdueAttempts } from "./overdue-attempts.ts";
import { preemptForWorkers } from "./preempt-for-workers.ts";
import { takeBack } from "./take-back.ts";

export function sqliteWorkers(db: SqliteDatabase): WorkerStorage {
  return {
    register: (worker) => db.transactDurably((tx) => register(tx, worker)),
    get: ({ tenant, id }) =>
      db.read(() => {
        const row = db
          .prepare<WorkerRow>(`${SELECT_WORKERS} where w.tenant = @tenant and w.id = @id`)
          .get({ tenant, id, since: firstMinute(db.now()) });
        return row === undefined ? null : toRecord(row);
      }),
    list: ({ tenant, limit = -1, after, agents }) =>
      db.read(() =>
        db
          .prepare<WorkerRow>(
            `${SELECT_WORKERS} where w.tenant = @tenant ${after === undefined ? "" : "and (w.name, w.id) > (@name, @id)"}
              ${agents === undefined ? "" : SERVES_ONE_OF} order by w.name, w.id limit @limit`,
          )
          .all({
            ...{ tenant, limit, since: firstMinute(db.now()) },
            ...(after && { name: after.name, id: after.id }),
            ...(agents && { agents: JSON.stringify(agents) }),
          })
          .map(toRecord),
      ),
    count: ({ tenant }) =>
      db.read(() =>
        db.prepare<WorkerCount>(COUNT_WORKERS).all({ tenant, silentAt: db.now() - NOT_POLLING_MS }),
      ),
    async renew({ signs }) {
      const polls = new Map<string, number>();
      for (const { worker, polls: asked } of signs)
        polls.set(worker, Math.max(polls.get(worker) ?? 0, asked ? 1 : 0));
      const beat = db.prepare<NamedRow & { readonly lost: 0 | 1 }>(
        `update worker set beat = beat + 1, seen_at = @now, polled_at = iif(s.polls, @now, polled_at)
           from (select value ->> 0 as id, value ->> 1 as polls from json_each(@signs)) s
          where worker.id = s.id
        returning worker.id, worker.lost, worker.tenant, worker.name, worker.agents, worker.slots`,
      );
      const known = db.write(() => beat.all({ now: db.now(), signs: JSON.stringify([...polls]) }));
      const back = known.filter(({ lost }) => lost === 1);
      const kept = back.length === 0 ? [] : db.transact((tx) => reviveWhileRoom(tx, back));
      const ids = new Set(known.map(({ id }) => id));
      for (const { id } of kept) ids.delete(id);
      return { unknown: [...polls.keys()].filter((id) => !ids.has(id)) };
    },
    async drain({ tenant, id }) {
      return db.transact((tx) => {
        const drain = tx.prepare("update worker set draining = 1 where tenant = ? and id = ?");
        if (drain.run(tenant, id).changes === 0) return false;
        tx.changedWorker(id);
        return true;
      });
    },
    async watch() {
      const workers = db
        .prepare<Omit<WatchedRow, "lost" | "draining"> & { lost: 0 | 1; draining: 0 | 1 }>(
          `select id as worker, tenant, name, beat, lost, lease_ms as leaseMs, slots, draining,
                  registered_at as registeredAt, polled_at as polledAt,
                  (select count(*) from lease where node = worker.id) as held
             from worker where lost = 0 or exists (select 1 from lease where node = worker.id) order by id`,
        )
        .all()
        .map((row) => ({ ...row, lost: row.lost === 1, draining: row.draining === 1 }));
      const isHeld = workers.some(({ held }) => held > 0);
      const due = isHeld ? db.prepare<{ at: number | null }>(NEXT_DUE).get() : undefined;
      const any = workers.length > 0 || db.prepare("select 1 from worker limit 1").get() !== undefined;
      return { workers, any, nextDueAt: due?.at ?? null };
    },
    async markLost({ worker, beat }) {
      return db.transact((tx) => {
        const row = tx
          .prepare<NamedRow & { readonly leaseMs: number; readonly draining: 0 | 1; readonly held: number }>(
            `update worker set lost = 1 where id = ? and beat = ? and lost = 0
             returning id, tenant, name, agents, slots, lease_ms as leaseMs, draining,
                       (select count(*) from lease where node = worker.id) as held`,
          )
          .get(worker, beat);
        if (row === undefined) return null;
        const { tenant, held, draining, leaseMs } = row;
        const hasLeft = draining === 1 && held === 0;
        if (!hasLeft)
          notifyOfWorker(tx, "worker.lost", {
            tenant,
            worker: toNotified(row, held),
            reason: `${SILENT_FOR}${leaseMs} ms`,
          });
        return forgetAgentsOf(tx, worker, row);
      });
    },
    async remove({ tenant, id }) {
      return db.transactDurably((tx) => {
        const row = tx
          .prepare<{ tenant: string; agents: string; lost: 0 | 1 }>(
            `delete from worker where tenant = @tenant and id = @id and not exists (select 1 from lease where node = @id)
             returning tenant, agents, lost`,
          )
          .get({ tenant, id });
        if (row === undefined) return false;
        tx.prepare("delete from worker_minute where worker = ?").run(id);
        if (row.lost === 0) forgetAgentsOf(tx, id, row);
        tx.changedWorker(id);
        return true;
      });
    },
    exchange: (params) => exchangeForWorkers(db, params),
    async attempts(params) {
      const [column, names] = "hashes" in params ? ["hash", params.hashes] : ["token", params.tokens];
      const find = db.prepare<AttemptRow>(
        `select a.*, l.token is not null as held from worker_attempt a
           left join lease l on l.task_seq = a.task_seq and l.token = a.token where a.${column} = ?`,
      );
      return [...names].flatMap((name) => {
        const row = find.get(name);
        if (row === undefined) return [];
        return {
          hash: row.hash,
          worker: row.worker,
          tenant: row.tenant,
          taskId: row.task_id,
          seq: row.task_seq,
          token: row.token,
          number: row.number,
          held: row.held === 1,
          recorded: row.recorded === 1,
          usage: toUsage(row),
        };
      });
    },
    async ends({ attempts }) {
      // Of a task that has ended, the last attempt is stored with it.
      const find = db.prepare<AttemptEnd>(
        `select outcome, error from attempt where task_seq = @seq and number = @number
          union all
         select last_outcome, error from task where seq = @seq and executions = @number and last_outcome is not null`,
      );
      return db.read(() => attempts.map(({ seq, number }) => find.get({ seq, number }) ?? null));
    },
    name: (params) => nameAttempts(db, params),
    takeBack: (params) => takeBack(db, params),
    overdue: (params) => overdueAttempts(db, params),
    preempt: (params) => preemptForWorkers(db, params),
    async prune() {
      if (hasOldRows(db)) db.transact((tx) => prune(tx));
    },
  };
}

type Registration = Awaited<ReturnType<WorkerStorage["register"]>>;
type WatchedRow = Awaited<ReturnType<WorkerStorage["watch"]>>["workers"][number];

const NEXT_DUE = `
  select nullif(min(${DUE_AT}), ${Number.MAX_SAFE_INTEGER}) as at
    from worker_attempt a join lease l on l.task_seq = a.task_seq and l.token = a.token`;

function register(tx: Transaction, worker: NewWorker): Registration {
  const { now } = tx;
  const known = tx
    .prepare<{ id: string; lost: 0 | 1; tenant: string; agents: string }>(
      "select id, lost, tenant, agents from worker where tenant = ? and instance = ?",
    )
    .get(worker.tenant, worker.instance);
  const served = firstClosedToWorkers(tx.db, worker);
  if (served !== null) return { served };
  const full = known?.lost === 0 ? null : new LiveCount(tx).fullFor(worker.tenant);
  if (full !== null) return { full };
  const values = {
    ...worker,
    id: known?.id ?? worker.id,
    agents: JSON.stringify(worker.agents),
    labels: JSON.stringify(worker.labels),
    now,
  };
  tx.prepare(
    `insert into worker (id, tenant, instance, key, name, agents, slots, labels, version, runtime, lease_ms, heartbeat_ms,
                         registered_at, seen_at)
     values (@id, @tenant, @instance, @key, @name, @agents, @slots, @labels, @version, @runtime, @leaseMs, @heartbeatMs, @now, @now)
     on conflict (id) do update set key = @key, name = @name, agents = @agents, slots = @slots, labels = @labels,
       version = @version, runtime = @runtime, lease_ms = @leaseMs, heartbeat_ms = @heartbeatMs, draining = 0, lost = 0,
       beat = beat + 1, registered_at = @now, seen_at = @now`,
  ).run(values);
  const before: string[] = known === undefined ? [] : JSON.parse(known.agents);
  const forgotten = known === undefined ? [] : rememberAgents(tx, known.tenant, before);
  writeAgents(tx, values.id, worker.tenant, worker.agents);
  workerAgentsChanged(tx, {
    worker: values.id,
    tenant: worker.tenant,
    agents: [...new Set([...before, ...worker.agents, ...forgotten])],
  });
  if (known !== undefined) tx.changedWorker(known.id);
  if (known?.lost !== 0)
    notifyOfWorker(tx, "worker.registered", {
      tenant: worker.tenant,
      worker: toNotified(values, null),
      reason: known === undefined ? null : WORKER_BACK,
    });
  return { id: values.id, isNew: known === undefined };
}

/** How many live workers each tenant has, while a transaction adds some. */
class LiveCount {
  readonly #isShared: boolean;
  readonly #own: Map<string, number>;
  #all: number;

  constructor(tx: Transaction) {
    const rows = tx
      .prepare<{ tenant: string; live: number }>(
        "select tenant, count(*) as live from worker where lost = 0 group by tenant",
      )
      .all();
    this.#isShared = hasSecondTenant(tx);
    this.#own = new Map(rows.map(({ tenant, live }) => [tenant, live]));
    this.#all = rows.reduce((sum, { live }) => sum + live, 0);
  }

  /** Which limit keeps another live worker of this tenant out; null: none. */
  fullFor(tenant: string): ReturnType<typeof workersFull> {
    return workersFull({ all: this.#all, own: this.#own.get(tenant) ?? 0, isShared: this.#isShared });
  }

  add(tenant: string): void {
    this.#all += 1;
    this.#own.set(tenant, (this.#own.get(tenant) ?? 0) + 1);
  }
}

/** Lets a worker that was lost, or is gone, no longer serve its agents. Returns them. */
function forgetAgentsOf(
  tx: Transaction,
  worker: string,
  { tenant, agents: json }: { tenant: string; agents: string },
): string[] {
  const agents: string[] = JSON.parse(json);
  const forgotten = rememberAgents(tx, tenant, agents);
  writeAgents(tx, worker, tenant, []);
  workerAgentsChanged(tx, { worker, tenant, agents: [...new Set([...agents, ...forgotten])] });
  return agents;
}

/** Returns the workers that stay lost, because there are too many others. */
function reviveWhileRoom(tx: Transaction, rows: readonly NamedRow[]): NamedRow[] {
  const live = new LiveCount(tx);
  return rows.filter((row) => {
    if (live.fullFor(row.tenant) !== null) return true;
    revive(tx, row);
    live.add(row.tenant);
    return false;
  });
}

function revive(tx: Transaction, row: NamedRow): void {
  const { id: worker, tenant } = row;
  tx.prepare("update worker set lost = 0 where id = ?").run(worker);
  const agents: string[] = JSON.parse(row.agents);
  writeAgents(tx, worker, tenant, agents);
  workerAgentsChanged(tx, { worker, tenant, agents });
  notifyOfWorker(tx, "worker.registered", { tenant, worker: toNotified(row, null), reason: WORKER_BACK });
}

/** What notifications say of a worker. */
type NamedRow = Pick<WorkerRow, "id" | "tenant" | "name" | "agents" | "slots">;

function toNotified(
  { id, name, agents, slots }: Omit<NamedRow, "tenant">,
  attempts: number | null,
): NotifiedWorker {
  return { id, name, agents: JSON.parse(agents), slots, attempts };
}

function writeAgents(tx: Transaction, worker: string, tenant: string, agents: readonly string[]): void {
  tx.prepare("delete from worker_agent where worker = ?").run(worker);
  const add = tx.prepare(
    "insert into worker_agent (tenant, agent, worker) values (?, ?, ?) on conflict do nothing",
  );
  for (const agent of agents) add.run(tenant, agent, worker);
}

/** Returns the agents that are forgotten instead. */
function rememberAgents(tx: Transaction, tenant: string, agents: readonly string[]): string[] {
  const remember = tx.prepare(
    `insert into worker_agent_seen (tenant, agent, at) values (?, ?, ?)
     on conflict (tenant, agent) do update set at = excluded.at`,
  );
  for (const agent of agents) if (agent !== ALL_AGENTS) remember.run(tenant, agent, tx.now);
  return tx
    .prepare<string>(
      `delete from worker_agent_seen
        where tenant = @tenant and agent in (
                select agent from worker_agent_seen where tenant = @tenant order by at desc, agent limit -1 offset +@max)
       returning agent`,
    )
    .pluck()
    .all({ tenant, max: AGENTS_SEEN_MAX });
}

async function nameAttempts(
  db: SqliteDatabase,
  { worker, attempts, all }: Parameters<WorkerStorage["name"]>[0],
): Promise<{ dropped: Held[] }> {
  return db.transact((tx) => {
    const held = tx
      .prepare<Pick<AttemptRow, "hash" | "token" | "unnamed_until" | "missed"> & { seq: number }>(
        `select a.hash, a.task_seq as seq, a.token, a.unnamed_until, a.missed
           from lease l join worker_attempt a on a.token = l.token and a.task_seq = l.task_seq
          where l.node = ? order by l.task_seq`,
      )
      .all(worker);
    const named = new Map(attempts.map(({ hash, usage }) => [hash, usage]));
    const dropped: Held[] = [];
    for (const { hash, seq, token, unnamed_until, missed } of held) {
      if (named.has(hash)) {
        if (unnamed_until !== null || missed > 0)
          tx.prepare("update worker_attempt set unnamed_until = null, missed = 0 where hash = ?").run(hash);
        if (unnamed_until !== null)
          beginAndFinish(tx, { node: worker, begun: [{ seq, token }], finishes: [], progress: [] });
        const usage = named.get(hash);
        if (usage !== undefined) writeUsage(tx, hash, usage);
      } else if (all && unnamed_until === null) {
        tx.prepare("update worker_attempt set missed = missed + 1 where hash = ?").run(hash);
        if (missed + 1 >= 2) dropped.push({ seq, token });
      }
    }
    if (held.length > 0) tx.signal("events");
    return { dropped };
  });
}

function writeUsage(tx: Transaction, hash: string, usage: AttemptUsage): void {
  tx.prepare(
    `update worker_attempt
        set input_tokens = max(coalesce(input_tokens, 0), @inputTokens), output_tokens = max(coalesce(output_tokens, 0), @outputTokens),
            context_tokens = coalesce(@contextTokens, context_tokens), context_window = coalesce(@contextWindow, context_window)
      where hash = @hash`,
  ).run({ hash, contextTokens: null, contextWindow: null, ...usage });
}

/** Whether there may be something to prune. Workers that only wait leave nothing. */
function hasOldRows(db: SqliteDatabase): boolean {
  return (
    db
      .prepare(
        "select 1 where exists (select 1 from worker_attempt) or exists (select 1 from worker_minute) or exists (select 1 from worker where lost = 1)",
      )
      .get() !== undefined
  );
}

function prune(tx: Transaction): void {
  const { now } = tx;
  tx.prepare(
    `update worker_attempt set ended_at = @now
      where ended_at is null and not exists (select 1 from lease l where l.task_seq = worker_attempt.task_seq and l.token = worker_attempt.token)`,
  ).run({ now });
  tx.prepare("delete from worker_attempt where ended_at <= ?").run(now - CLAIM_KEPT_MS);
  tx.prepare("delete from worker_minute where minute <= ?").run(firstMinute(now));
  tx.prepare(
    `delete from worker
      where lost = 1 and not exists (select 1 from lease where node = worker.id)
        and (seen_at <= @before or id in (
              select id from (select id, row_number() over (partition by tenant order by seen_at desc, id) as n
                                from worker where lost = 1)
               where n > @max))`,
  ).run({ before: now - WORKER_KEPT_MS, max: LOST_WORKERS_MAX });
}

function firstMinute(now: number): number {
  return Math.floor(now / 60_000) - 10;
}

interface WorkerRow {
  readonly id: string;
  readonly tenant: string;
  readonly instance: string | null;
  readonly key: string | null;
  readonly name: string;
  readonly agents: string;
  readonly slots: number;
  readonly labels: string;
  readonly version: string | null;
  readonly runtime: string | null;
  readonly lease_ms: number;
  readonly heartbeat_ms: number;
  readonly draining: 0 | 1;
  readonly lost: 0 | 1;
  readonly registered_at: number;
  readonly seen_at: number;
  readonly polled_at: number | null;
  readonly held: number;
  readonly done: number;
  readonly failed: number;
}

const SELECT_WORKERS = `
  select w.*, (select count(*) from lease where node = w.id) as held,
         (select coalesce(sum(done), 0) from worker_minute where worker = w.id and minute > @since) as done,
         (select coalesce(sum(failed), 0) from worker_minute where worker = w.id and minute > @since) as failed
    from worker w`;

/** Only live workers have rows there. */
const SERVES_ONE_OF = `
  and w.id in (select worker from worker_agent where tenant = @tenant and agent in (select value from json_each(@agents)))`;

/** As `workerState`. */
const COUNT_WORKERS = `
  select case when lost then 'lost' when draining then 'draining'
              when held < slots and max(registered_at, coalesce(polled_at, 0)) < @silentAt then 'not_polling'
              when held > 0 then 'busy' else 'idle' end as state,
         count(*) as count, sum(slots) as slots, sum(held) as held
    from (select w.*, (select count(*) from lease where node = w.id) as held from worker w where w.tenant = @tenant)
   group by 1 order by 1`;

function toRecord(row: WorkerRow): WorkerRecord {
  return {
    id: row.id,
    tenant: row.tenant,
    instance: row.instance,
    key: row.key,
    name: row.name,
    agents: JSON.parse(row.agents),
    slots: row.slots,
    labels: JSON.parse(row.labels),
    version: row.version,
    runtime: row.runtime,
    leaseMs: row.lease_ms,
    heartbeatMs: row.heartbeat_ms,
    draining: row.draining === 1,
    lost: row.lost === 1,
    registeredAt: row.registered_at,
    seenAt: row.seen_at,
    polledAt: row.polled_at,
    held: row.held,
    done: row.done,
    failed: row.failed,
  };
}

interface AttemptRow {
  readonly hash: string;
  readonly worker: string;
  readonly tenant: string;
  readonly task_id: string;
  readonly task_seq: number;
  readonly token: number;
  readonly number: number;
  readonly unnamed_until: number | null;
  readonly missed: number;
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly context_tokens: number | null;
  readonly context_window: number | null;
  readonly held: 0 | 1;
  readonly recorded: 0 | 1;
}

function toUsage(row: AttemptRow): AttemptUsage | null {
  if (row.input_tokens === null || row.output_tokens === null) return null;
  return {
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    ...(row.context_tokens === null ? {} : { contextTokens: row.context_tokens }),
    ...(row.context_window === null ? {} : { contextWindow: row.context_window }),
  };
}
