import type { WaitingReason } from "../../../../src/client/index.ts";

type Code = WaitingReason["code"];

/** Each reason in words; `{}` is the lane or the agent that holds the tasks. */
const WORDS: Readonly<Record<Code, string>> = {
  scheduler_disabled: "The scheduler is disabled",
  not_started: "The node has not been started",
  draining: "The node is stopping",
  tenant_disabled: "The tenant is disabled",
  waiting_for_task: "Waiting for another task",
  not_before: "Not due yet, or waiting for the next attempt",
  held_back: "Their session, batch or concurrency key is busy",
  no_executor: "No executor for agent {}",
  lane_not_served: "This node does not serve lane {}",
  runs_alone: "They run alone, when no other task runs",
  node_runs_alone: "The node runs another task alone",
  node_full: "All slots of this node in lane {} are taken",
  node_memory: "The running tasks of the node have reached its memory limit",
  lane_full: "Lane {} is full",
  tenant_at_lane_share: "The tenant holds its share of lane {}; the rest is for other tenants",
  tenant_full: "The tenant is at its limit",
  agent_full: "Agent {} is at its limit",
  tasks_ahead: "Other tasks of agent {} go first",
  others_first: "Nothing holds them: their turn comes next",
  other: "Other reasons",
};

/** The text before the name, the name, and the text after it. */
export function wordsOf({ code, lane, agentId }: WaitingReason): readonly [string, string, string] {
  // A server of another version may send further codes.
  const words = WORDS[code] ?? code.replaceAll("_", " ");
  const [before = "", after] = words.split("{}");
  return after === undefined ? [words, "", ""] : [before, agentId ?? lane ?? "", after];
}

/** The server counts each lane by itself: what reads the same is one reason, the most frequent first. */
export function mergeSame(reasons: readonly WaitingReason[]): readonly WaitingReason[] {
  const merged = new Map<string, WaitingReason>();
  for (const reason of reasons) {
    const { lane: _lane, ...rest } = reason;
    const words = wordsOf(reason).join("");
    const same = merged.get(words);
    merged.set(words, same === undefined ? reason : { ...rest, count: same.count + rest.count });
  }
  return [...merged.values()].sort((one, other) => other.count - one.count);
}

const STATES: Readonly<Partial<Record<Code, string>>> = {
  waiting_for_task: "waiting_dependency",
  not_before: "delayed",
  other: "queued,delayed,waiting_dependency",
};

/** The list of tasks that may wait for this reason: the server cannot filter by reason. */
export function filterOf({ code, lane, agentId }: WaitingReason): Readonly<Record<string, string>> {
  return { state: STATES[code] ?? "queued", ...(lane && { lane }), ...(agentId && { agentId }) };
}

/** Reasons that do not pass by themselves: the user has to act. */
const NEEDS_ATTENTION: readonly Code[] = [
  "scheduler_disabled",
  "tenant_disabled",
  "no_executor",
  "lane_not_served",
];

export function needsAttention({ code }: WaitingReason): boolean {
  return NEEDS_ATTENTION.includes(code);
}
