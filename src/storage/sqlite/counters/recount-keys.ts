import type { RecountSlices } from "./recount-slices.ts";

const ACTIVE = "t.resting_state = 'queued' and t.parked is null";
const HAS_KEY = `(t.concurrency_key is null or exists (
  select 1 from key_hold h where h.tenant = t.tenant and h.key = t.concurrency_key and h.task_seq = t.seq))`;

/**
 * The holder of a key is ready or in flight, and it is the only one. No task waits for a key that is free, or for one that
 * claims do not check.
 */
export async function checkKeys(recount: RecountSlices): Promise<void> {
  await recount.checkRows<{ tenant: string; key: string }>(
    "concurrency keys of tasks that are ready or in flight",
    {
      sql: `select h.tenant, h.key, exists (
                     select 1 from task t where t.seq = h.task_seq and ${ACTIVE} and t.tenant = h.tenant and t.concurrency_key = h.key)
                     as right
              from key_hold h where (h.tenant, h.key) > (?, ?) order by h.tenant, h.key limit +?`,
      first: ["", ""],
      keyOf: ({ tenant, key }) => [tenant, key],
    },
  );
  await recount.checkRows<{ line: number; rank: number; task_seq: number }>(
    "ready tasks that have their concurrency key",
    {
      sql: `select r.line, r.rank, r.task_seq, coalesce((select ${HAS_KEY} from task t where t.seq = r.task_seq), 1) as right
              from ready r where (r.line, r.rank, r.task_seq) > (?, ?, ?) order by r.line, r.rank, r.task_seq limit +?`,
      first: [-1, 0, 0],
      keyOf: ({ line, rank, task_seq: seq }) => [line, rank, seq],
    },
  );
  await recount.checkRows<{ task_seq: number }>("attempts that have their concurrency key", {
    sql: `select l.task_seq, l.concurrency_key is t.concurrency_key and ${HAS_KEY} as right
            from lease l join task t on t.seq = l.task_seq where l.task_seq > ? order by l.task_seq limit +?`,
    first: [-1],
    keyOf: ({ task_seq: seq }) => [seq],
  });
  await recount.checkRows<{ tenant: string; key: string; rank: number; seq: number }>(
    "tasks that wait for a concurrency key that another has",
    {
      sql: `select t.tenant, t.concurrency_key as key, t.rank, t.seq,
                   coalesce(h.contested = 1 or o.line = t.line, 0) as right
              from task t left join key_hold h on h.tenant = t.tenant and h.key = t.concurrency_key
              left join task o on o.seq = h.task_seq
             where t.parked = 'key' and (t.tenant, t.concurrency_key, t.rank, t.seq) > (?, ?, ?, ?)
             order by t.tenant, t.concurrency_key, t.rank, t.seq limit +?`,
      first: ["", "", Number.MIN_SAFE_INTEGER, 0],
      keyOf: ({ tenant, key, rank, seq }) => [tenant, key, rank, seq],
    },
  );
}
