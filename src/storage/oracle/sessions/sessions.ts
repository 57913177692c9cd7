import { DEFAULT_AGENT } from "../../../model/agent.ts";
import { SESSION_ENDS } from "../../../model/session.ts";
import { isTerminal } from "../../../model/task-state.ts";
import type {
  DeletedSession,
  EndedTask,
  SessionName,
  SessionRecord,
  StoppedSession,
  StopSessionParams,
  UpdateSessionParams,
} from "../../storage.ts";
import { tooManySessions } from "../../too-many-sessions.ts";
import {
  isWaiting,
  type OracleSession,
  type OracleState,
  type OracleTask,
  sessionOf,
  signal,
} from "../state.ts";
import { cancelThese } from "../tasks/cancel-tasks.ts";
import { preempt } from "../tasks/preempt-tasks.ts";
import { settleMoves } from "../tasks/settle-moves.ts";
import { tasksOfSession } from "./settle-sessions.ts";

export function getSession(state: OracleState, { tenant, key }: SessionName): SessionRecord | null {
  const session = sessionOf(state, { tenant, session: key });
  return session === undefined ? null : toSessionRecord(state, session);
}

export function listSessions(
  state: OracleState,
  { tenant, agent, limit, cursor }: { tenant: string; agent?: string; limit: number; cursor?: number },
): { sessions: SessionRecord[]; nextCursor: number | null } {
  const found = state.sessions
    .filter((session) => session.tenant === tenant && (cursor === undefined || session.seq < cursor))
    .filter((session) => agent === undefined || (session.agent ?? DEFAULT_AGENT) === agent)
    .sort((a, b) => b.seq - a.seq);
  const page = found.slice(0, limit);
  return {
    sessions: page.map((session) => toSessionRecord(state, session)),
    nextCursor: found.length > limit ? (page.at(-1)?.seq ?? null) : null,
  };
}

export function updateSession(
  state: OracleState,
  { changes, maxSessions, ...name }: UpdateSessionParams,
): SessionRecord {
  const { tokens: _tokens, contextWindow: _window, ...settings } = changes;
  const isPinned =
    sessionOf(state, { tenant: name.tenant, session: name.key }) === undefined ||
    Object.values(settings).some((setting) => setting !== null && setting !== undefined);
  if (isPinned) checkMaxSessions(state, name, maxSessions);
  const session = ensureSession(state, name);
  Object.assign(session, changes);
  session.pinned ||= isPinned;
  settleMoves(state);
  preempt(state);
  signal(state, { kind: "events" }, { kind: "work" });
  return toSessionRecord(state, session);
}

/** Throws if the session would get settings and its tenant has reached its limit of sessions with settings. */
export function checkMaxSessions(
  state: OracleState,
  { tenant, key }: SessionName,
  maxSessions: number | null = null,
): void {
  if (sessionOf(state, { tenant, session: key })?.pinned === true) return;
  const others = state.sessions.filter((session) => session.tenant === tenant && session.pinned);
  if (maxSessions !== null && others.length >= maxSessions) throw tooManySessions(maxSessions);
}

export function deleteSession(state: OracleState, { tenant, key }: SessionName): DeletedSession {
  const session = sessionOf(state, { tenant, session: key });
  if (session === undefined) return { found: false };
  const open = openTasks(state, session).length;
  if (open > 0) return { found: true, open };
  const { seq, defaultMax, lastPosition, cutoff } = session;
  Object.assign(session, newSession({ tenant, key, defaultMax, agent: null, seq }), {
    lastPosition,
    cutoff,
    generationPosition: lastPosition,
  });
  if (tasksOfSession(state, session).length === 0)
    state.sessions = state.sessions.filter((other) => other !== session);
  return { found: true, open: 0 };
}

