import type { TaskCounts } from "../../task-counts.ts";
import { PARKED_TURN } from "./parked-turn.ts";
import type { RecountSlices } from "./recount-slices.ts";

/** Adds all tasks to `counts`, and checks that each queued task is ready, held or parked. */
export async function countAllTasks(recount: RecountSlices, counts: TaskCounts): Promise<void> {
  const found = { queued: 0, once: 0 };
  for (let from = 0, more = true; more; ) {
    const groups = await recount.query<GroupRow>(COUNT_TASKS, [from, recount.rows]);
    let rows = 0;
    let upTo = from;
    for (const group of groups) {
      const tasks = Number(group.tasks);
      counts.add({ ...group, agentQueue: Number(group.line), session: null, inSession: false, tasks });
      rows += tasks;
      upTo = Math.max(upTo, Number(group.last_seq));
    }
    const [slice] = await recount.query<{ queued: string; once: string }>(COUNT_QUEUED, [from, upTo]);
    found.queued += Number(slice?.queued ?? 0);
    found.once += Number(slice?.once ?? 0);
    from = upTo;
    more = rows === recount.rows;
    await recount.sliceDone(rows);
  }
  recount.compare("queued tasks that are ready, held or parked", found.once, found.queued);
}

interface GroupRow {
  readonly line: string;
  readonly tenant: string;
  readonly state: string;
  readonly ended: boolean;
  readonly parked: boolean;
  readonly exempt: boolean;
  readonly isMessage: boolean;
  readonly batch: string | null;
  readonly tasks: string;
  readonly last_seq: string;
}

const COUNT_TASKS = `
select t.line, t.tenant, t.resting_state as state, t.completed_at is not null as ended,
       t.parked is not null or u.place is not null as parked, t.origin is not null as exempt,
       coalesce(t.origin = 'message', false) as "isMessage", case when t.completed_at is null then t.batch end as batch,
       count(*) as tasks, max(t.seq) as last_seq
  from (select seq, line, tenant, resting_state, completed_at, parked, origin, batch, session, place
          from task where seq > $1 order by seq limit $2) t
  ${PARKED_TURN}
 group by 1, 2, 3, 4, 5, 6, 7, 8`;

/** A queued task is exactly one of these: ready, parked, or held by an attempt. */
const COUNT_QUEUED = `
select count(*) as queued,
       coalesce(sum((t.parked is not null)::integer + (u.place is not null)::integer + (l.task_seq is not null)::integer
                  + (r.task_seq is not null)::integer), 0) as once
  from task t
  ${PARKED_TURN}
  left join lease l on l.task_seq = t.seq
  left join ready r on r.line = t.line and r.rank = t.rank and r.task_seq = t.seq
 where t.seq > $1 and t.seq <= $2 and t.resting_state = 'queued'`;
