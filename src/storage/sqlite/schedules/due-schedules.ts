import { inTurns } from "../../in-turns.ts";
import { DUE_BYTES, type DueParams, type ScheduleRecord } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { SCHEDULE_BYTES, type ScheduleRow, toScheduleRecord } from "./schedule-row.ts";

export function dueSchedules(db: SqliteDatabase, { limit, after = "" }: DueParams): ScheduleRecord[] {
  const now = db.clock.now();
  const found = hasMore(db, now, limit) ? sharesOfTenants(db, { limit, after, now }) : allDue(db, now);
  const read = db.prepare<ScheduleRow>("select * from schedule where id = ?");
  return inTurns(withoutLarge(found), after).map(({ id }) => toScheduleRecord(read.get(id) as ScheduleRow));
}

/** A due schedule, without its fields. */
interface FoundSchedule {
  readonly id: number;
  readonly tenant: string;
  readonly bytes: number;
}

const FOUND = `id, tenant, ${SCHEDULE_BYTES} as bytes`;

/** Those of each tenant that take up to `DUE_BYTES` together, and at least one. */
function withoutLarge(found: readonly FoundSchedule[]): FoundSchedule[] {
  const bytes = new Map<string, number>();
  return found.filter(({ tenant, bytes: own }) => {
    const before = bytes.get(tenant);
    const sum = (before ?? 0) + own;
    bytes.set(tenant, sum);
    return before === undefined || sum <= DUE_BYTES;
  });
}

/**
 * Whether more than `limit` are due. Only then are their tenants looked up, which takes a step for each tenant with schedules.
 */
function hasMore(db: SqliteDatabase, now: number, limit: number): boolean {
  const beyond = db.prepare("select 1 from schedule where next_fire_at <= ? limit 1 offset +?");
  return beyond.get(now, limit) !== undefined;
}

function allDue(db: SqliteDatabase, now: number): FoundSchedule[] {
  return db
    .prepare<FoundSchedule>(`select ${FOUND} from schedule where next_fire_at <= ? order by next_fire_at, id`)
    .all(now);
}

function sharesOfTenants(
  db: SqliteDatabase,
  { limit, after, now }: Required<DueParams> & { now: number },
): FoundSchedule[] {
  const tenants = dueTenants(db, { above: after, upTo: null, limit, now });
  // Wraps around to the first tenants.
  if (tenants.length < limit) {
    tenants.push(...dueTenants(db, { above: "", upTo: after, limit: limit - tenants.length, now }));
  }
  const share = Math.floor(limit / tenants.length);
  const find = db.prepare<FoundSchedule>(
    `select ${FOUND} from schedule where tenant = ? and next_fire_at <= ? order by next_fire_at, id limit +?`,
  );
  return tenants.flatMap((tenant) => find.all(tenant, now, share));
}

/** Steps from tenant to tenant through the index, so that it does not read all schedules of a tenant. */
function dueTenants(
  db: SqliteDatabase,
  params: { above: string; upTo: string | null; limit: number; now: number },
): string[] {
  return db
    .prepare<{ tenant: string }>(
      `with recursive owner (tenant) as (
         select min(tenant) from schedule where tenant > @above and next_fire_at is not null
         union all
         select (select min(s.tenant) from schedule s where s.tenant > owner.tenant and s.next_fire_at is not null)
           from owner where owner.tenant is not null and (@upTo is null or owner.tenant <= @upTo))
       select tenant from owner
        where tenant is not null and (@upTo is null or tenant <= @upTo)
          and exists (select 1 from schedule s where s.tenant = owner.tenant and s.next_fire_at <= @now)
        limit +@limit`,
    )
    .all(params)
    .map(({ tenant }) => tenant);
}

export function nextDueAt(db: SqliteDatabase, tenant: string | undefined): number | null {
  const next = "select min(next_fire_at) as at from schedule where next_fire_at is not null";
  const row =
    tenant === undefined
      ? db.prepare<{ at: number | null }>(next).get()
      : db.prepare<{ at: number | null }>(`${next} and tenant = ?`).get(tenant);
  return row?.at ?? null;
}
