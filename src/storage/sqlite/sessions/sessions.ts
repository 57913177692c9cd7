import { SESSION_ENDS } from "../../../model/session.ts";
import type {
  DeletedSession,
  EndedTask,
  SessionName,
  SessionRecord,
  SessionStorage,
  StoppedSession,
  StopSessionParams,
  UpdateSessionParams,
} from "../../storage.ts";
import { tooManySessions } from "../../too-many-sessions.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import type { SessionRow } from "../counters/session-ledger.ts";
import { endNow, tellOfCancelled } from "../tasks/cancel-tasks.ts";
import { WAITING_COLUMNS, type WaitingTask } from "../tasks/end-waiting-task.ts";
import { readTurns } from "./read-turns.ts";
import { sendMessage } from "./send-message.ts";

export function sqliteSessions(db: SqliteDatabase): SessionStorage {
  return {
    send: (params) => db.transactDurably((tx) => sendMessage(tx, params)),
    stop: (params) => db.transactDurably((tx) => stopSession(tx, params)),
    readTurns: (params) => readTurns(db, params),
    async get(params) {
      return db.read(() => findRecord(db, params));
    },
    async list({ tenant, limit, cursor = Number.MAX_SAFE_INTEGER }) {
      const rows = await db.read(() =>
        db
          .prepare<SessionRow & Running>(
            `select ${RECORD_COLUMNS} from session s indexed by session_by_tenant
              where s.tenant = ? and s.id < ? order by s.id desc limit +?`,
          )
          .all(tenant, cursor, limit + 1),
      );
      const page = rows.slice(0, limit);
      return {
        sessions: page.map(toSessionRecord),
        nextCursor: rows.length > limit ? (page.at(-1)?.id ?? null) : null,
      };
    },
    update: (params) => db.transactDurably((tx) => updateSession(tx, params)),
    delete: (params) => db.transactDurably((tx) => deleteSession(tx, params)),
  };
}

/** Throws if the session would get settings and its tenant has reached its limit of sessions with settings. */
export function checkMaxSessions(
  db: SqliteDatabase,
  { tenant, key }: SessionName,
  maxSessions: number | null = null,
): void {
  if (maxSessions === null || findRow(db, { tenant, key })?.pinned === 1) return;
  const count = db
    .prepare<{ n: number }>(
      `select count(*) as n from (select 1 from session indexed by session_pinned
                                   where tenant = ? and pinned = 1 limit +?)`,
    )
    .get(tenant, maxSessions);
  if ((count?.n ?? 0) >= maxSessions) throw tooManySessions(maxSessions);
}

function deleteSession(tx: Transaction, name: SessionName): DeletedSession {
  const session = findRow(tx.db, name);
  if (session === undefined) return { found: false };
  const open = session.running + session.queued;
  if (open > 0) return { found: true, open };
  tx.prepare(
    `update session set agent = null, lane = null, mode = null, cap = null, drop_policy = null, debounce_ms = null,
                        max_concurrent = null, tokens = null, context_window = null, generation = 0,
                        generation_place = last_place, pinned = 0
      where id = ?`,
  ).run(session.id);
  forgetEmptySession(tx, session.id);
  return { found: true, open };
}

/** Deletes a session without tasks, unless it has settings or was reset. */
export function forgetEmptySession(tx: Transaction, id: number): void {
  tx.prepare(
    `delete from session
      where id = @id and pinned = 0 and generation = 0
        and not exists (select 1 from task where session = @id)`,
  ).run({ id });
}

function updateSession(
  tx: Transaction,
  { tenant, key, defaultMax, changes, maxSessions }: UpdateSessionParams,
): SessionRecord {
  const { drop, debounceMs, maxConcurrent, contextWindow, ...same } = changes;
  const { tokens: _tokens, ...settings } = { ...same, drop, debounceMs, maxConcurrent };
  const { ledger } = tx;
  const isPinned =
    ledger.sessions.find(tenant, key) === undefined ||
    Object.values(settings).some((setting) => setting !== null && setting !== undefined);
  if (isPinned) checkMaxSessions(tx.db, { tenant, key }, maxSessions);
  const session = ledger.sessions.ensure(tenant, key, defaultMax);
  Object.assign(session, same);
  if (drop !== undefined) session.drop_policy = drop;
  if (debounceMs !== undefined) session.debounce_ms = debounceMs;
  if (maxConcurrent !== undefined) session.max_concurrent = maxConcurrent;
  if (contextWindow !== undefined) session.context_window = contextWindow;
  if (isPinned) session.pinned = 1;
  tx.save();
  tx.signal("events");
  return findRecord(tx.db, { tenant, key }) as SessionRecord;
}

