import type { RotaEvent } from "../../../src/model/event.ts";
import { slotsPerTenant } from "../../../src/model/lane.ts";
import type { Task } from "../../../src/model/task.ts";
import type { TaskState } from "../../../src/model/task-state.ts";
import { DEFAULT_TENANT } from "../../../src/model/tenant.ts";
import { type History, type Limits, markOf } from "../history.ts";
import { replay } from "./replay.ts";

/** Something that bounds how much runs at once: its name, and how much; null: as much as there is, for now. */
interface Bound {
  readonly name: string;
  readonly most: number | null;
}

/**
 * No limit is exceeded, by what the storage granted: between `task.started` and the event that ends it an attempt counts,
 * wherever it runs, and even if its node is gone. Only what a single node runs at once is its own affair: an attempt
 * that was granted to it in an answer which got lost runs nowhere, and is put back once the node finds out.
 */
export function limits(history: History): string[] {
  return [...inflight(history), ...queued(history)];
}

function inflight({ events, tasks, calls, limits: given }: History): string[] {
  const called = new Set(calls.map(({ taskId, attempt }) => `${taskId} ${attempt}`));
  const findings: string[] = [];
  const held = new Map<string, readonly Bound[]>();
  const counts = new Map<string, number>();
  for (const { event, before } of replay(events)) {
    const { taskId, type, seq } = event;
    if (type === "batch.completed") continue;
    if (before === "running" && event.state !== "running") {
      for (const { name } of held.get(taskId) ?? []) counts.set(name, (counts.get(name) ?? 0) - 1);
      held.delete(taskId);
    }
    if (type !== "task.started") continue;
    const bounds = boundsOf(event, { task: tasks.get(taskId), called, given });
    held.set(taskId, bounds);
    for (const { name, most } of bounds) {
      const now = (counts.get(name) ?? 0) + 1;
      counts.set(name, now);
      if (most !== null && now > most)
        findings.push(`${name}: ${now} at once, of ${most} (event ${seq}, ${taskId})`);
    }
  }
  return findings;
}

const WAITING: readonly TaskState[] = ["waiting_dependency", "delayed", "queued"];

/** No task is accepted while so many wait that there is no room. Counts only what was submitted as a task, which has a marker. */
function queued({ events, tasks, limits: { tenants = {} } }: History): string[] {
  const findings: string[] = [];
  const waiting = new Map<string, Set<string>>();
  for (const { type, state, taskId, tenantId, seq } of events) {
    const most = tenants[tenantId]?.maxQueued;
    if (most === undefined || type === "batch.completed" || markOf(tasks.get(taskId)).marker === undefined)
      continue;
    const own = waiting.get(tenantId) ?? new Set();
    waiting.set(tenantId, own);
    if (WAITING.includes(state)) own.add(taskId);
    else own.delete(taskId);
    if (type === "task.created" && own.size > most)
      findings.push(`tenant ${tenantId}: ${own.size} wait, of ${most} (event ${seq}, ${taskId})`);
  }
  return findings;
}

function boundsOf(
  event: RotaEvent,
  { task, called, given }: { task: Task | undefined; called: ReadonlySet<string>; given: Limits },
): Bound[] {
  const { taskId, tenantId, lane, sessionKey, batchId, attempt = 1 } = event;
  // Agents and sessions of two tenants are two, whatever they are called.
  const whose = tenantId === DEFAULT_TENANT ? "" : `${tenantId}/`;
  const agent = `agent ${whose}${event.agentId}`;
  const bounds: Bound[] = [];
  const bound = (name: string, most: number | null | undefined) => {
    if (most !== undefined) bounds.push({ name, most });
  };
  const ofLane = given.lanes[lane];
  const share = (slots: number | undefined) =>
    slots !== undefined && given.laneShare?.holdsAt(event.seq)
      ? slotsPerTenant(slots, given.laneShare.max)
      : null;
  bound(`lane ${lane}`, ofLane?.total);
  bound(`share of tenant ${tenantId} in lane ${lane}`, share(ofLane?.total));
  const shown = task?.attempts[attempt - 1];
  // Taken from its node before the node could show that it had begun: the end before it in its slot was not written either.
  const isTaken = shown?.outcome === "cancelled" || shown?.outcome === "lost";
  const isUnreported = isTaken && shown.endedAt === event.timestamp;
  if (called.has(`${taskId} ${attempt}`) && !isUnreported) {
    const place = `lane ${lane} on ${shown?.node}`;
    bound(place, ofLane?.perNode);
    bound(`share of tenant ${tenantId} in ${place}`, share(ofLane?.perNode));
  }
  bound(`${agent} in lane ${lane}`, ofLane?.perAgent);
  bound(agent, given.agents[event.agentId]);
  bound(`tenant ${tenantId}`, given.tenants?.[tenantId]?.maxInflight);
  if (sessionKey !== undefined) bound(`session ${whose}${sessionKey}`, given.sessions[sessionKey] ?? 1);
  if (batchId !== undefined) bound(`batch ${batchId}`, markOf(task).parallelism);
  if (task?.concurrencyKey !== undefined) bound(`concurrency key ${whose}${task.concurrencyKey}`, 1);
  return bounds;
}
