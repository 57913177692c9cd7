import type { WaitingReason, WaitingReasons } from "../../interface/waiting.ts";
import { WAITING_CODES, type WaitingCode } from "../../model/explanation.ts";
import type { WaitingQueue, WaitingTasks } from "../../storage/storage.ts";
import type { ProcessSituation } from "./explain-task.ts";

const REASONS_MAX = 50;

/** A reason that holds all tasks of an agent queue, or some of them. */
type Held = Pick<WaitingReason, "lane" | "agentId"> & { readonly code: WaitingCode };

interface WaitingReasonsParams {
  readonly tenant: string;
  readonly processSituation: (lane: string) => ProcessSituation;
}

/** Counts each waiting task by the first reason, in the order of `WAITING_CODES`, that holds it. */
export function waitingReasons(
  waiting: WaitingTasks,
  { tenant, processSituation }: WaitingReasonsParams,
): WaitingReasons {
  const { queues, readyElsewhere } = waiting;
  const counts = new Counts();
  const general = generalCode(waiting, processSituation(""));
  const add = (code: WaitingCode, count: number) => counts.add({ code: general ?? code }, count);
  add("waiting_for_task", waiting.forTasks);
  add("not_before", waiting.delayed);
  add("held_back", waiting.heldBack);
  add("other", readyElsewhere);
  for (const queue of queues) {
    if (general !== null) add(general, queue.ready);
    else countQueue(counts, queue, contextOf(waiting, processSituation(queue.lane), tenant));
  }
  return counts.result();
}

/** A reason that holds all tasks. */
function generalCode({ tenant }: WaitingTasks, { enabled, state }: ProcessSituation): WaitingCode | null {
  if (!enabled) return "scheduler_disabled";
  if (state === "created") return "not_started";
  if (state !== "running") return "draining";
  return tenant.disabled ? "tenant_disabled" : null;
}

interface QueueContext {
  readonly tenant: WaitingTasks["tenant"];
  /** The slots of the lane in this process. */
  readonly here: ProcessSituation["lane"];
  /** Whether this process runs one task alone, or is about to. */
  readonly nodeRunsAlone: boolean;
  /** Whether the running tasks of this process hold all the memory that they may, or those of the tenant their share. */
  readonly memoryFull: boolean;
}

function contextOf(
  waiting: WaitingTasks,
  { lane, memory, alonePhase }: ProcessSituation,
  tenant: string,
): QueueContext {
  return {
    tenant: waiting.tenant,
    here: lane,
    nodeRunsAlone: alonePhase !== "open",
    memoryFull: !memory.hasRoom || memory.isOverShare(tenant),
  };
}

function countQueue(counts: Counts, queue: WaitingQueue, context: QueueContext): void {
  const { lane, agent: agentId, ready } = queue;
  const held = holderOf(queue, context);
  if (held !== null) {
    counts.add(held, ready);
    return;
  }
  // The first task could start now; the others of its agent queue wait behind it.
  counts.add({ code: "tasks_ahead", lane, agentId }, ready - 1);
  counts.add({ code: "others_first", lane }, 1);
}

function holderOf(queue: WaitingQueue, context: QueueContext): Held | null {
  const { lane, agent: agentId, executable, alone } = queue;
  if (!executable) return { code: "no_executor", lane, agentId };
  const { here } = context;
  if (here === null || here.concurrency === 0) return { code: "lane_not_served", lane };
  // Even with free slots, these tasks wait until no other task runs. The other tasks wait until one of these has had its turn.
  if (alone) return { code: "runs_alone", lane, agentId };
  if (context.nodeRunsAlone) return { code: "node_runs_alone" };
  if (here.running >= here.concurrency) return { code: "node_full", lane };
  return context.memoryFull ? { code: "node_memory" } : limitOf(queue, context);
}

/** The limit over all nodes that a queue has reached. */
function limitOf({ lane, agent: agentId, limits }: WaitingQueue, { tenant }: QueueContext): Held | null {
  if (isFull(limits.lane.inflight, limits.lane.total)) return { code: "lane_full", lane };
  if (limits.laneShare !== null) return { code: "tenant_at_lane_share", lane };
  if (isFull(tenant.inflight, tenant.max)) return { code: "tenant_full" };
  const agentFull = [limits.agent, limits.inLane].some(({ inflight, max }) => isFull(inflight, max));
  return agentFull ? { code: "agent_full", lane, agentId } : null;
}

function isFull(inflight: number, max: number | null): boolean {
  return max !== null && inflight >= max;
}

/** How many tasks each reason holds. */
class Counts {
  readonly #counts = new Map<string, WaitingReason>();

  add(held: Held, count: number): void {
    if (count <= 0) return;
    const key = JSON.stringify([held.code, held.lane, held.agentId]);
    this.#counts.set(key, { ...held, count: count + (this.#counts.get(key)?.count ?? 0) });
  }

  result(): WaitingReasons {
    const all = [...this.#counts.values()].sort(
      (a, b) => b.count - a.count || WAITING_CODES.indexOf(a.code) - WAITING_CODES.indexOf(b.code),
    );
    const named = all.filter(({ code }) => code !== "other").slice(0, REASONS_MAX);
    const total = sumOf(all);
    const other = total - sumOf(named);
    return { reasons: other === 0 ? named : [...named, { code: "other", count: other }], total };
  }
}

function sumOf(reasons: readonly WaitingReason[]): number {
  return reasons.reduce((sum, { count }) => sum + count, 0);
}
