import { setImmediate } from "node:timers/promises";
import type { BatchTaskInput } from "../../model/batch.ts";
import { RotaError } from "../../model/errors.ts";
import type { BatchInput } from "../../model/input/batch-input.ts";
import { invalidField, isObject } from "../../model/input/field-checks.ts";
import type { ParsedTask } from "../../model/input/task-input.ts";
import { ownRecord, type Scope } from "../../model/scope.ts";
import { isTaskId } from "../../model/task-id.ts";
import { keepOwn } from "../../model/text/own-json.ts";
import type { Storage } from "../../storage/storage.ts";
import { forDelegate } from "../agent-scope.ts";
import { findOwnSession } from "./own-session.ts";

/** How many tasks one request may depend on in all: each of them is read. */
const PARENTS_MAX = 1_000;

/** The input of a batch with the agent of the caller filled in, as `forAgent` does for a task. */
export function batchForAgent(scope: Scope, input: BatchInput): BatchInput {
  if (scope.agent === undefined || !isObject(input) || !Array.isArray(input.tasks)) return input;
  const own = forDelegate(scope, input);
  // The agent of the batch is the default of its tasks.
  const { agentId } = own;
  const named = (task: BatchTaskInput): BatchTaskInput =>
    agentId !== undefined && isObject(task) && (task.agentId ?? null) === null
      ? keepOwn(task, { ...task, agentId })
      : task;
  const tasks = own.tasks.map((task) => forDelegate(scope, named(task)));
  return keepOwn(input, { ...own, tasks });
}

/**
 * A task receives the results of its dependencies, and a task in a session delays the messages behind it. So both must belong to
 * the agent of the caller. Each is read once. Throws `not_found`.
 */
export async function checkNeighbours(
  storage: Storage,
  scope: Scope,
  tasks: readonly ParsedTask[],
): Promise<void> {
  const keys = new Set(tasks.flatMap(({ session }) => session?.key ?? []));
  for (const key of keys) await findOwnSession(storage, scope, key);
  const ids = [...new Set(tasks.flatMap(({ dependsOn }) => dependsOn).filter(isTaskId))];
  if (ids.length > PARENTS_MAX) throw tooManyParents(ids.length);
  for (const [index, id] of ids.entries()) {
    // Lets other requests run in between: each task may be large.
    if (index % 10 === 9) await setImmediate();
    const parent = await storage.tasks.get({ tenant: scope.tenant, id });
    if (parent !== null && ownRecord(scope, parent) === null) {
      throw new RotaError("not_found", "task not found");
    }
  }
}

function tooManyParents(count: number): RotaError {
  return invalidField(
    "dependsOn",
    `\`dependsOn\` names ${count} tasks in all, and may name ${PARENTS_MAX} with a key of the role \`agent\``,
  );
}
