import type { DropPolicy, SessionMode } from "../../../model/session.ts";
import { SESSION_ENDS } from "../../../model/session.ts";
import { DEFAULT_AGENT } from "../../../model/task.ts";
import type {
  SessionRecord,
  SessionStorage,
  StoppedSession,
  StopSessionParams,
  UpdateSessionParams,
} from "../../storage.ts";
import { tooManySessions } from "../../too-many-sessions.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { type CancelledJson, signalCancelled, toEndedTask } from "../tasks/cancel-these.ts";
import { PREEMPT } from "../tasks/preempt-tasks.ts";
import { RELEASED_MAX } from "../tasks/settle-moves.ts";
import { readTurns } from "./read-turns.ts";
import { sendMessage } from "./send-message.ts";
import { isUnsettled } from "./settle-sessions.ts";

export function postgresSessions(db: PostgresDatabase): SessionStorage {
  return {
    send: (params) => sendMessage(db, params),
    readTurns: (params) => readTurns(db, params),
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
      const [row] = await db.read<SessionRow>({
        name: "get_session",
        text: `select ${SESSION_COLUMNS} from session s where s.tenant = $1 and s.key = $2`,
        values: [tenant, key],
      });
      return row === undefined ? null : toSessionRecord(row);
    },
    async list({ tenant, agent, limit, cursor = Number.MAX_SAFE_INTEGER }) {
      const page = [tenant, cursor, limit + 1];
      const rows = await db.read<SessionRow>(
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

/** The first turns of one stage that have a place up to the cutoff and that no attempt holds. */
function waitingUpTo(stage: "early" | "parked" | "in"): string {
  return `
    (select u.place, u.task_seq from turn u
      where u.session = v_session.id and u.stage = '${stage}' and u.place <= cutoff
        and not exists (select 1 from lease l where l.task_seq = u.task_seq)
      order by u.place limit p_limit + 1)`;
}

export const SESSION_FUNCTIONS = `
-- Whether a session may have settings: it has some, or its tenant has fewer sessions with settings than it may.
create function may_pin_session(p_tenant text, p_key text, p_max_sessions integer) returns boolean language plpgsql as $$
begin
  return p_max_sessions is null
      or exists (select 1 from session s where s.tenant = p_tenant and s.key = p_key and s.pinned)
      or (select count(*) from (select 1 from session s where '' || s.tenant = p_tenant and s.pinned limit p_max_sessions) o)
         < p_max_sessions;
end $$;

-- No row: its tenant has as many sessions with settings as it may.
create function update_session(
  p_now bigint, p_tenant text, p_key text, p_default_max integer, p_changes jsonb, p_max_sessions integer)
returns table (id bigint, tenant text, key text, agent text, lane text, mode text, cap integer, drop_policy text,
               debounce_ms integer, max_concurrent integer, default_max integer, tokens bigint, context_window bigint, generation integer,
               open integer, running integer)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := enter(p_now);
  v_unsettled text;
  v_new boolean := not exists (select 1 from session s where s.tenant = p_tenant and s.key = p_key);
  v_pinned boolean := v_new or exists (
    select 1 from jsonb_each_text(p_changes) c where c.key not in ('tokens', 'contextWindow') and c.value is not null);
begin
  if v_pinned and not may_pin_session(p_tenant, p_key, p_max_sessions) then return; end if;
  if v_new then insert into session (tenant, key, default_max) values (p_tenant, p_key, p_default_max); end if;
  update session s
     set default_max = p_default_max,
         pinned = s.pinned or v_pinned,
         ${changed("agent", "agent", "text")},
         ${changed("lane", "lane", "text")},
         ${changed("mode", "mode", "text")},
         ${changed("cap", "cap", "integer")},
         ${changed("drop_policy", "drop", "text")},
         ${changed("debounce_ms", "debounceMs", "integer")},
         ${changed("max_concurrent", "maxConcurrent", "integer")},
         ${changed("tokens", "tokens", "bigint")},
         ${changed("context_window", "contextWindow", "bigint")}
   where s.tenant = p_tenant and s.key = p_key
  returning case when ${isUnsettled("s")} then s.id::text end into v_unsettled;
  if v_unsettled is not null then perform add_note('sessions', array[v_unsettled]); end if;
  perform settle_moves(v_now, ${RELEASED_MAX});
  ${PREEMPT}
  return query select ${SESSION_COLUMNS} from session s where s.tenant = p_tenant and s.key = p_key;
end $$;

create function stop_session(
  p_now bigint, p_tenant text, p_key text, p_scope text, p_limit integer, p_cutoff bigint)
returns table (cancelled json, more boolean, cutoff bigint) language plpgsql as $$
#variable_conflict use_variable
declare
  v_now bigint := enter(p_now);
  v_session session;
  v_seqs bigint[];
begin
  select * into v_session from session s where s.tenant = p_tenant and s.key = p_key;
  if not found then return; end if;
  if p_scope = 'oldest' then
    cutoff := v_session.cutoff;
    v_seqs := array(select l.task_seq from lease l where l.session = v_session.id order by l.token limit 1);
    -- If none runs, the first that waits for its retry, for a slot or in the debounce window.
    if cardinality(v_seqs) = 0 then
      v_seqs := array(
        select w.task_seq
          from ((select u.place, u.task_seq from turn u
                  where u.session = v_session.id and u.stage = 'in' order by u.place limit 1)
                union all
                (select u.place, u.task_seq from turn u
                  where u.session = v_session.id and u.stage = 'parked' order by u.place limit 1)
                union all
                select t.place, t.seq from task t
                 where t.seq = v_session.debounce_seq and t.resting_state = 'delayed') w
         order by w.place limit 1);
    end if;
  else
    cutoff := least(coalesce(p_cutoff, v_session.last_place), v_session.last_place);
    update session s
       set cutoff = greatest(s.cutoff, stop_session.cutoff),
           generation = s.generation + case when p_scope = 'reset' and p_cutoff is null then 1 else 0 end,
           generation_place = case when p_scope = 'reset' and p_cutoff is null then s.last_place else s.generation_place end,
           tokens = case when p_scope = 'reset' and p_cutoff is null then null else s.tokens end
     where s.id = v_session.id;
    -- First what runs, then what waits.
    v_seqs := array(
      select l.task_seq from lease l join task t on t.seq = l.task_seq
       where l.session = v_session.id and t.place <= cutoff order by l.token limit p_limit + 1);
    v_seqs := v_seqs || array(
      select w.task_seq
        from (${(["early", "parked", "in"] as const).map(waitingUpTo).join(" union all ")}) w
       order by w.place limit p_limit + 1 - cardinality(v_seqs));
  end if;
  more := cardinality(v_seqs) > p_limit;
  cancelled := cancel_these(v_now, v_seqs[:p_limit],
    case when p_scope = 'reset' then '${SESSION_ENDS.reset}' else '${SESSION_ENDS.stopped}' end);
  -- Others may have room now, or be stale.
  perform add_note('sessions', array[v_session.id::text]);
  perform settle_moves(v_now, ${RELEASED_MAX});
  ${PREEMPT}
  return next;
end $$;

-- A session that nobody has set anything of, or has reset, goes with the last of its tasks.
create function forget_empty_sessions(p_ids bigint[]) returns void language plpgsql as $$
begin
  delete from session s
   where s.id = any (p_ids) and not s.pinned and s.generation = 0
     and (select t.seq from task t where t.session + 0 = s.id limit 1) is null;
end $$;

-- How many of its tasks run or wait; unless that is 0, nothing was done. Null: there is no such session.
create function delete_session(p_now bigint, p_tenant text, p_key text) returns integer language plpgsql as $$
declare
  v_session session;
begin
  perform enter(p_now);
  select * into v_session from session s where s.tenant = p_tenant and s.key = p_key;
  if v_session.open = 0 then
    update session s
       set agent = null, lane = null, mode = null, cap = null, drop_policy = null, debounce_ms = null, max_concurrent = null,
           tokens = null, context_window = null, generation = 0, generation_place = s.last_place, pinned = false
     where s.id = v_session.id;
    perform forget_empty_sessions(array[v_session.id]);
  end if;
  return v_session.open;
end $$;
`;
