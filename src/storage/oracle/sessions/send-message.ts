import {
  DEBOUNCE_WINDOWS_MAX,
  DEFAULT_STEER_MS,
  SESSION_ENDS,
  type SessionMode,
} from "../../../model/session.ts";
import { joinMessages } from "../../join-messages.ts";
import type { EndedTask, SendParams, SentMessage } from "../../storage.ts";
import {
  isWaiting,
  type OracleSession,
  type OracleState,
  type OracleTask,
  signal,
  takerOf,
} from "../state.ts";
import { endNow, signalCancelled } from "../tasks/cancel-tasks.ts";
import { endDebounce } from "../tasks/enter-queue.ts";
import { copyOf, insertTask, orRestore, toInserted } from "../tasks/insert-tasks.ts";
import { preempt } from "../tasks/preempt-tasks.ts";
import { settleMoves } from "../tasks/settle-moves.ts";
import { countBounded } from "../tasks/submit-bounds.ts";
import { checkMaxSessions, ensureSession, openTasks } from "./sessions.ts";

/** Admission does not limit messages. */
export const NO_LIMITS = {
  maxQueueSize: Number.MAX_SAFE_INTEGER,
  maxQueueSizeTotal: Number.MAX_SAFE_INTEGER,
  maxPerAgent: Number.MAX_SAFE_INTEGER,
};

export function sendMessage(state: OracleState, params: SendParams): SentMessage {
  const { task: input, defaults } = params;
  if (input.session === null) throw new Error("A message goes to a session.");
  const known = state.tasks.find(({ id }) => id === input.id);
  if (known !== undefined)
    return { refused: null, task: toInserted(state, known), merged: false, cancelled: [] };

  const { bounds } = params;
  const before = bounds === undefined ? {} : copyOf(state);
  const { key, maxConcurrent: defaultMax } = input.session;
  const name = { tenant: input.tenant, key, defaultMax };
  if (params.maxConcurrent !== null) checkMaxSessions(state, name, params.maxSessions);
  const session = ensureSession(state, name);
  const mode = params.mode ?? session.mode ?? defaults.mode;
  const isOffered = mode === "steer" && openTasks(state, session).some(({ held }) => held !== null);
  const isDebounced = mode !== "interrupt" && mode !== "collect" && !isOffered;
  const windowMs = isDebounced ? (session.debounceMs ?? defaults.debounceMs) : 0;
  const merged =
    mode === "collect"
      ? addToCollected(state, session, params)
      : windowMs === 0
        ? null
        : addToDebounced(state, session, params, mode, windowMs);
  const cancelled: EndedTask[] = [];
  if (merged === null) {
    const refused = makeRoom(state, session, params, mode, cancelled);
    if (refused !== null) return { refused };
  }
  session.agent = input.agent;
  session.lane = input.lane;
  session.maxConcurrent = params.maxConcurrent ?? session.maxConcurrent;
  session.pinned ||= params.maxConcurrent !== null;
  const task = merged ?? take(state, session, params, mode, windowMs);
  if (merged === null) task.collects = mode === "collect";
  if (merged === null && isOffered)
    task.steerUntil = state.clock.now() + (params.steerMs ?? DEFAULT_STEER_MS);
  if (bounds !== undefined && merged === null)
    orRestore(state, before, () => countBounded(state, bounds, [task]));
  const answer = toInserted(state, task);
  settleMoves(state);
  preempt(state);
  signalCancelled(state, cancelled);
  signal(state, { kind: "due" });
  return { refused: null, task: answer, merged: merged !== null, cancelled };
}

/** Appends this message to the previous one, if that is still in its debounce window; else null. */
function addToDebounced(
  state: OracleState,
  session: OracleSession,
  { task: input }: SendParams,
  mode: SessionMode,
  windowMs: number,
): OracleTask | null {
  const now = state.clock.now();
  const { debounce } = session;
  const task = state.tasks.find(({ seq }) => seq === debounce?.taskSeq);
  if (debounce === null || task?.state !== "delayed" || task.runAt === null || task.runAt <= now) return null;
  if (task.agent !== input.agent || task.lane !== input.lane || debounce.mode !== mode) return null;
  const joined = joinMessages(task.spec, input.spec);
  if (joined === null) return null;
  task.spec = joined;
  task.runAt = Math.min(now + windowMs, debounce.since + DEBOUNCE_WINDOWS_MAX * windowMs);
  return task;
}

/** Appends this message to the last task that is ready in the session, if that collects messages; else null. */
function addToCollected(
  state: OracleState,
  session: OracleSession,
  { task: input }: SendParams,
): OracleTask | null {
  const open = openTasks(state, session);
  if (open.some(({ seq, state: now }) => seq === session.debounce?.taskSeq && now === "delayed")) return null;
  const last = open
    .filter(({ inSession, parked }) => inSession || parked === "session")
    .sort((a, b) => a.sessionPosition - b.sessionPosition)
    .at(-1);
  if (last === undefined || !last.collects || last.held !== null || last.attempts.length > 0) return null;
  if (last.agent !== input.agent || last.lane !== input.lane) return null;
  const joined = joinMessages(last.spec, input.spec);
  if (joined === null) return null;
  last.spec = joined;
  return last;
}

/** Cancels tasks to make room for this message. If the message is refused instead, returns how many wait. */
function makeRoom(
  state: OracleState,
  session: OracleSession,
  { defaults }: SendParams,
  mode: SessionMode,
  cancelled: EndedTask[],
): { waiting: number; cap: number } | null {
  const open = openTasks(state, session);
  if (mode === "interrupt") {
    const all = open.sort((a, b) => a.seq - b.seq);
    cancelled.push(...all.map((task) => endNow(state, task, SESSION_ENDS.interrupted)));
    return null;
  }
  const cap = session.cap ?? defaults.cap;
  const waiting = open.filter(
    (task) => isWaiting(task) && task.origin === "message" && takerOf(state, task) === undefined,
  );
  if (waiting.length < cap) return null;
  if ((session.drop ?? defaults.drop) === "new") return { waiting: waiting.length, cap };
  const surplus = waiting.sort((a, b) => a.seq - b.seq).slice(0, waiting.length - cap + 1);
  cancelled.push(...surplus.map((task) => endNow(state, task, SESSION_ENDS.dropped)));
  return null;
}

function take(
  state: OracleState,
  session: OracleSession,
  { task: input }: SendParams,
  mode: SessionMode,
  windowMs: number,
): OracleTask {
  const since = state.clock.now();
  endDebounce(state, session);
  const task = insertTask(state, { ...input, runAt: windowMs === 0 ? null : since + windowMs }, NO_LIMITS);
  if (task.state === "delayed") session.debounce = { taskSeq: task.seq, since, mode };
  return task;
}
