import type { Engine } from "../../engine/engine.ts";
import type { EventLog } from "../../events/event-log.ts";
import type { Session, SessionAnswer, Sessions, StoppedTasks } from "../../interface/sessions.ts";
import type { Tasks } from "../../interface/tasks.ts";
import { DEFAULT_AGENT } from "../../model/agent.ts";
import { RotaError } from "../../model/errors.ts";
import { codeList, quoted } from "../../model/input/field-checks.ts";
import {
  type ParsedMessage,
  parseSessionChanges,
  parseSessionMessage,
  parseSessionPage,
  SESSION_CHANGES,
} from "../../model/input/session-input.ts";
import { parseTaskInput, type TaskDefaults } from "../../model/input/task-input.ts";
import { checkWait } from "../../model/input/wait-input.ts";
import { type Provenance, withProvenance } from "../../model/provenance.ts";
import type { Scope } from "../../model/scope.ts";
import type { SessionSettings } from "../../model/session.ts";
import { checkSessionKey } from "../../model/session-key.ts";
import type {
  NewTask,
  SessionChanges,
  SessionRecord,
  StopSessionParams,
  Storage,
} from "../../storage/storage.ts";
import { forAgent, refuseAgent } from "../agent-scope.ts";
import type { CallerBounds } from "../caller-bounds.ts";
import type { EndedTasks } from "./ended-tasks.ts";
import { findOwnSession, isShared, sessionNotFound } from "./own-session.ts";
import { toSession } from "./session-view.ts";
import type { StoredQuota } from "./stored-quota.ts";
import { submitWarnings } from "./submit-warnings.ts";
import type { TaskParser } from "./task-parser.ts";
import type { TokenEstimates } from "./token-estimates.ts";

/**
 * How many tasks of a session one transaction ends. Tasks beyond it end as `stale`, some before they can be listed. So the
 * number is larger than what any session has.
 */
const STOP_SLICE = 10_000;

export interface SessionsOptions {
  readonly scope: Scope;
  /** Who calls, and in which task. */
  readonly provenance: Provenance;
  readonly bounds: CallerBounds;
  readonly storage: Storage;
  readonly engine: Engine;
  readonly eventLog: EventLog;
  readonly tasks: Pick<Tasks, "wait">;
  readonly estimates: TokenEstimates;
  readonly ended: EndedTasks;
  readonly settings: () => SessionSettings & { readonly steerMs: number };
  readonly defaults: () => TaskDefaults;
  /** Refuses tasks beyond the storage quota of the tenant. */
  readonly quota: StoredQuota;
  readonly parse: TaskParser;
  /** The most sessions with settings of the tenant; null: no limit. */
  readonly maxSessions: () => Promise<number | null>;
  /** The context window of an agent's model in tokens; undefined: not set. */
  readonly contextWindow: (agent: string) => number | undefined;
  readonly newTaskId: () => string;
  /** Throws `invalid_field`, naming the field, for a URL that must not be called. */
  readonly checkCallback: (url: string, field: "callbackUrl") => Promise<void>;
  /** How long a task waits if no live node has an executor for it. */
  readonly noExecutorMs: () => number;
  /** Throws while no tasks are accepted. */
  readonly checkOpen: () => void;
  /** Throws `not_found` once the tenant is deleted. */
  readonly checkNotGone: () => void;
}

