import { NEWCOMER_LEAD } from "../../model/lane.ts";
import type { AdmissionLimits, InsertedTask, NewTask } from "../storage.ts";
import {
  addEvent,
  copyJson,
  countWaiting,
  isWaiting,
  type OracleState,
  type OracleTask,
  tell,
} from "./state.ts";

const REJECTION_ERRORS = {
  global: "rejected: global queue full",
  agent: "rejected: agent queue full",
} as const;

export function insertTasks(
  state: OracleState,
  { tasks, limits }: { tasks: readonly NewTask[]; limits: AdmissionLimits },
): InsertedTask[] {
  const unknown = tasks.find((task) => !state.lanes.has(task.lane));
  if (unknown !== undefined) throw new Error(`lane "${unknown.lane}" is not configured`);
  const answers = tasks.map((task) =>
    toInserted(findById(state, task.id) ?? insertTask(state, task, limits)),
  );
  tell(state, { kind: "events" }, { kind: "work" }, { kind: "due" });
  return answers;
}

function insertTask(state: OracleState, input: NewTask, limits: AdmissionLimits): OracleTask {
  ensureLine(state, input);
  const now = state.clock.now();
  const rejection = admit(state, input, limits);
  const isDelayed = input.runAt !== null && input.runAt > now;
  const defaultDeadlineMs = input.deadline === null ? input.deadlineAfterMs : null;

  state.lastTaskSeq += 1;
  const task: OracleTask = {
    seq: state.lastTaskSeq,
    id: input.id,
    tenant: input.tenant,
    agent: input.agent,
    lane: input.lane,
    priority: input.priority,
    state: rejection ? "rejected" : isDelayed ? "delayed" : "queued",
    position: rejection || isDelayed ? 0 : countWaiting(state, input) + 1,
    createdAt: now,
    runAt: input.runAt,
    deadline:
      defaultDeadlineMs === null ? input.deadline : Math.max(now, input.runAt ?? now) + defaultDeadlineMs,
    retryCount: 0,
    batch: input.batch,
    callbackUrl: input.callbackUrl,
    startedAt: null,
    completedAt: rejection ? now : null,
    spec: copyJson(input.spec),
    result: undefined,
    error: rejection ? REJECTION_ERRORS[rejection.full] : null,
    attempts: [],
    defaultDeadlineMs,
    maxRetriesIfLost: input.maxRetriesIfLost,
    rejection,
    held: null,
  };
  state.tasks.push(task);
  if (rejection) addEvent(state, "task.rejected", task, { error: REJECTION_ERRORS[rejection.full] });
  else addEvent(state, "task.created", task, { state: task.state });
  return task;
}

/** The whole queue is looked at before the agent's share of it. */
function admit(state: OracleState, input: NewTask, limits: AdmissionLimits): OracleTask["rejection"] {
  const waiting = state.tasks.filter(isWaiting).length;
  if (waiting >= limits.maxQueueSize) return { full: "global", queued: waiting };
  const waitingOfAgent = countWaiting(state, input);
  if (waitingOfAgent >= (input.maxQueued ?? limits.maxPerAgent))
    return { full: "agent", queued: waitingOfAgent };
  return null;
}

/** Every task refers to its line, a rejected one as well, so that the line is as old as the first of them. */
function ensureLine(state: OracleState, { lane, tenant, agent }: NewTask): void {
  const isKnown = state.lines.some(
    (line) => line.lane === lane && line.tenant === tenant && line.agent === agent,
  );
  if (isKnown) return;
  state.lines.push({ lane, tenant, agent, lastServed: state.lastEventSeq - NEWCOMER_LEAD });
}

/** Ids are made by Rota itself and are nobody else's, whichever tenant asks. */
function findById(state: OracleState, id: string): OracleTask | undefined {
  return state.tasks.find((task) => task.id === id);
}

/** How an insert answers, also when it is repeated: from what is stored. */
export function toInserted(task: OracleTask): InsertedTask {
  const { seq, id, position, createdAt, runAt, deadline, rejection } = task;
  const state = rejection ? "rejected" : position > 0 ? "queued" : "delayed";
  return { seq, id, state, position, createdAt, runAt, deadline, rejection };
}
