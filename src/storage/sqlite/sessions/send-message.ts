import {
  DEBOUNCE_WINDOWS_MAX,
  DEFAULT_STEER_MS,
  SESSION_ENDS,
  type SessionMode,
} from "../../../model/session.ts";
import { joinMessages } from "../../join-messages.ts";
import type { EndedTask, InsertedTask, NewTask, SendParams, SentMessage } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import type { SessionRow } from "../counters/session-ledger.ts";
import { NO_ADMISSION } from "../tasks/steps/admit-task.ts";
import { endNow, signalCancelled } from "../tasks/steps/cancel-all.ts";
import { countBounded } from "../tasks/steps/count-bounded.ts";
import { WAITING_COLUMNS, type WaitingTask } from "../tasks/steps/end-waiting-task.ts";
import { endDebounce } from "../tasks/steps/enter-queue.ts";
import { alreadyInserted, insertTask } from "../tasks/steps/insert-task.ts";
import { checkMaxSessions } from "./steps/check-max-sessions.ts";
import { cancelSession, OPEN_IN_SESSION } from "./steps/open-tasks.ts";

/** Inserts a message. */
export function sendMessage(db: SqliteDatabase, params: SendParams): Promise<SentMessage> {
  return db.transactDurably((tx) => send(tx, params));
}

function send(tx: Transaction, params: SendParams): SentMessage {
  const { task, defaults } = params;
  if (task.session === null) throw new Error("A message goes to a session.");
  const known = alreadyInserted(tx, task.id);
  if (known !== null) return { refused: null, task: known, merged: false, cancelled: [] };

  const { tenant, session: given } = task;
  if (params.maxConcurrent !== null) checkMaxSessions(tx, { tenant, key: given.key }, params.maxSessions);
  const session = tx.ledger.sessions.ensure(task.tenant, task.session.key, task.session.maxConcurrent);
  const mode = params.mode ?? session.mode ?? defaults.mode;
  const steerMs = mode === "steer" && isRunning(tx, session) ? (params.steerMs ?? DEFAULT_STEER_MS) : null;
  const isDebounced = mode !== "interrupt" && mode !== "collect" && steerMs === null;
  const windowMs = isDebounced ? (session.debounce_ms ?? defaults.debounceMs) : 0;
  const merged = merge(tx, session, { task, mode, windowMs });
  const room = merged === null ? makeRoom(tx, session, { defaults, mode }) : { cancelled: [] };
  if ("refused" in room) {
    tx.discard();
    return room;
  }
  session.agent = task.agent;
  session.lane = task.lane;
  session.max_concurrent = params.maxConcurrent ?? session.max_concurrent;
  if (params.maxConcurrent !== null) session.pinned = 1;
  const answer = merged ?? take(tx, session, { task, mode, windowMs, steerMs });
  if (params.bounds !== undefined && merged === null) countBounded(tx, params.bounds, [answer.seq]);
  signalCancelled(tx, room.cancelled);
  tx.signal("work", "due");
  return { refused: null, task: answer, merged: merged !== null, cancelled: room.cancelled };
}

interface Message {
  readonly task: NewTask;
  readonly mode: SessionMode;
  /** Its debounce window; 0: none. */
  readonly windowMs: number;
}

/** Whether an attempt holds a task of the session. */
function isRunning(tx: Transaction, { id }: SessionRow): boolean {
  return (
    tx
      .prepare(
        `select 1 from task t indexed by task_in_session join lease l on l.task_seq = t.seq
          where t.session = ? and t.in_session = 1 limit 1`,
      )
      .get(id) !== undefined
  );
}

/** Adds the text to an earlier message, if that still waits for more, and returns that one; null: not possible. */
function merge(tx: Transaction, session: SessionRow, message: Message): InsertedTask | null {
  if (message.mode === "collect") return addToCollected(tx, session, message);
  return message.windowMs === 0 ? null : addToDebounced(tx, session, message);
}

