import { maxOf } from "../sessions/settle-sessions.ts";
import type { RecountChecks } from "./recount-slices.ts";

/** Whether `u` is the turn that task `t` should have in its session. */
const IS_RIGHT_TURN = `
  coalesce(u.is_message = coalesce(t.origin = 'message', false) and case u.stage
             when 'early' then t.resting_state in ('waiting_dependency', 'delayed')
             when 'parked' then t.resting_state = 'queued' and t.parked is null
             else t.resting_state in ('queued', 'delayed') end, false)`;

/** Counters of sessions, and the turns of their tasks. */
export const SESSION_CHECKS: RecountChecks = {
  rows: [
    {
      name: "tasks of sessions that have their turn",
      first: ["0"],
      text: `
select count(*) as rows, count(*) filter (where t.session is null or t.completed_at is not null or ${IS_RIGHT_TURN}) as right_ones,
       array[max(t.seq)::text] as last_key
  from (select * from task where seq > $1 order by seq limit $2) t
  left join turn u on u.task_seq = t.seq and u.session = t.session and u.place = t.place`,
    },
    {
      name: "turns of tasks",
      first: ["-1", "", "0"],
      text: `
select count(*) as rows, count(*) filter (where t.completed_at is null and ${IS_RIGHT_TURN}) as right_ones,
       (array_agg(array[u.session::text, u.stage, u.place::text] order by u.session desc, u.stage desc, u.place desc))[1:1]
         as last_key
  from (select * from turn where (session, stage, place) > ($1, $2, $3) order by session, stage, place limit $4) u
  left join task t on t.seq = u.task_seq and t.session = u.session and t.place = u.place`,
    },
  ],
  pages: [
    {
      ids: "select id from session where id > $1 order by id limit $2",
      faults: `
select 'session ' || s.tenant || '/' || s.key || ' ' || c.name as counter, c.stored, c.counted
  from session s
  left join (select session, count(*) filter (where stage = 'in') as active, count(*) filter (where stage = 'parked') as parked,
                    count(*) filter (where stage = 'parked' and taken_by is null) as untaken,
                    count(*) as open, count(*) filter (where is_message) as messages, max(place) as last_place,
                    min(place) filter (where stage = 'parked') as first_parked
               from turn where session = any ($1) group by session) u on u.session = s.id
 cross join lateral (values
   ('active', s.active, coalesce(u.active, 0)),
   ('parked', s.parked, coalesce(u.parked, 0)),
   ('open', s.open, coalesce(u.open, 0)),
   ('messages', s.messages, coalesce(u.messages, 0)),
   ('last_place', greatest(s.last_place, u.last_place), s.last_place),
   ('first_parked', least(s.first_parked, u.first_parked), s.first_parked),
   ('unsettled', case when (u.untaken > 0 and s.active < ${maxOf("s")}) or (s.parked > 0 and s.first_parked <= s.cutoff)
                      then 1 else 0 end, 0))
   c(name, stored, counted)
 where s.id = any ($1) and c.stored <> c.counted`,
    },
  ],
  whole: [
    `
select 'sessions of leases' as counter, count(*) filter (where l.session is not distinct from t.session) as stored,
       count(*) as counted
  from lease l join task t on t.seq = l.task_seq
having count(*) filter (where l.session is not distinct from t.session) <> count(*)`,
  ],
};
