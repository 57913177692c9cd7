import { TASK_LOG_MAX } from "../../../model/task-log.ts";
import { piecesToPage, type StoredPiece, type TaskLogStorage } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { isOf } from "./read-tasks.ts";

/** Log lines are not counted and publish no events, so that no write takes the write lock. */
export function postgresTaskLogs(db: PostgresDatabase): TaskLogStorage {
  return {
    async append({ pieces }) {
      if (pieces.length === 0) return;
      await db.read({
        name: "append_task_log",
        text: "select append_task_log($1, $2, $3, $4, $5, $6)",
        values: [
          pieces.map(({ taskSeq }) => taskSeq),
          pieces.map(({ attempt }) => attempt),
          pieces.map(({ lastN }) => lastN),
          pieces.map(({ lines }) => lines.length),
          pieces.map(({ bytes }) => bytes),
          pieces.map(({ lines }) => JSON.stringify(lines.map(({ at, level, text }) => [at, level, text]))),
        ],
      });
    },
    async read({ tenant, agent = null, taskId, attempt = null, after, limit }) {
      const rows = await db.read<LogRow>({
        name: "read_task_log",
        text: READ,
        values: [tenant, taskId, attempt, after, limit + 1, agent],
      });
      const [first] = rows;
      if (first === undefined) return null;
      const pieces = rows.flatMap(({ last_n, lines }): StoredPiece[] =>
        last_n === null ? [] : [{ lastN: last_n, lines: JSON.parse(lines ?? "[]") }],
      );
      return piecesToPage(first.attempt, pieces, { after, limit, dropped: Number(first.dropped) });
    },
  };
}

interface LogRow {
  readonly attempt: number | null;
  readonly dropped: string;
  /** Null: there is nothing to read. */
  readonly last_n: number | null;
  readonly lines: string | null;
}

const READ = `
  with asked as (
    select t.seq, coalesce($3::integer, (select max(l.attempt) from task_log l where l.task_seq = t.seq)) as attempt
      from task t where t.id = $2 and ${isOf("t", "$1")} and t.agent = coalesce($6, t.agent))
  select a.attempt, l.last_n, l.lines,
         (select coalesce(max(k.last_n) - sum(k.count), 0) from task_log k
           where k.task_seq = a.seq and k.attempt = a.attempt) as dropped
    from asked a left join lateral (
      select last_n, lines from task_log
       where task_seq = a.seq and attempt = a.attempt and last_n > $4 order by last_n limit $5) l on true
   order by l.last_n`;

export const TASK_LOG_FUNCTIONS = `
-- Does not wait for a task that is about to be deleted: its log is deleted with it.
create function append_task_log(
  p_tasks bigint[], p_attempts integer[], p_lasts integer[], p_counts integer[], p_bytes integer[], p_lines text[])
returns void language plpgsql as $$
declare
  v_kept bigint[] := array(select seq from task where seq = any (p_tasks) for key share skip locked);
begin
  insert into task_log (task_seq, attempt, last_n, count, bytes, lines)
  select * from unnest(p_tasks, p_attempts, p_lasts, p_counts, p_bytes, p_lines) u(task, attempt, last, lines, bytes, piece)
   where u.task = any (v_kept)
  on conflict do nothing;
  delete from task_log d using (
    select task_seq, attempt, max(last_n) filter (where lines > ${TASK_LOG_MAX.lines} or bytes > ${TASK_LOG_MAX.bytes}) as last_n
      from (select l.task_seq, l.attempt, l.last_n, sum(l.count) over newer as lines, sum(l.bytes) over newer as bytes
              from task_log l
              join (select distinct * from unnest(p_tasks, p_attempts) u(task, attempt)) u
                on u.task = l.task_seq and u.attempt = l.attempt
            window newer as (partition by l.task_seq, l.attempt order by l.last_n desc)) summed
     group by task_seq, attempt) old
   where d.task_seq = old.task_seq and d.attempt = old.attempt and d.last_n <= old.last_n;
  delete from task_log d using (
    select l.task_seq, max(l.attempt) as last from task_log l where l.task_seq = any (p_tasks) group by l.task_seq) newest
   where d.task_seq = newest.task_seq and d.attempt <= newest.last - ${TASK_LOG_MAX.attempts};
end $$;
`;