/** Adds the text to the last task that is ready in the session, if that is a message that collects others. */
function addToCollected(tx: Transaction, session: SessionRow, { task }: Message): InsertedTask | null {
  const last = tx
    .prepare<{ seq: number; id: string; spec: string }>(
      `select t.seq, t.id, t.spec from task t join line n on n.id = t.line
        where t.seq = (
                select seq from (
                  select * from (select seq, place from task indexed by task_in_session
                                  where session = @session and in_session = 1 order by place desc limit 1)
                  union all
                  select * from (select seq, place from task indexed by task_outside_session
                                  where session = @session and in_session = 0 and completed_at is null
                                    and parked = 'session' order by place desc limit 1))
                 order by place desc limit 1)
          and t.collects = 1 and t.resting_state = 'queued' and t.executions = 0 and t.agent = @agent and n.lane = @lane
          and not exists (select 1 from lease l where l.task_seq = t.seq)
          and not exists (select 1 from task d where d.seq = @debounced and d.resting_state = 'delayed')`,
    )
    .get({ session: session.id, agent: task.agent, lane: task.lane, debounced: session.debounce_seq });
  const joined = last === undefined ? null : joinMessages(JSON.parse(last.spec), task.spec);
  if (last === undefined || joined === null) return null;
  tx.prepare("update task set spec = ? where seq = ?").run(JSON.stringify(joined), last.seq);
  return alreadyInserted(tx, last.id);
}

/** Adds the text to the previous message, if that is in its debounce window, and returns that one; null: not possible. */
function addToDebounced(
  tx: Transaction,
  session: SessionRow,
  { task, mode, windowMs }: Message,
): InsertedTask | null {
  const { now } = tx;
  if (session.debounce_seq === null || session.debounce_mode !== mode) return null;
  const before = tx
    .prepare<{ id: string; spec: string }>(
      `select t.id, t.spec from task t join line n on n.id = t.line
        where t.seq = ? and t.resting_state = 'delayed' and t.run_at > ? and t.agent = ? and n.lane = ?`,
    )
    .get(session.debounce_seq, now, task.agent, task.lane);
  const joined = before === undefined ? null : joinMessages(JSON.parse(before.spec), task.spec);
  if (before === undefined || joined === null) return null;
  const latest = (session.debounce_since ?? now) + DEBOUNCE_WINDOWS_MAX * windowMs;
  tx.prepare("update task set spec = ?, run_at = ? where seq = ?").run(
    JSON.stringify(joined),
    Math.min(now + windowMs, latest),
    session.debounce_seq,
  );
  return alreadyInserted(tx, before.id);
}

/** Cancels tasks to make room for the message, or returns that it is refused. */
function makeRoom(
  tx: Transaction,
  session: SessionRow,
  { defaults, mode }: Pick<SendParams, "defaults"> & Pick<Message, "mode">,
): { cancelled: EndedTask[] } | { refused: { waiting: number; cap: number } } {
  if (mode === "interrupt") return { cancelled: cancelSession(tx, session, SESSION_ENDS.interrupted) };
  const cap = session.cap ?? defaults.cap;
  const waiting = session.messages - countTaken(tx, session);
  if (waiting < cap) return { cancelled: [] };
  if ((session.drop_policy ?? defaults.drop) === "new") return { refused: { waiting, cap } };
  const oldest = tx
    .prepare<WaitingTask & { id: string }>(
      `select t.id, ${WAITING_COLUMNS} from task t
        where ${OPEN_IN_SESSION} and t.origin = 'message'
          and t.taken_by is null and not exists (select 1 from lease l where l.task_seq = t.seq)
        order by t.seq limit +@limit`,
    )
    .all({ session: session.id, limit: waiting - cap + 1 });
  return { cancelled: oldest.map((task) => endNow(tx, task, SESSION_ENDS.dropped)) };
}

/** How many waiting messages of a session running attempts have taken. */
function countTaken(tx: Transaction, { id }: SessionRow): number {
  const row = tx
    .prepare<{ n: number }>(
      `select count(*) as n from task indexed by task_steered
        where session = ? and steer_until is not null and completed_at is null and taken_by is not null`,
    )
    .get(id);
  return row?.n ?? 0;
}

function take(
  tx: Transaction,
  session: SessionRow,
  { task, mode, windowMs, steerMs }: Message & { readonly steerMs: number | null },
): InsertedTask {
  const { now } = tx;
  endDebounce(tx, session);
  const runAt = windowMs === 0 ? null : now + windowMs;
  const inserted = insertTask(tx, { ...task, runAt }, NO_ADMISSION);
  if (inserted.state === "delayed") {
    session.debounce_seq = inserted.seq;
    session.debounce_since = now;
    session.debounce_mode = mode;
  }
  if (mode === "collect") tx.prepare("update task set collects = 1 where seq = ?").run(inserted.seq);
  if (steerMs !== null)
    tx.prepare("update task set steer_until = ? where seq = ?").run(now + steerMs, inserted.seq);
  return inserted;
}
