import type { Task } from "../../../src/model/task.ts";
import type { History } from "../history.ts";

/** How a task fails that no node can execute; see `storage/no-executor-error.ts`. */
const NO_EXECUTOR = /^no executor for agent/;

/**
 * A node starts only what it can execute: attempts of an agent that only some processes have were granted to these, and
 * no task fails for want of an executor, since every agent that clients name has one somewhere.
 */
export function abilities(history: History): string[] {
  const processOf = new Map(history.calls.map(({ node, process }) => [node, process]));
  return [...history.tasks.values()].flatMap((task) =>
    [...unserved(task), ...astray(task, history, processOf)].map((said) => `${task.taskId}: ${said}`),
  );
}

function unserved({ agentId, error, attempts }: Task): string[] {
  const errors = [error, ...attempts.map((attempt) => attempt.error)];
  return errors.some((said) => NO_EXECUTOR.test(said ?? ""))
    ? [`it failed for want of an executor, and ${agentId} has one`]
    : [];
}

function astray(
  { taskId, agentId, attempts }: Task,
  { homes = {}, calls }: History,
  processOf: ReadonlyMap<string, string>,
): string[] {
  const home = homes[agentId];
  if (home === undefined) return [];
  const callers = calls.filter((call) => call.taskId === taskId).map(({ process }) => process);
  // The process of a node that never called is unknown.
  const granted = attempts.flatMap(({ node }) => processOf.get(node) ?? []);
  return [...new Set([...callers, ...granted])]
    .filter((process) => !home.includes(process))
    .map((process) => `${process} started it, and does not have ${agentId}`);
}
