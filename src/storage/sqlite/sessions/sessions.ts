import { DEFAULT_AGENT } from "../../../model/agent.ts";
import { SESSION_ENDS } from "../../../model/session.ts";
import type {
  DeletedSession,
  SessionName,
  SessionRecord,
  SessionStorage,
  StoppedSession,
  StopSessionParams,
  UpdateSessionParams,
} from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import type { SessionRow } from "../counters/session-ledger.ts";
import { endNow, signalCancelled } from "../tasks/steps/cancel-all.ts";
import { postAnswer } from "./post-answer.ts";
import { readTurns } from "./read-turns.ts";
import { sendMessage } from "./send-message.ts";
import { findSession, findSessionRow, RECORD_COLUMNS, type Running, toSessionRecord } from "./session-row.ts";
import { checkMaxSessions } from "./steps/check-max-sessions.ts";
import { forgetEmptySession } from "./steps/forget-empty-session.ts";
import { oldest, openUpTo } from "./steps/open-tasks.ts";
import { takeMessages } from "./take-messages.ts";

export function sqliteSessions(db: SqliteDatabase): SessionStorage {
  return {
    send: (params) => sendMessage(db, params),
    stop: (params) => db.transactDurably((tx) => stopSession(tx, params)),
    readTurns: (params) => readTurns(db, params),
    takeMessages: (params) => takeMessages(db, params),
    post: (params) => postAnswer(db, params),
    async get(params) {
      return db.read(() => findSession(db, params));
    },
    async list({ tenant, agent, limit, cursor = Number.MAX_SAFE_INTEGER }) {
      const found =
        agent === undefined
          ? "session_by_tenant where s.tenant = @tenant"
          : `session_by_agent where s.tenant = @tenant and coalesce(s.agent, '${DEFAULT_AGENT}') = @agent`;
      const rows = await db.read(() =>
        db
          .prepare<SessionRow & Running>(
            `select ${RECORD_COLUMNS} from session s indexed by ${found} and s.id < @cursor
              order by s.id desc limit +@page`,
          )
          .all({ tenant, agent, cursor, page: limit + 1 }),
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

function deleteSession(tx: Transaction, name: SessionName): DeletedSession {
  const session = findSessionRow(tx.db, name);
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
  if (isPinned) checkMaxSessions(tx, { tenant, key }, maxSessions);
  const session = ledger.sessions.ensure(tenant, key, defaultMax);
  Object.assign(session, same);
  if (drop !== undefined) session.drop_policy = drop;
  if (debounceMs !== undefined) session.debounce_ms = debounceMs;
  if (maxConcurrent !== undefined) session.max_concurrent = maxConcurrent;
  if (contextWindow !== undefined) session.context_window = contextWindow;
  if (isPinned) session.pinned = 1;
  tx.save();
  tx.signal("events");
  return findSession(tx.db, { tenant, key }) as SessionRecord;
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
  signalCancelled(tx, ended);
  return {
    stopped: ended.filter(({ token }) => token !== null),
    cancelled: ended.filter(({ token }) => token === null),
    more: chosen.length > params.limit,
    cutoff,
  };
}
