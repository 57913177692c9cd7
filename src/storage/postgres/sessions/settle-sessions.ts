import { SESSION_ENDS, THROTTLE_SHARE } from "../../../model/session.ts";
import { readSql } from "../connection/sql-file.ts";
import { parkedBy } from "../tasks/batches.ts";

/** `effectiveMaxConcurrent` of a row `s` of `session`. As a float, as in TypeScript. */
export function maxOf(s: string): string {
  return `case when ${s}.tokens >= ${THROTTLE_SHARE}::float8 * ${s}.context_window then 1
               else coalesce(${s}.max_concurrent, ${s}.default_max) end`;
}

/** Whether a session has anything to settle: it has admitted too many tasks, has room for more, or holds a stale one. */
export function isUnsettled(s: string): string {
  return `(${s}.active > ${maxOf(s)}
           or (${s}.parked > 0 and (${s}.active < ${maxOf(s)} or ${s}.first_parked <= ${s}.cutoff)))`;
}

/**
 * The address (ctid) of the turn of a row `t` of `task`. A subquery of one value: for a join the planner may read all turns of a
 * stage while there are few.
 */
export function turnOf(t: string, ...stages: readonly ("early" | "parked" | "in")[]): string {
  const names = stages.map((stage) => `'${stage}'`).join(", ");
  return `(select u.ctid from turn u where u.session = ${t}.session and u.stage in (${names}) and u.place = ${t}.place)`;
}

/** Whether a running attempt of a row `s` of `session` has taken messages. */
const HAS_TAKEN = `
  (s.parked > 0 and exists (select 1 from turn u where u.session = s.id and u.steer_until is not null and u.taken_by is not null))`;

/** What the end of waiting tasks may concern. */
const SIGNALS_OF_ENDS = JSON.stringify({
  from: "",
  signals: [{ kind: "events" }, { kind: "work" }, { kind: "release" }, { kind: "deliveries" }],
});

/** Whether the session has admitted the task of turn `u`, and the task waits for a slot. `offset 0`: looks them up, rather than reading all tasks. */
const UNSTARTED = `
  u.stage = 'in' and not exists (select 1 from lease l where l.task_seq = u.task_seq offset 0)
  and exists (select 1 from task q where q.seq = u.task_seq and q.resting_state = 'queued' offset 0)`;

/**
 * Admitting a task is a lookup in the index of turns, from the first position that can be parked on, however many wait. If one task
 * may run at once, nothing else is read. If several may, the admitted ones are read, too.
 */
export const SETTLE_SESSION_FUNCTIONS = readSql(new URL("./settle-sessions.sql", import.meta.url), {
  IS_UNSETTLED: isUnsettled("s"),
  IS_ADMITTED_TURN: turnOf("t", "in"),
  IS_OPEN_TURN: turnOf("t", "early", "parked", "in"),
  SESSION_MAX: maxOf("s"),
  HAS_TAKEN,
  SIGNALS_OF_ENDS,
  UNSTARTED,
  STALE: SESSION_ENDS.stale,
  PARKED_BY: parkedBy("t"),
});
