import { DEFAULT_AGENT } from "../../../model/agent.ts";
import type { DropPolicy, SessionMode } from "../../../model/session.ts";
import { SESSION_ENDS } from "../../../model/session.ts";
import type {
  SessionRecord,
  SessionStorage,
  StoppedSession,
  StopSessionParams,
  UpdateSessionParams,
} from "../../storage.ts";
import { tooManySessions } from "../../too-many-sessions.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { type CancelledJson, signalCancelled, toEndedTask } from "../tasks/cancel-open-tasks.ts";
import { PREEMPT } from "../tasks/preempt-tasks.ts";
import { RELEASED_MAX } from "../tasks/settle-moves.ts";
import { postAnswer } from "./post-answer.ts";
import { readTurns } from "./read-turns.ts";
import { sendMessage } from "./send-message.ts";
import { isUnsettled } from "./settle-sessions.ts";
import { takeMessages } from "./take-messages.ts";

export function postgresSessions(db: PostgresDatabase): SessionStorage {
  return {
    send: (params) => sendMessage(db, params),
    readTurns: (params) => readTurns(db, params),
    takeMessages: (params) => takeMessages(db, params),
    post: (params) => postAnswer(db, params),
    stop: (params) => stopSession(db, params),
    update: (params) => updateSession(db, params),
    async delete({ tenant, key }) {
      const [row] = await db.write<{ open: number | null }>({
        name: "delete_session",
        text: "select delete_session($1, $2, $3) as open",
        values: [tenant, key],
      });
      const open = row?.open ?? null;
      return open === null ? { found: false } : { found: true, open };
    },
    async get({ tenant, key }) {
      const [row] = await db.readDurably<SessionRow>({
        name: "get_session",
        text: `select ${SESSION_COLUMNS} from session s where s.tenant = $1 and s.key = $2`,
        values: [tenant, key],
      });
      return row === undefined ? null : toSessionRecord(row);
    },
    async list({ tenant, agent, limit, cursor = Number.MAX_SAFE_INTEGER }) {
      const page = [tenant, cursor, limit + 1];
      const rows = await db.readDurably<SessionRow>(
        agent === undefined
          ? { name: "list_sessions", text: LIST_OF_SESSIONS, values: page }
          : { name: "list_sessions_of_agent", text: LIST_OF_AGENT_SESSIONS, values: [...page, agent] },
      );
      const sessions = rows.slice(0, limit).map(toSessionRecord);
      return { sessions, nextCursor: rows.length > limit ? (sessions.at(-1)?.seq ?? null) : null };
    },
  };
}

async function stopSession(db: PostgresDatabase, params: StopSessionParams): Promise<StoppedSession> {
  const { tenant, key, scope, limit, cutoff = null } = params;
  const [row] = await db.write<{ cancelled: CancelledJson[]; more: boolean; cutoff: string }>({
    name: "stop_session",
    text: "select * from stop_session($1, $2, $3, $4, $5, $6)",
    values: [tenant, key, scope, limit, cutoff],
  });
  if (row === undefined) return { stopped: [], cancelled: [], more: false, cutoff: 0 };
  signalCancelled(db, row.cancelled);
  const ended = row.cancelled.map(toEndedTask);
  return {
    stopped: ended.filter(({ token }) => token !== null),
    cancelled: ended.filter(({ token }) => token === null),
    more: row.more,
    cutoff: Number(row.cutoff),
  };
}

async function updateSession(
  db: PostgresDatabase,
  { tenant, key, defaultMax, changes, maxSessions = null }: UpdateSessionParams,
): Promise<SessionRecord> {
  const [row] = await db.write<SessionRow>({
    name: "update_session",
    text: "select * from update_session($1, $2, $3, $4, $5, $6)",
    values: [tenant, key, defaultMax, JSON.stringify(changes), maxSessions],
  });
  if (row === undefined) throw tooManySessions(maxSessions ?? 0);
  db.signal({ kind: "events" });
  db.signal({ kind: "work" });
  return toSessionRecord(row);
}

