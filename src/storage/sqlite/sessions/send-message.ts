import { DEBOUNCE_WINDOWS_MAX, SESSION_ENDS, type SessionMode } from "../../../model/session.ts";
import { joinMessages } from "../../join-messages.ts";
import type { EndedTask, InsertedTask, SendParams, SentMessage } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { Ledger } from "../counters/ledger.ts";
import type { SessionRow } from "../counters/session-ledger.ts";
import { endNow, tellOfCancelled } from "../tasks/cancel-tasks.ts";
import { WAITING_COLUMNS, type WaitingTask } from "../tasks/end-waiting-task.ts";
import { endDebounce } from "../tasks/enter-queue.ts";
import { alreadyInserted, insertTask, NO_ADMISSION } from "../tasks/insert-tasks.ts";
import { preemptTasks } from "../tasks/preempt-tasks.ts";
import { settleMoves } from "../tasks/settle-moves.ts";
import { cancelSession, checkMaxSessions, OPEN_IN_SESSION } from "./sessions.ts";

/** Inserts a message, inside a transaction. */
export function sendMessage(db: SqliteDatabase, params: SendParams, now: number): SentMessage {
  const { task, defaults } = params;
  if (task.session === null) throw new Error("A message goes to a session.");
  const known = alreadyInserted(db, task.id);
  if (known !== null) return { refused: null, task: known, merged: false, cancelled: [] };

  const { tenant, session: given } = task;
  if (params.maxConcurrent !== null) checkMaxSessions(db, { tenant, key: given.key }, params.maxSessions);
  const ledger = new Ledger(db);
  const session = ledger.sessions.ensure(task.tenant, task.session.key, task.session.maxConcurrent);
  const mode = params.mode ?? session.mode ?? defaults.mode;
  const windowMs = mode === "interrupt" ? 0 : (session.debounce_ms ?? defaults.debounceMs);
  const merged = windowMs === 0 ? null : addToDebounced(db, session, params, { mode, windowMs, now });
  const room = merged === null ? makeRoom(db, ledger, session, params, { mode, now }) : { cancelled: [] };
  if ("refused" in room) return room;
  session.agent = task.agent;
  session.lane = task.lane;
  session.max_concurrent = params.maxConcurrent ?? session.max_concurrent;
  if (params.maxConcurrent !== null) session.pinned = 1;
  const answer = merged ?? take(db, ledger, session, params, { mode, windowMs, now });
  settleMoves(db, ledger, now);
  preemptTasks(db, ledger, now);
  ledger.save();
  tellOfCancelled(db, room.cancelled);
  db.signal({ kind: "work" });
  db.signal({ kind: "due" });
  return { refused: null, task: answer, merged: merged !== null, cancelled: room.cancelled };
}

interface Moment {
  readonly mode: SessionMode;
  readonly now: number;
}

/** Adds the text to the previous message, if that is in its debounce window, and returns that one; null: not possible. */
function addToDebounced(
  db: SqliteDatabase,
  session: SessionRow,
  { task }: SendParams,
  { mode, windowMs, now }: Moment & { readonly windowMs: number },
): InsertedTask | null {
  if (session.debounce_seq === null || session.debounce_mode !== mode) return null;
  const before = db
    .prepare<{ id: string; spec: string }>(
      `select t.id, t.spec from task t join line n on n.id = t.line
        where t.seq = ? and t.resting_state = 'delayed' and t.run_at > ? and t.agent = ? and n.lane = ?`,
    )
    .get(session.debounce_seq, now, task.agent, task.lane);
  const joined = before === undefined ? null : joinMessages(JSON.parse(before.spec), task.spec);
  if (before === undefined || joined === null) return null;
  const latest = (session.debounce_since ?? now) + DEBOUNCE_WINDOWS_MAX * windowMs;
  db.prepare("update task set spec = ?, run_at = ? where seq = ?").run(
    JSON.stringify(joined),
    Math.min(now + windowMs, latest),
    session.debounce_seq,
  );
  return alreadyInserted(db, before.id);
}

/** Cancels tasks to make room for the message, or returns that it is refused. */
function makeRoom(
  db: SqliteDatabase,
  ledger: Ledger,
  session: SessionRow,
  { defaults }: SendParams,
  { mode, now }: Moment,
): { cancelled: EndedTask[] } | { refused: { waiting: number; cap: number } } {
  if (mode === "interrupt") {
    return { cancelled: cancelSession(db, ledger, session, { error: SESSION_ENDS.interrupted, now }) };
  }
  const cap = session.cap ?? defaults.cap;
  const waiting = session.messages;
  if (waiting < cap) return { cancelled: [] };
  if ((session.drop_policy ?? defaults.drop) === "new") return { refused: { waiting, cap } };
  const oldest = db
    .prepare<WaitingTask & { id: string }>(
      `select t.id, ${WAITING_COLUMNS} from task t
        where ${OPEN_IN_SESSION} and t.origin = 'message'
          and not exists (select 1 from lease l where l.task_seq = t.seq)
        order by t.seq limit +@limit`,
    )
    .all({ session: session.id, limit: waiting - cap + 1 });
  return { cancelled: oldest.map((task) => endNow(db, ledger, task, { error: SESSION_ENDS.dropped, now })) };
}

function take(
  db: SqliteDatabase,
  ledger: Ledger,
  session: SessionRow,
  { task }: SendParams,
  { mode, windowMs, now }: Moment & { readonly windowMs: number },
): InsertedTask {
  endDebounce(db, ledger, session, now);
  const runAt = windowMs === 0 ? null : now + windowMs;
  const inserted = insertTask(db, ledger, { ...task, runAt }, NO_ADMISSION, now);
  if (inserted.state === "delayed") {
    session.debounce_seq = inserted.seq;
    session.debounce_since = now;
    session.debounce_mode = mode;
  }
  return inserted;
}
