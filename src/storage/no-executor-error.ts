import type { TaskKind } from "../model/task.ts";

/** The error of a task that failed because no node could execute it, with what to do about it. */
export function noExecutorError(agent: string, kind: TaskKind): string {
  return (
    `no executor for agent "${agent}": add the agent with rota.agent(), under \`agents\` in the configuration or with ` +
    `POST /v1/agents, start a worker for it, or set \`executors.${kind}\`, then retry the task`
  );
}
