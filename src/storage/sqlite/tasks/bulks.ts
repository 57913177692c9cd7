import type { BulkAction } from "../../../model/bulk.ts";
import type { BulkName, BulkRecord, BulkStep, BulkStorage, EndedTask, SteppedBulk } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { countAll } from "../log/steps/roll-up.ts";
import { cancelAll } from "./steps/cancel-all.ts";
import { deleteThese } from "./steps/delete-task.ts";
import { retryNow } from "./steps/retry-now.ts";

export function sqliteBulks(db: SqliteDatabase): BulkStorage {
  return {
    async add({ runningMax, keptMax, ...bulk }) {
      return db.transactDurably((tx) => {
        const { tenant } = bulk;
        const running = tx
          .prepare<{ running: number }>(
            "select count(*) as running from bulk where tenant = ? and state = 'running'",
          )
          .get(tenant);
        if ((running?.running ?? 0) >= runningMax) return false;
        tx.prepare(
          `delete from bulk where id in (select id from bulk where tenant = ? and state <> 'running'
                                          order by requested_at desc, id desc limit -1 offset +?)`,
        ).run(tenant, keptMax);
        tx.prepare(
          `insert into bulk (id, tenant, action, filter, selection, ids, max_tasks, matched, last_seq, cursor,
                             requested_by, requested_at)
           values (@id, @tenant, @action, @filter, @selection, @ids, @limit, @matched, @lastSeq, @cursor, @by, @requestedAt)`,
        ).run({
          ...bulk,
          filter: toText(bulk.filter),
          selection: toText(bulk.selection),
          ids: toText(bulk.ids),
        });
        tx.signal("bulks");
        return true;
      });
    },
    get: (name) => db.read(() => readBulk(db, name)),
    async abort(name) {
      return db.transactDurably((tx) => {
        tx.prepare(
          `update bulk set state = 'aborted', ids = null, lease_until = null
            where tenant = @tenant and id = @id and state = 'running'`,
        ).run({ tenant: name.tenant, id: name.id });
        return readBulk(db, name);
      });
    },
    claim: async (params) => db.transact((tx) => claim(tx, params)),
    step: (params) => db.transactDurably((tx) => step(tx, params)),
  };
}

interface BulkRow extends Omit<BulkRecord, "filter" | "selection" | "ids"> {
  readonly filter: string | null;
  readonly selection: string | null;
  readonly ids: string | null;
}

const COLUMNS = `id, tenant, action, filter, selection, ids, max_tasks as "limit", matched, last_seq as lastSeq, cursor,
  requested_by as "by", requested_at as requestedAt, state, done, failed, skipped`;

function readBulk(db: SqliteDatabase, { tenant, id }: BulkName): BulkRecord | null {
  const row = db.prepare<BulkRow>(`select ${COLUMNS} from bulk where tenant = ? and id = ?`).get(tenant, id);
  return row === undefined ? null : toRecord(row);
}

function toRecord({ filter, selection, ids, ...row }: BulkRow): BulkRecord {
  return { ...row, filter: fromText(filter), selection: fromText(selection), ids: fromText(ids) };
}

function toText(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}

function fromText<Value>(text: string | null): Value | null {
  return text === null ? null : (JSON.parse(text) as Value);
}

function claim(
  tx: Transaction,
  { leaseMs }: { leaseMs: number },
): { bulk: BulkRecord | null; retryMs: number | null } {
  const { now } = tx;
  // A lease that ends later than any new one could was given before the clock was set back.
  const row = tx
    .prepare<BulkRow>(
      `update bulk set lease_until = @now + @leaseMs,
                       served = (select max(served) + 1 from bulk where state = 'running')
        where id = (select b.id from bulk b
                     where b.state = 'running'
                       and (b.lease_until is null or b.lease_until <= @now or b.lease_until > @now + @leaseMs)
                     order by (select max(o.served) from bulk o where o.state = 'running' and o.tenant = b.tenant),
                              b.served, b.requested_at, b.id limit 1)
       returning ${COLUMNS}`,
    )
    .get({ now, leaseMs });
  if (row !== undefined) return { bulk: toRecord(row), retryMs: 0 };
  const { free } = tx
    .prepare<{ free: number | null }>("select min(lease_until) as free from bulk where state = 'running'")
    .get() as { free: number | null };
  return { bulk: null, retryMs: free === null ? null : free - now };
}

function step(tx: Transaction, params: BulkStep): SteppedBulk | null {
  const bulk = readBulk(tx.db, params);
  if (bulk === null || bulk.state !== "running" || bulk.cursor !== params.cursor) return null;
  const { tenant, id, next, ids } = params;
  const { done, failed, cancelled } = ACTIONS[bulk.action](tx, bulk, ids);
  tx.prepare(
    `update bulk set cursor = coalesce(@next, cursor), lease_until = null, done = done + @done, failed = failed + @failed,
                     skipped = skipped + @skipped, state = iif(@next is null, 'done', state), ids = iif(@next is null, null, ids)
      where tenant = @tenant and id = @id`,
  ).run({ tenant, id, next, done, failed, skipped: ids.length - done - failed });
  return { bulk: readBulk(tx.db, params) as BulkRecord, cancelled };
}

interface Acted {
  readonly done: number;
  readonly failed: number;
  readonly cancelled: readonly EndedTask[];
}

const ACTIONS: Readonly<
  Record<BulkAction, (tx: Transaction, bulk: BulkRecord, ids: readonly string[]) => Acted>
> = {
  cancel(tx, { tenant }, ids) {
    const answers = cancelAll(tx, { tenant, ids, error: null });
    const cancelled = answers.filter((answer) => answer.found && answer.was === null);
    return {
      done: cancelled.length,
      failed: answers.filter(({ found }) => !found).length,
      cancelled: cancelled as readonly EndedTask[],
    };
  },
  retry(tx, { tenant, requestedAt }, ids) {
    const found = findTasks(tx, tenant, ids);
    const retried = found.filter(({ id, completedAt }) => {
      if (completedAt === null || completedAt > requestedAt) return false;
      const answer = retryNow(tx, { tenant, id });
      // Each retry finds the queues as the previous one left them.
      tx.save();
      return answer.found && answer.was === null;
    });
    if (retried.length > 0) tx.signal("events", "work", "due");
    return { done: retried.length, failed: ids.length - found.length, cancelled: [] };
  },
  delete(tx, { tenant, requestedAt }, ids) {
    countAll(tx);
    const found = findTasks(tx, tenant, ids);
    const done = deleteThese(
      tx,
      found.map(({ seq }) => seq),
      requestedAt,
    );
    return { done, failed: ids.length - found.length, cancelled: [] };
  },
};

function findTasks(
  tx: Transaction,
  tenant: string,
  ids: readonly string[],
): { id: string; seq: number; completedAt: number | null }[] {
  const find = tx.prepare<{ id: string; seq: number; completedAt: number | null }>(
    "select id, seq, completed_at as completedAt from task where tenant = ? and id = ?",
  );
  return ids.flatMap((id) => find.get(tenant, id) ?? []);
}
