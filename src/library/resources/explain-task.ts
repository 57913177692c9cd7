import type { AlonePhase } from "../../engine/work/alone-turns.ts";
import type { RunningMemory } from "../../engine/work/running-bytes.ts";
import type { RotaState } from "../../interface/rota.ts";
import type { Explanation, Reason, ReasonCode } from "../../model/explanation.ts";
import { quoted } from "../../model/input/field-checks.ts";
import { tabOf } from "../../model/tab-key.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import { isTerminal } from "../../model/task-state.ts";
import { agoText } from "../../model/text/ago-text.ts";
import { MIB } from "../../model/text/bytes.ts";
import { rfc3339 } from "../../model/text/rfc3339.ts";
import { NOT_POLLING_MS, workerState } from "../../model/worker.ts";
import type { TaskSituation, WorkerRecord } from "../../storage/storage.ts";

/** What only this process knows, and not the storage. */
export interface ProcessSituation {
  readonly state: RotaState;
  readonly enabled: boolean;
  /** Its slots in the task's lane; null: it does not run that lane. */
  readonly lane: { readonly running: number; readonly concurrency: number } | null;
  /** How many bytes its running tasks hold, and how many they may. */
  readonly memory: RunningMemory;
  /** Whether it runs one task alone, or is about to, and so starts no others. */
  readonly alonePhase: AlonePhase;
  /** How long a task waits if no live node has an executor for it. */
  readonly noExecutorMs: number;
  /** By the storage's clock. */
  readonly now: number;
}

/** The live workers for the agent of a task, and the labels that it requires of them; undefined: none. */
export interface WorkersOfTask {
  readonly serving: readonly WorkerRecord[];
  readonly labels: Readonly<Record<string, string>> | undefined;
}

/** How many workers that ask for no tasks a message names. */
const SILENT_NAMED_MAX = 3;

/** Lists everything that holds a task. `workers`: null if no workers run it. */
export function explainTask(
  situation: TaskSituation,
  process: ProcessSituation,
  workers: WorkersOfTask | null = null,
): Explanation {
  const { task, ahead, batch, session } = situation;
  const isInLine = task.state === "queued" && batch === null && session === null;
  return {
    taskId: task.id,
    state: task.state,
    since: rfc3339(sinceOf(task)),
    position: isInLine ? ahead.count + 1 : 0,
    ahead: ahead.ids,
    reasons: reasonsOf(situation, process, workers),
  };
}

/** Since when the task has been in its state. */
function sinceOf(task: TaskRecord): number {
  const { createdAt, completedAt, runAt, attempts } = task;
  const last = attempts.at(-1);
  if (completedAt !== null) return completedAt;
  if (last !== undefined && last.endedAt === null) return last.startedAt;
  const began = Math.max(createdAt, last?.endedAt ?? createdAt);
  return task.state === "queued" ? Math.max(began, runAt ?? began) : began;
}

function reasonsOf(
  situation: TaskSituation,
  process: ProcessSituation,
  workers: WorkersOfTask | null,
): Reason[] {
  const { task } = situation;
  if (isTerminal(task.state)) return [];
  switch (task.state) {
    case "assigned":
      return [
        reason(task, "assigned", `${task.attempts.at(-1)?.node} has claimed it and will begin it next`),
      ];
    case "running":
      return [
        reason(task, "running", `attempt ${task.attempts.length} runs on ${task.attempts.at(-1)?.node}`),
      ];
    case "delayed":
      return [...generalReasons(situation, process), delay(task)];
    case "waiting_dependency":
      return [...generalReasons(situation, process), ...parentReasons(situation)];
    default:
      return [...generalReasons(situation, process), ...queueReasons(situation, process, workers)];
  }
}

function reason(task: TaskRecord, code: ReasonCode, message: string, more: Partial<Reason> = {}): Reason {
  return { code, message, since: rfc3339(sinceOf(task)), ...more };
}

function delay(task: TaskRecord): Reason {
  const until = rfc3339(task.runAt ?? task.createdAt);
  return task.attempts.length > 0
    ? reason(task, "retry_wait", `it is tried again at ${until}`, { until })
    : reason(task, "not_before", `it starts not before ${until}`, { until });
}

function parentReasons({ task, parents }: TaskSituation): Reason[] {
  const known = new Map(parents.map(({ id, state }) => [id, state]));
  return (task.spec.dependsOn ?? []).flatMap((taskId) => {
    const state = known.get(taskId);
    if (state === "done") return [];
    return state === undefined
      ? reason(task, "unknown_task", `it waits for ${taskId}, which does not exist`, { taskId })
      : reason(task, "waiting_for_task", `it waits for ${taskId}, which is ${state}`, { taskId });
  });
}

/** Reasons that hold a task in any waiting state. */
function generalReasons({ task, tenant }: TaskSituation, process: ProcessSituation): Reason[] {
  const reasons = processReasons(task, process);
  if (!tenant.disabled) return reasons;
  return [
    ...reasons,
    reason(task, "tenant_disabled", "its tenant is disabled: it waits until the tenant is enabled"),
  ];
}