interface SessionRow {
  readonly id: string;
  readonly tenant: string;
  readonly key: string;
  readonly agent: string | null;
  readonly lane: string | null;
  readonly mode: SessionMode | null;
  readonly cap: number | null;
  readonly drop_policy: DropPolicy | null;
  readonly debounce_ms: number | null;
  readonly max_concurrent: number | null;
  readonly default_max: number;
  readonly tokens: string | null;
  readonly context_window: string | null;
  readonly generation: number;
  readonly open: number;
  readonly running: number;
}

/** Running tasks are counted by their leases, which are few. So a claim need not write to the session. */
const SESSION_COLUMNS = `
  s.id, s.tenant, s.key, s.agent, s.lane, s.mode, s.cap, s.drop_policy, s.debounce_ms, s.max_concurrent, s.default_max,
  s.tokens, s.context_window, s.generation, s.open, (select count(*) from lease l where l.session = s.id)::integer as running`;

/** Ordered by both columns, so that the planner uses the index on them instead of walking all sessions. */
export const LIST_OF_SESSIONS = `
  select ${SESSION_COLUMNS} from session s
   where (s.tenant || '', s.id) < ($1, $2) and (s.tenant || '', s.id) > ($1, 0)
   order by s.tenant || '' desc, s.id desc limit $3`;

const OF_AGENT = `s.tenant || '' || '', coalesce(s.agent, '${DEFAULT_AGENT}')`;

export const LIST_OF_AGENT_SESSIONS = `
  select ${SESSION_COLUMNS} from session s
   where (${OF_AGENT}, s.id) < ($1, $4, $2) and (${OF_AGENT}, s.id) > ($1, $4, 0)
   order by s.tenant || '' || '' desc, coalesce(s.agent, '${DEFAULT_AGENT}') desc, s.id desc limit $3`;

function toSessionRecord(row: SessionRow): SessionRecord {
  return {
    seq: Number(row.id),
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
    tokens: row.tokens === null ? null : Number(row.tokens),
    contextWindow: row.context_window === null ? null : Number(row.context_window),
    generation: row.generation,
    running: row.running,
    queued: row.open - row.running,
  };
}

/** Sets a column of `session` if the changes, which are JSON, contain it. */
function changed(column: string, name: string, type: "text" | "integer" | "bigint"): string {
  return `${column} = case when p_changes ? '${name}' then (p_changes ->> '${name}')::${type} else s.${column} end`;
}

/** The first turns of one stage that have a position up to the cutoff and that no attempt holds. */
function waitingUpTo(stage: "early" | "parked" | "in"): string {
  return `
    (select u.place, u.task_seq from turn u
      where u.session = v_session.id and u.stage = '${stage}' and u.place <= cutoff
        and not exists (select 1 from lease l where l.task_seq = u.task_seq)
      order by u.place limit p_limit + 1)`;
}

export const SESSION_FUNCTIONS = readSql(new URL("./sessions.sql", import.meta.url), {
  CHANGED_AGENT: changed("agent", "agent", "text"),
  CHANGED_LANE: changed("lane", "lane", "text"),
  CHANGED_MODE: changed("mode", "mode", "text"),
  CHANGED_CAP: changed("cap", "cap", "integer"),
  CHANGED_DROP: changed("drop_policy", "drop", "text"),
  CHANGED_DEBOUNCE_MS: changed("debounce_ms", "debounceMs", "integer"),
  CHANGED_MAX_CONCURRENT: changed("max_concurrent", "maxConcurrent", "integer"),
  CHANGED_TOKENS: changed("tokens", "tokens", "bigint"),
  CHANGED_CONTEXT_WINDOW: changed("context_window", "contextWindow", "bigint"),
  IS_UNSETTLED: isUnsettled("s"),
  RELEASED_MAX,
  PREEMPT,
  SESSION_COLUMNS,
  WAITING_MESSAGES: (["early", "parked", "in"] as const).map(waitingUpTo).join(" union all "),
  SESSION_RESET: SESSION_ENDS.reset,
  SESSION_STOPPED: SESSION_ENDS.stopped,
});