export function stopSession(state: OracleState, params: StopSessionParams): StoppedSession {
  const session = sessionOf(state, { tenant: params.tenant, session: params.key });
  if (session === undefined) return { stopped: [], cancelled: [], more: false, cutoff: 0 };
  const running = openTasks(state, session)
    .filter(({ held }) => held !== null)
    .sort((a, b) => (a.held?.token ?? 0) - (b.held?.token ?? 0));
  if (params.scope === "oldest") {
    const first = (running.length > 0 ? running : stoppable(state, session)).slice(0, 1);
    const ended = cancelThese(state, first, SESSION_ENDS.stopped);
    return { ...byToken(ended), more: false, cutoff: session.cutoff };
  }
  const { scope, limit, cutoff = session.lastPosition } = params;
  session.cutoff = Math.max(session.cutoff, cutoff);
  if (scope === "reset" && params.cutoff === undefined) {
    session.generation += 1;
    session.generationPosition = session.lastPosition;
    session.tokens = null;
  }
  const waiting = openTasks(state, session)
    .filter((task) => isWaiting(task))
    .sort((a, b) => a.sessionPosition - b.sessionPosition);
  const all = [...running, ...waiting].filter(({ sessionPosition }) => sessionPosition <= cutoff);
  const chosen = all.slice(0, limit);
  const error = scope === "reset" ? SESSION_ENDS.reset : SESSION_ENDS.stopped;
  const ended = cancelThese(state, chosen, error);
  return { ...byToken(ended), more: all.length > limit, cutoff };
}

/** The tasks that wait in the session, by position: for a retry, for a slot, or in the debounce window. */
function stoppable(state: OracleState, session: OracleSession): OracleTask[] {
  return openTasks(state, session)
    .filter(
      ({ inSession, parked, seq }) => inSession || parked === "session" || session.debounce?.taskSeq === seq,
    )
    .sort((a, b) => a.sessionPosition - b.sessionPosition);
}

/** Tasks that were running, and tasks that were waiting. */
function byToken(ended: readonly EndedTask[]): Pick<StoppedSession, "stopped" | "cancelled"> {
  return {
    stopped: ended.filter(({ token }) => token !== null),
    cancelled: ended.filter(({ token }) => token === null),
  };
}

export function ensureSession(
  state: OracleState,
  { tenant, key, defaultMax, agent = null }: SessionName & { defaultMax: number; agent?: string | null },
): OracleSession {
  const known = sessionOf(state, { tenant, session: key });
  if (known !== undefined) {
    known.defaultMax = defaultMax;
    return known;
  }
  state.lastSessionSeq += 1;
  const session = newSession({ tenant, key, defaultMax, agent, seq: state.lastSessionSeq });
  state.sessions.push(session);
  return session;
}

function newSession({
  tenant,
  key,
  defaultMax,
  agent,
  seq,
}: SessionName & Pick<OracleSession, "defaultMax" | "agent" | "seq">): OracleSession {
  return {
    seq,
    tenant,
    key,
    defaultMax,
    agent,
    lane: null,
    mode: null,
    cap: null,
    drop: null,
    debounceMs: null,
    maxConcurrent: null,
    tokens: null,
    contextWindow: null,
    generation: 0,
    generationPosition: 0,
    pinned: false,
    lastPosition: 0,
    cutoff: 0,
    debounce: null,
  };
}

/** A session without settings that was never reset is deleted with the last of its tasks. */
export function forgetEmptySessions(state: OracleState, gone: readonly OracleTask[]): void {
  const touched = new Set(gone.map((task) => sessionOf(state, task)));
  state.sessions = state.sessions.filter((session) => {
    const isSet = session.pinned || session.generation > 0;
    return isSet || !touched.has(session) || tasksOfSession(state, session).length > 0;
  });
}

export function openTasks(state: OracleState, session: SessionName): OracleTask[] {
  return tasksOfSession(state, session).filter((task) => !isTerminal(task.state));
}

function toSessionRecord(state: OracleState, session: OracleSession): SessionRecord {
  const {
    pinned: _1,
    lastPosition: _2,
    cutoff: _3,
    debounce: _4,
    generationPosition: _5,
    ...record
  } = session;
  const open = openTasks(state, session);
  return {
    ...record,
    running: open.filter(({ held }) => held !== null).length,
    queued: open.filter((task) => isWaiting(task)).length,
  };
}