function processReasons(task: TaskRecord, { state, enabled }: ProcessSituation): Reason[] {
  if (!enabled) {
    return [reason(task, "scheduler_disabled", "the scheduler is disabled: set `scheduler.enabled` to true")];
  }
  if (state === "created") return [reason(task, "not_started", "this process has not been started")];
  if (state !== "running")
    return [reason(task, "draining", "this process is stopping and starts nothing more")];
  return [];
}

/** Why a queued task has not started. */
function queueReasons(
  situation: TaskSituation,
  process: ProcessSituation,
  workers: WorkersOfTask | null,
): Reason[] {
  const { task, lane, tenant, laneShare, agent, ahead, batch, session, key } = situation;
  const { lane: here, memory } = process;
  const { lane: name } = task;
  const reasons: Reason[] = [];
  const add = (code: ReasonCode, message: string, more: Partial<Reason> = {}) =>
    reasons.push(reason(task, code, message, more));
  if (situation.noExecutor !== null) add("no_executor", ...noExecutor(task, situation.noExecutor, process));
  if (task.attempts.at(-1)?.outcome === "preempted") {
    add("preempted", "a critical task took its slot; it goes first of its agent's non-critical tasks");
  }
  if (batch !== null) add("batch_full", ...batchFull(batch));
  if (session?.takenBy != null) add("taken", ...taken(session.takenBy));
  else if (session !== null) add("session_busy", ...sessionBusy(session, process.now));
  if (key !== null) add("concurrency_key", keyBusy(key), { taskId: key.holder });
  if (situation.workers !== null) {
    const held = workerReason(situation.workers, task.agent, { workers, now: process.now });
    if (held !== null) add(...held);
  } else if (here === null)
    add("lane_not_served", `this process does not run the lane "${name}"`, { lane: name });
  else if (here.concurrency === 0) {
    add("lane_not_served", `the lane "${name}" has a concurrency of 0 in this process`, { lane: name });
  } else if (here.running >= here.concurrency) {
    add("node_full", `all ${here.concurrency} slots of the lane "${name}" on this node are taken`, {
      lane: name,
    });
  }
  if (situation.alone !== null) add("runs_alone", runsAlone(situation.alone));
  else if (process.alonePhase !== "open" && situation.workers === null)
    add("node_runs_alone", NODE_RUNS_ALONE[process.alonePhase]);
  if (situation.workers === null && memory.isOverShare(task.tenant))
    add("node_memory", shareOfMemory(memory, task.tenant));
  if (situation.workers === null && !memory.hasRoom) {
    add(
      "node_memory",
      `the tasks that run in this process hold ${mib(memory.held)}: it starts the next one once they hold less than ${mib(memory.max)} (\`scheduler.maxRunningBytes\`)`,
    );
  }
  if (lane.total !== null && lane.inflight >= lane.total) {
    add("lane_full", `all ${lane.total} slots of the lane "${name}" over all nodes are taken`, {
      lane: name,
    });
  }
  if (laneShare !== null) {
    const { inflight, max } = laneShare;
    add(
      "tenant_at_lane_share",
      `its tenant holds ${inflight} slots of the lane "${name}" and may hold ${max}, so that others find some`,
      { lane: name },
    );
  }
  if (tenant.max !== null && tenant.inflight >= tenant.max) {
    add("tenant_full", `its tenant runs ${count(tenant.inflight)} and may run ${tenant.max}`);
  }
  if (agent.max !== null && agent.inflight >= agent.max) {
    add("agent_full", `agent "${task.agent}" runs ${count(agent.inflight)} and may run ${agent.max}`);
  } else if (lane.perAgent !== null && agent.inLane >= lane.perAgent) {
    add(
      "agent_full",
      `agent "${task.agent}" runs ${count(agent.inLane)} in the lane "${name}" and may run ${lane.perAgent} there`,
      {
        lane: name,
      },
    );
  }
  if (ahead.count > 0) {
    const tasks = count(ahead.count);
    const [first] = ahead.ids;
    add(
      "tasks_ahead",
      `${tasks} of agent "${task.agent}" ${ahead.count === 1 ? "goes" : "go"} first`,
      first === undefined ? {} : { taskId: first },
    );
  }
  if (reasons.length === 0 && !tenant.disabled && process.enabled && process.state === "running") {
    add("others_first", "its turn comes next, or after tasks of others", { lane: name });
  }
  return reasons;
}

function noExecutor(
  { agent, spec }: TaskRecord,
  { served, byWorkers, lastSeenAt, since }: NonNullable<TaskSituation["noExecutor"]>,
  { noExecutorMs, now }: ProcessSituation,
): [message: string, more: Partial<Reason>] {
  if (byWorkers) {
    const seen = lastSeenAt === null ? "none was seen yet" : `last seen ${agoText(now - lastSeenAt)}`;
    return [`no worker for agent "${agent}"; ${seen}`, {}];
  }
  if (served) {
    const seen = lastSeenAt === null ? "" : `; one was last seen at ${rfc3339(lastSeenAt)}`;
    return [`no live node has the executor of agent "${agent}"${seen}`, {}];
  }
  const message = `agent "${agent}" has no executor, and no live node has \`executors.${spec.work.kind}\``;
  if (since === null) return [`${message}: it fails unless a node or a worker that runs it starts`, {}];
  const until = rfc3339(since + noExecutorMs);
  return [`${message}: it fails at ${until} unless a node or a worker that runs it starts`, { until }];
}

