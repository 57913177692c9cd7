import type { LaneInfo, SchedulerStats, WaitingReason } from "../../../../src/client/index.ts";
import { countOf, formatCount, sayDuration } from "../../parts/format.ts";
import { needsAttention, wordsOf } from "./waiting-text.ts";

/** A problem that needs attention. */
export interface Concern {
  readonly kind: "failed" | "waits" | "stuck";
  readonly title: string;
  readonly text: string;
  /** The query of the list of tasks. */
  readonly filter: Readonly<Record<string, string>>;
}

/** An agent counts as failing if at least this many of its tasks failed, and this share of all that ended. */
const FAILED_MIN = 3;
const FAILED_SHARE = 0.2;
/** A task that waits longer than this needs attention. */
const LONG_WAIT_MS = 300_000;
const AGENTS_MAX = 5;

export function concernsOf(parts: {
  readonly agents: SchedulerStats["metrics"]["agents"];
  readonly reasons: readonly WaitingReason[];
  readonly lanes: readonly LaneInfo[];
}): readonly Concern[] {
  const { agents, reasons, lanes } = parts;
  return [...failingAgents(agents), ...reasons.filter(needsAttention).map(stuck), ...longWaits(lanes)];
}

function failingAgents(agents: SchedulerStats["metrics"]["agents"]): readonly Concern[] {
  return Object.entries(agents)
    .filter(
      ([, { failed, completed }]) => failed >= FAILED_MIN && failed / (failed + completed) >= FAILED_SHARE,
    )
    .sort(([, one], [, other]) => other.failed - one.failed)
    .slice(0, AGENTS_MAX)
    .map(([agentId, { failed, completed }]) => ({
      kind: "failed",
      title: `Agent ${agentId} fails`,
      text: `${formatCount(failed)} of ${countOf(failed + completed, "task")} since this node was started`,
      filter: { state: "failed", agentId, order: "completed" },
    }));
}

function stuck(reason: WaitingReason): Concern {
  const { lane, agentId, count } = reason;
  return {
    kind: "stuck",
    title: wordsOf(reason).join(""),
    text: count === 1 ? "1 task waits for it" : `${countOf(count, "task")} wait for it`,
    filter: { state: "queued", ...(lane && { lane }), ...(agentId && { agentId }) },
  };
}

function longWaits(lanes: readonly LaneInfo[]): readonly Concern[] {
  return lanes
    .filter(({ oldestWaitMs }) => (oldestWaitMs ?? 0) > LONG_WAIT_MS)
    .sort((one, other) => (other.oldestWaitMs ?? 0) - (one.oldestWaitMs ?? 0))
    .map(({ name, oldestWaitMs, waiting }) => ({
      kind: "waits",
      title: `Lane ${name}: the oldest waits ${sayDuration(oldestWaitMs ?? 0)}`,
      text: `${formatCount(waiting)} in all ${waiting === 1 ? "waits" : "wait"} there`,
      filter: { state: "queued", lane: name, order: "oldest" },
    }));
}
