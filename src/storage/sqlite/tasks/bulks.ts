import type { BulkAction } from "../../../model/bulk.ts";
import type { BulkName, BulkRecord, BulkStep, BulkStorage, EndedTask, SteppedBulk } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { countAll } from "../log/roll-up.ts";
import { cancelAll } from "./cancel-tasks.ts";
import { deleteThese } from "./prune.ts";
import { retryNow } from "./retry-task.ts";

export function sqliteBulks(db: SqliteDatabase): BulkStorage {
  return {
    async add({ runningMax, keptMax, ...bulk }) {
      const added = db.write(() => {
        const { tenant } = bulk;
        const running = db
          .prepare<{ running: number }>(
            "select count(*) as running from bulk where tenant = ? and state = 'running'",
          )
          .get(tenant);
        if ((running?.running ?? 0) >= runningMax) return false;
        db.prepare(
          `delete from bulk where id in (select id from bulk where tenant = ? and state <> 'running'
                                          order by requested_at desc, id desc limit -1 offset +?)`,
        ).run(tenant, keptMax);
        db.prepare(
          `insert into bulk (id, tenant, action, filter, selection, ids, max_tasks, matched, last_seq, cursor,
                             requested_by, requested_at)
           values (@id, @tenant, @action, @filter, @selection, @ids, @limit, @matched, @lastSeq, @cursor, @by, @requestedAt)`,
        ).run({
          ...bulk,
          filter: toText(bulk.filter),
          selection: toText(bulk.selection),
          ids: toText(bulk.ids),
        });
        db.signal({ kind: "bulks" });
        return true;
      });
      await db.durable();
      return added;
    },
    get: (name) => db.read(() => readBulk(db, name)),
    async abort(name) {
      const bulk = db.write(() => {
        db.prepare(
          `update bulk set state = 'aborted', ids = null, lease_until = null
            where tenant = @tenant and id = @id and state = 'running'`,
        ).run({ tenant: name.tenant, id: name.id });
        return readBulk(db, name);
      });
      await db.durable();
      return bulk;
    },
    claim: async (params) => db.write((now) => claim(db, { ...params, now })),
    async step(params) {
      const stepped = db.write((now) => step(db, params, now));
      await db.durable();
      return stepped;
    },
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
  db: SqliteDatabase,
  { leaseMs, now }: { leaseMs: number; now: number },
): { bulk: BulkRecord | null; retryMs: number | null } {
  // A lease that ends later than any new one could was given before the clock was set back.
  const row = db
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
  const { free } = db
    .prepare<{ free: number | null }>("select min(lease_until) as free from bulk where state = 'running'")
    .get() as { free: number | null };
  return { bulk: null, retryMs: free === null ? null : free - now };
}

function step(db: SqliteDatabase, params: BulkStep, now: number): SteppedBulk | null {
  const bulk = readBulk(db, params);
  if (bulk === null || bulk.state !== "running" || bulk.cursor !== params.cursor) return null;
  const { tenant, id, next, ids } = params;
  const { done, failed, cancelled } = ACTIONS[bulk.action](db, bulk, ids, now);
  db.prepare(
    `update bulk set cursor = coalesce(@next, cursor), lease_until = null, done = done + @done, failed = failed + @failed,
                     skipped = skipped + @skipped, state = iif(@next is null, 'done', state), ids = iif(@next is null, null, ids)
      where tenant = @tenant and id = @id`,
  ).run({ tenant, id, next, done, failed, skipped: ids.length - done - failed });
  return { bulk: readBulk(db, params) as BulkRecord, cancelled };
}

interface Acted {
  readonly done: number;
  readonly failed: number;
  readonly cancelled: readonly EndedTask[];
}

const ACTIONS: Readonly<
  Record<BulkAction, (db: SqliteDatabase, bulk: BulkRecord, ids: readonly string[], now: number) => Acted>
> = {
  cancel(db, { tenant }, ids, now) {
    const answers = cancelAll(db, { tenant, ids, error: null }, now);
    const cancelled = answers.filter((answer) => answer.found && answer.was === null);
    return {
      done: cancelled.length,
      failed: answers.filter(({ found }) => !found).length,
      cancelled: cancelled as readonly EndedTask[],
    };
  },
  retry(db, { tenant, requestedAt }, ids, now) {
    const found = findTasks(db, tenant, ids);
    const retried = found.filter(({ id, completedAt }) => {
      if (completedAt === null || completedAt > requestedAt) return false;
      // The previous retry has written agent queues that are not committed, so the cache does not have them.
      db.lines.clear();
      const answer = retryNow(db, { tenant, id }, now);
      return answer.found && answer.was === null;
    });
    db.lines.clear();
    if (retried.length > 0) for (const kind of ["events", "work", "due"] as const) db.signal({ kind });
    return { done: retried.length, failed: ids.length - found.length, cancelled: [] };
  },
  delete(db, { tenant, requestedAt }, ids, now) {
    countAll(db, now);
    const found = findTasks(db, tenant, ids);
    const done = deleteThese(
      db,
      found.map(({ seq }) => seq),
      requestedAt,
    );
    return { done, failed: ids.length - found.length, cancelled: [] };
  },
};

function findTasks(
  db: SqliteDatabase,
  tenant: string,
  ids: readonly string[],
): { id: string; seq: number; completedAt: number | null }[] {
  const find = db.prepare<{ id: string; seq: number; completedAt: number | null }>(
    "select id, seq, completed_at as completedAt from task where tenant = ? and id = ?",
  );
  return ids.flatMap((id) => find.get(tenant, id) ?? []);
}