/** The sessions API of one tenant or agent. */
export function createSessions(options: SessionsOptions): Sessions {
  const { scope, provenance, bounds, storage, engine, eventLog, tasks, estimates, ended } = options;
  const { settings, defaults, quota, parse, maxSessions, contextWindow, newTaskId } = options;
  const { checkCallback, checkOpen, checkNotGone } = options;
  const { tenant } = scope;

  async function send(key: string, input: unknown): Promise<SessionAnswer> {
    checkSessionKey(key, "key");
    const message = parseSessionMessage(forAgent(scope, input));
    // Stop words work at any time, also while no tasks are accepted.
    if (message.stop !== null) {
      refuseAgent(scope);
      return stop(key, message.stop);
    }
    const mode = scope.agent === undefined ? message.mode : await ownMode(key, message.mode);
    checkOpen();
    const unstored = await estimates.refresh({ tenant, key });
    const task = await newTask(key, message);
    if (task.callbackUrl !== null) await checkCallback(task.callbackUrl, "callbackUrl");
    const bounded = await bounds.forTasks([task]);
    await eventLog.tried;
    checkOpen();
    const { maxConcurrent } = message;
    const max = maxConcurrent === null ? null : await maxSessions();
    const sent = await quota.storing(tenant, [task], () =>
      storage.sessions.send({
        ...{ task, mode, maxConcurrent, maxSessions: max },
        ...(bounded && { bounds: bounded }),
        defaults: settings(),
        steerMs: settings().steerMs,
      }),
    );
    if (sent.refused !== null) throw sessionFull(key, sent.refused);
    if (unstored !== null) await estimates.store({ tenant, key }, unstored);
    ended.handle(sent.cancelled);
    if (!sent.merged) engine.metrics.of(tenant).submitted(task, { rejected: false });
    engine.wakeFor(sent.task);
    const { id: taskId, state, position } = sent.task;
    const warnings = await submitWarnings(options, [task], [sent.task]);
    return { taskId, state, position, merged: sent.merged, ...warnings };
  }

  /**
   * The mode of a message of an agent. Throws `not_found` if the session is another agent's, or if the message would end tasks of
   * other agents: in mode `interrupt`, or in a full session with `drop` `old`.
   */
  async function ownMode(key: string, mode: ParsedMessage["mode"]): Promise<ParsedMessage["mode"]> {
    const record = await findOwnSession(storage, scope, key);
    // A new session has nothing to interrupt, except a message that another agent sends at the same time.
    if (record === null) return mode === "interrupt" ? "followup" : mode;
    const { mode: usual, running, queued, cap, drop } = shown(record);
    const endsOthers =
      (mode ?? usual) === "interrupt" ? running + queued > 0 : drop === "old" && queued >= cap;
    if (endsOthers && (await isShared(storage, scope, key))) throw sessionNotFound();
    return mode;
  }

  /** A message without an agent or a lane gets those of the message before it, from the session. */
  async function newTask(key: string, parsed: ParsedMessage): Promise<NewTask> {
    const { message, agent, lane, callbackUrl } = parsed;
    const session = agent === undefined || lane === undefined ? await find(key) : null;
    const agentId = agent ?? session?.agent ?? undefined;
    // The lane of the session belongs to its agent: a message for another agent does not inherit it.
    const isOfAgent = session?.agent === null || session?.agent === agentId;
    const given = {
      ...{ message, agentId, callbackUrl },
      lane: lane ?? (isOfAgent ? (session?.lane ?? undefined) : undefined),
    };
    return {
      ...withProvenance(
        await parse((known) => parseTaskInput({ ...given, sessionKey: key }, known)),
        provenance,
      ),
      id: newTaskId(),
      tenant,
      origin: "message",
      schedule: null,
      batch: null,
      idempotency: null,
    };
  }

  async function stop(key: string, scope: StopSessionParams["scope"]): Promise<StoppedTasks> {
    checkSessionKey(key, "key");
    const stopped: string[] = [];
    const cancelled: string[] = [];
    let cutoff: { cutoff?: number } = {};
    for (let more = true; more; ) {
      const slice = await storage.sessions.stop({ tenant, key, scope, limit: STOP_SLICE, ...cutoff });
      ended.handle([...slice.stopped, ...slice.cancelled]);
      stopped.push(...slice.stopped.map(({ id }) => id));
      cancelled.push(...slice.cancelled.map(({ id }) => id));
      cutoff = { cutoff: slice.cutoff };
      more = slice.more;
    }
    return { stopped, cancelled };
  }

  async function find(key: string): Promise<SessionRecord | null> {
    return storage.sessions.get({ tenant, key });
  }

  /** The result of an update without changes: it does not create a session. */
  async function unchanged(key: string): Promise<SessionRecord> {
    const record = await find(key);
    if (record !== null) return record;
    throw new RotaError(
      "invalid_field",
      `there is no session ${quoted(key)} yet: set at least one of ${codeList(Object.keys(SESSION_CHANGES.fields))}`,
    );
  }

  /** A number of tokens needs a context window. If the session has none, the one of its agent is stored. */
  async function withWindow(key: string, changes: SessionChanges): Promise<SessionChanges> {
    if (typeof changes.tokens !== "number" || changes.contextWindow !== undefined) return changes;
    const record = await find(key);
    if ((record?.contextWindow ?? null) !== null) return changes;
    const window = contextWindow(changes.agent ?? record?.agent ?? DEFAULT_AGENT);
    return window === undefined ? changes : { ...changes, contextWindow: window };
  }

  function shown(record: SessionRecord): Session {
    return toSession(record, { settings: settings(), ...defaults() });
  }

  return {
    send,

    async ask(key, input, waitOptions = {}) {
      checkWait(waitOptions);
      waitOptions.signal?.throwIfAborted();
      const sent = await send(key, input);
      return sent.taskId === undefined ? sent : tasks.wait(sent.taskId, waitOptions);
    },

    stop: (key) => stop(key, "oldest"),
    stopAll: (key) => stop(key, "all"),
    reset: (key) => stop(key, "reset"),

    async get(key) {
      const record = await findOwnSession(storage, scope, checkSessionKey(key, "key"));
      if (record === null) throw sessionNotFound();
      return shown(record);
    },

    async list(page = {}) {
      const { sessions, nextCursor } = await storage.sessions.list({
        ...scope,
        ...parseSessionPage({ ...page }),
      });
      return {
        sessions: sessions.map(shown),
        count: sessions.length,
        nextCursor: nextCursor === null ? null : String(nextCursor),
      };
    },

    async update(key, given) {
      checkSessionKey(key, "key");
      checkNotGone();
      const changes = await withWindow(key, parseSessionChanges(given));
      if (Object.keys(changes).length === 0) return shown(await unchanged(key));
      const defaultMax = settings().maxConcurrent;
      const max = await maxSessions();
      const record = await storage.sessions.update({ tenant, key, defaultMax, changes, maxSessions: max });
      // More tasks of the session may be able to start now.
      engine.onSignal({ kind: "work" });
      return shown(record);
    },

    async delete(key) {
      const deleted = await storage.sessions.delete({ tenant, key: checkSessionKey(key, "key") });
      if (!deleted.found) throw sessionNotFound();
      if (deleted.open > 0) throw sessionBusy(key, deleted.open);
      return { deleted: true };
    },
  };
}

function sessionBusy(key: string, open: number): RotaError {
  const tasks = open === 1 ? "1 task of it runs or waits" : `${open} tasks of it run or wait`;
  return new RotaError(
    "conflict",
    `session ${quoted(key)} is not idle: ${tasks}; first send \`POST /v1/sessions/{key}/stopall\`, or run \`rota stop KEY --all\``,
    {
      details: { open },
    },
  );
}

function sessionFull(key: string, details: { readonly waiting: number; readonly cap: number }): RotaError {
  const { waiting, cap } = details;
  const messages = waiting === 1 ? "1 waiting message" : `${waiting} waiting messages`;
  return new RotaError(
    "queue_full",
    `the session ${quoted(key)} has ${messages}, and its \`cap\` is ${cap}: retry later, or raise \`cap\``,
    { details: { waiting, cap } },
  );
}
