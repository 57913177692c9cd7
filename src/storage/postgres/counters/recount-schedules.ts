import type { RecountChecks } from "./recount-slices.ts";

/** Open runs of schedules. */
export const SCHEDULE_CHECKS: RecountChecks = {
  pages: [
    {
      ids: "select id from schedule where id > $1 order by id limit $2",
      faults: `
select 'schedule ' || s.id || ' open_runs' as counter, s.open_runs as stored, r.runs as counted
  from schedule s
 cross join lateral (select count(*) as runs from run r where r.schedule + 0 = s.id and r.status = 'running') r
 where s.id = any ($1) and s.open_runs <> r.runs`,
    },
  ],
  whole: [
    // A run is open as long as its task is.
    `
select 'runs whose tasks go' as counter, sum(c.right_ones) as stored, sum(c.runs) as counted
  from schedule s
 cross join lateral (
   select count(*) as runs, count(*) filter (where t.completed_at is null and t.seq is not null) as right_ones
     from run r left join task t on t.id = r.task_id where r.schedule + 0 = s.id and r.status = 'running') c
 where s.open_runs > 0 or c.runs > 0
having sum(c.right_ones) <> sum(c.runs)`,
  ],
};
