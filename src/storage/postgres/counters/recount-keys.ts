import type { RecountChecks } from "./recount-slices.ts";

/** Whether task `t` has its concurrency key, where it has one. */
const HAS_KEY = `(t.concurrency_key is null or exists (
    select 1 from key_hold h where h.tenant = t.tenant and h.key = t.concurrency_key and h.task_seq = t.seq))`;

/** Concurrency keys, the tasks that have them and the tasks that wait for them. */
export const KEY_CHECKS: RecountChecks = {
  rows: [
    {
      name: "concurrency keys of tasks that are ready or in flight",
      first: ["", ""],
      text: `
select count(*) as rows, count(t.seq) as right_ones,
       (array_agg(array[h.tenant, h.key] order by h.tenant desc, h.key desc))[1:1] as last_key
  from (select * from key_hold where (tenant, key) > ($1, $2) order by tenant, key limit $3) h
  left join task t on t.seq = h.task_seq and t.resting_state = 'queued' and t.parked is null and t.tenant = h.tenant
   and t.concurrency_key = h.key
   and (exists (select 1 from ready r where r.line = t.line and r.rank = t.rank and r.task_seq = t.seq)
        or exists (select 1 from lease l where l.task_seq = t.seq))`,
    },
    {
      name: "ready tasks that have their concurrency key",
      first: ["-1", "0", "0"],
      text: `
select count(*) as rows, count(*) filter (where t.seq is null or ${HAS_KEY}) as right_ones,
       (array_agg(array[r.line::text, r.rank::text, r.task_seq::text] order by r.line desc, r.rank desc, r.task_seq desc))[1:1]
         as last_key
  from (select * from ready where (line, rank, task_seq) > ($1, $2, $3) order by line, rank, task_seq limit $4) r
  left join task t on t.seq = r.task_seq`,
    },
    {
      name: "tasks that wait for a concurrency key that another has",
      first: ["", "", "-9223372036854775808", "0"],
      text: `
select count(*) as rows,
       count(*) filter (where h.task_seq is not null and (h.contested or o.line = t.line)) as right_ones,
       (array_agg(array[t.tenant, t.concurrency_key, t.rank::text, t.seq::text]
                  order by t.tenant desc, t.concurrency_key desc, t.rank desc, t.seq desc))[1:1] as last_key
  from (select * from task
         where parked = 'key' and (tenant, concurrency_key, rank, seq) > ($1, $2, $3, $4)
         order by tenant, concurrency_key, rank, seq limit $5) t
  left join key_hold h on h.tenant = t.tenant and h.key = t.concurrency_key
  left join task o on o.seq = h.task_seq`,
    },
  ],
  whole: [
    `
select 'attempts that have their concurrency key' as counter, count(*) filter (where ${HAS_KEY}) as stored, count(*) as counted
  from lease l join task t on t.seq = l.task_seq
having count(*) filter (where ${HAS_KEY}) <> count(*)`,
  ],
};