function stopSession(tx: Transaction, params: StopSessionParams): StoppedSession {
  const session = tx.ledger.sessions.find(params.tenant, params.key);
  if (session === undefined) return { stopped: [], cancelled: [], more: false, cutoff: 0 };
  const { scope } = params;
  const cutoff = scope === "oldest" ? session.cutoff : (params.cutoff ?? session.last_place);
  session.cutoff = Math.max(session.cutoff, cutoff);
  if (scope === "reset" && params.cutoff === undefined) {
    session.generation += 1;
    session.generation_place = session.last_place;
    session.tokens = null;
  }
  const chosen =
    scope === "oldest" ? oldest(tx, session) : openUpTo(tx, session, { cutoff, limit: params.limit + 1 });
  const error = scope === "reset" ? SESSION_ENDS.reset : SESSION_ENDS.stopped;
  const ended = chosen.slice(0, params.limit).map((task) => endNow(tx, task, error));
  tellOfCancelled(tx, ended);
  return {
    stopped: ended.filter(({ token }) => token !== null),
    cancelled: ended.filter(({ token }) => token === null),
    more: chosen.length > params.limit,
    cutoff,
  };
}

type OpenTask = WaitingTask & { readonly id: string };

/** Selects the open tasks of a session from `task t`, admitted or not. */
export const OPEN_IN_SESSION = `
  t.seq in (select seq from task where session = @session and in_session = 1
            union all
            select seq from task indexed by task_outside_session
             where session = @session and in_session = 0 and completed_at is null)`;

function running(
  tx: Transaction,
  { id }: SessionRow,
  { cutoff, limit }: { cutoff: number; limit: number },
): OpenTask[] {
  return tx
    .prepare<OpenTask>(
      `select t.id, ${WAITING_COLUMNS} from task t indexed by task_in_session join lease l on l.task_seq = t.seq
        where t.session = ? and t.in_session = 1 and t.place <= ? order by l.token limit +?`,
    )
    .all(id, cutoff, limit);
}

/**
 * The running task that started first. If none runs: the first that waits for its retry, for a slot or in the debounce window.
 */
function oldest(tx: Transaction, session: SessionRow): OpenTask[] {
  const [first] = running(tx, session, { cutoff: Number.MAX_SAFE_INTEGER, limit: 1 });
  if (first !== undefined) return [first];
  return tx
    .prepare<OpenTask>(
      `select t.id, ${WAITING_COLUMNS} from task t
        where t.seq in (
          select * from (select seq from task indexed by task_in_session
                          where session = @session and in_session = 1 order by place limit 1)
          union all
          select * from (select seq from task indexed by task_outside_session
                          where session = @session and in_session = 0 and completed_at is null and parked = 'session'
                          order by place limit 1)
          union all
          select seq from task where seq = @debounced and resting_state = 'delayed')
        order by t.place limit 1`,
    )
    .all({ session: session.id, debounced: session.debounce_seq });
}

/** Open tasks with a position up to `cutoff`: first the running ones, then the waiting ones. */
function openUpTo(
  tx: Transaction,
  session: SessionRow,
  { cutoff, limit }: { cutoff: number; limit: number },
): OpenTask[] {
  const held = running(tx, session, { cutoff, limit });
  const waiting = tx
    .prepare<OpenTask>(
      `select t.id, ${WAITING_COLUMNS} from task t
        where ${OPEN_IN_SESSION} and t.place <= @cutoff
          and not exists (select 1 from lease l where l.task_seq = t.seq)
        order by t.place limit +@limit`,
    )
    .all({ session: session.id, cutoff, limit: limit - held.length });
  return [...held, ...waiting];
}

/** Cancels all open tasks of a session, in order of acceptance. */
export function cancelSession(tx: Transaction, session: SessionRow, error: string): EndedTask[] {
  return tx
    .prepare<OpenTask>(`select t.id, ${WAITING_COLUMNS} from task t where ${OPEN_IN_SESSION} order by t.seq`)
    .all({ session: session.id })
    .map((task) => endNow(tx, task, error));
}

interface Running {
  readonly running: number;
}

const RECORD_COLUMNS = `
  s.*, (select count(*) from task t join lease l on l.task_seq = t.seq
         where t.session = s.id and t.in_session = 1) as running`;

function findRecord(db: SqliteDatabase, name: SessionName): SessionRecord | null {
  const row = findRow(db, name);
  return row === undefined ? null : toSessionRecord(row);
}

function findRow(db: SqliteDatabase, { tenant, key }: SessionName): (SessionRow & Running) | undefined {
  return db
    .prepare<SessionRow & Running>(`select ${RECORD_COLUMNS} from session s where s.tenant = ? and s.key = ?`)
    .get(tenant, key);
}

function toSessionRecord(row: SessionRow & Running): SessionRecord {
  return {
    seq: row.id,
    tenant: row.tenant,
    key: row.key,
    agent: row.agent,
    lane: row.lane,
    mode: row.mode,
    cap: row.cap,
    drop: row.drop_policy,
    debounceMs: row.debounce_ms,
    maxConcurrent: row.max_concurrent,
    defaultMax: row.default_max,
    tokens: row.tokens,
    contextWindow: row.context_window,
    generation: row.generation,
    running: row.running,
    queued: row.queued,
  };
}
