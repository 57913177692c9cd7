import type { TaskKind } from "../model/task.ts";

/** Why a task failed that no node could execute, and what to do about it. */
export function noExecutorError(agent: string, kind: TaskKind): string {
  return (
    `no executor for agent "${agent}": add the agent with rota.agent(), under \`agents\` in the configuration or with ` +
    `POST /v1/agents, or set \`executors.${kind}\`, then retry the task`
  );
}
