import { TASK_LOG_MAX } from "../../../model/task-log.ts";
import { piecesToPage, type TaskLogStorage } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";

export function sqliteTaskLogs(db: SqliteDatabase): TaskLogStorage {
  return {
    async append({ pieces }) {
      if (pieces.length === 0) return;
      await db.transactDurably((tx) => {
        const add = tx.prepare(ADD);
        const trim = tx.prepare(TRIM);
        const forget = tx.prepare(FORGET);
        for (const { taskSeq, attempt, lastN, bytes, lines } of pieces) {
          const kept = JSON.stringify(lines.map(({ at, level, text }) => [at, level, text]));
          add.run({ taskSeq, attempt, lastN, count: lines.length, bytes, lines: kept });
          trim.run({ taskSeq, attempt });
          forget.run({ taskSeq });
        }
      });
    },
    async read({ tenant, agent, taskId, attempt: asked, after, limit }) {
      return db.read(() => {
        const task = db
          .prepare<{ seq: number; last: number | null }>(
            `select seq, (select max(attempt) from task_log where task_seq = task.seq) as last
               from task where tenant = ? and id = ? and agent = coalesce(?, agent)`,
          )
          .get(tenant, taskId, agent ?? null);
        if (task === undefined) return null;
        const attempt = asked ?? task.last;
        const kept = db
          .prepare<{ lines: number; last: number }>(
            `select coalesce(sum(count), 0) as lines, coalesce(max(last_n), 0) as last
               from task_log where task_seq = ? and attempt = ?`,
          )
          .get(task.seq, attempt);
        const pieces = db
          .prepare<{ lastN: number; lines: string }>(
            `select last_n as lastN, lines from task_log
              where task_seq = ? and attempt = ? and last_n > ? order by last_n limit +?`,
          )
          .all(task.seq, attempt, after, limit + 1);
        return piecesToPage(
          attempt,
          pieces.map(({ lastN, lines }) => ({ lastN, lines: JSON.parse(lines) })),
          { after, limit, dropped: (kept?.last ?? 0) - (kept?.lines ?? 0) },
        );
      });
    },
  };
}

const ADD = `
  insert into task_log (task_seq, attempt, last_n, count, bytes, lines)
  select @taskSeq, @attempt, @lastN, @count, @bytes, @lines from task where seq = @taskSeq
  on conflict do nothing`;

const TRIM = `
  delete from task_log where task_seq = @taskSeq and attempt = @attempt and last_n <= (
    select max(last_n) from (
      select last_n, sum(count) over newer as lines, sum(bytes) over newer as bytes from task_log
       where task_seq = @taskSeq and attempt = @attempt window newer as (order by last_n desc))
     where lines > ${TASK_LOG_MAX.lines} or bytes > ${TASK_LOG_MAX.bytes})`;

const FORGET = `
  delete from task_log where task_seq = @taskSeq and attempt <= (
    select max(attempt) from task_log where task_seq = @taskSeq) - ${TASK_LOG_MAX.attempts}`;