/** What holds back a task that live workers can run; null: one of them asks for tasks. */
function workerReason(
  counted: NonNullable<TaskSituation["workers"]>,
  agent: string,
  { workers, now }: { readonly workers: WorkersOfTask | null; readonly now: number },
): [code: ReasonCode, message: string] | null {
  const labels = Object.entries(workers?.labels ?? {});
  const able = (workers?.serving ?? []).filter((worker) =>
    labels.every(([name, value]) => worker.labels[name] === value),
  );
  if (labels.length > 0 && able.length === 0) {
    const required = labels.map(([name, value]) => `${name}=${value}`).join(", ");
    return [
      "no_executor",
      `no worker for agent "${agent}" has the labels that the agent requires: ${required}`,
    ];
  }
  const open = able.filter(({ draining }) => !draining);
  const { count, slots, held } = labels.length > 0 ? totalOf(open) : counted;
  if (held >= slots) return ["workers_busy", workersBusy(agent, { count, slots })];
  const free = open.filter((worker) => worker.held < worker.slots);
  if (free.length === 0 || free.some((worker) => workerState(worker, now) !== "not_polling")) return null;
  const silent = free.slice(0, SILENT_NAMED_MAX).map(({ id }) => id);
  const rest = free.length > silent.length ? ` and ${free.length - silent.length} more` : "";
  return [
    "no_executor",
    `no worker for agent "${agent}" with a free slot asks for tasks: ${silent.join(", ")}${rest} did not for ${NOT_POLLING_MS / 1_000} s`,
  ];
}

function totalOf(workers: readonly WorkerRecord[]): NonNullable<TaskSituation["workers"]> {
  const sum = (of: (worker: WorkerRecord) => number) => workers.reduce((total, each) => total + of(each), 0);
  return { count: workers.length, slots: sum(({ slots }) => slots), held: sum(({ held }) => held) };
}

function workersBusy(agent: string, { count, slots }: { count: number; slots: number }): string {
  if (count === 0) return `all workers for agent "${agent}" drain: they take no more tasks`;
  const workers = count === 1 ? "the worker" : `the ${count} workers`;
  return `all ${slots} slots of ${workers} for agent "${agent}" are taken`;
}

const NODE_RUNS_ALONE = {
  closing:
    "this process starts nothing until its running tasks have ended; then it runs one task alone, because processes died while they ran it",
  alone:
    "this process runs one task alone, because processes died while they ran it; other tasks start afterwards",
} as const;

function runsAlone({ losses }: NonNullable<TaskSituation["alone"]>): string {
  return `${losses} processes died while they ran it, so that it runs alone: a process starts it when nothing else runs there, in turn with other tasks`;
}

function shareOfMemory(memory: RunningMemory, tenant: string): string {
  const share = `${mib(memory.tenantMax ?? memory.max)} of ${mib(memory.max)} (\`tenants.maxLaneShare\` of \`scheduler.maxRunningBytes\`)`;
  return `the tasks of its tenant that run in this process hold ${mib(memory.heldBy(tenant))}: the next one starts once they hold less than their share, ${share}, so that others find room`;
}

function mib(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}

function count(tasks: number): string {
  return tasks === 1 ? "1 task" : `${tasks} tasks`;
}

function batchFull({
  parallelism,
  active,
}: NonNullable<TaskSituation["batch"]>): [message: string, more: Partial<Reason>] {
  const others =
    parallelism === 1 ? "1 task of its batch runs or goes" : `${parallelism} tasks of its batch run or go`;
  const [taskId] = active;
  return [`${others} first; the batch runs ${parallelism} at once`, taskId === undefined ? {} : { taskId }];
}

/** How many tasks ahead in the session are named. */
const NAMED_MAX = 3;

function sessionBusy(
  { key, max, active, offeredUntil }: NonNullable<TaskSituation["session"]>,
  now: number,
): [message: string, more: Partial<Reason>] {
  const [taskId] = active;
  const others = active.length === 0 ? "others" : active.slice(0, NAMED_MAX).join(", ");
  const busy = `the session ${quoted(key)} is busy with ${others}; the session runs ${max} at once`;
  const more = taskId === undefined ? {} : { taskId };
  if (offeredUntil === null || offeredUntil <= now) return [busy, more];
  return [`${busy}; the running task may take this message until ${rfc3339(offeredUntil)}`, more];
}

function taken(taskId: string): [message: string, more: Partial<Reason>] {
  return [`the running task ${taskId} has taken this message, which ends with that task`, { taskId }];
}

function keyBusy({ name, holder }: NonNullable<TaskSituation["key"]>): string {
  const tab = tabOf(name);
  return `${tab === undefined ? `concurrency key ${quoted(name)}` : `tab ${tab}`} busy with ${holder}`;
}
