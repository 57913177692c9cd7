import { resolveDependencies } from "../../model/dependency-graph.ts";
import { atIndex } from "../../model/input/batch-input.ts";
import { invalidField } from "../../model/input/field-checks.ts";
import { extendText } from "../../model/text/json-text.ts";
import type { NewTask } from "../../storage/storage.ts";

/** Replaces keys in `dependsOn` by ids. Throws `unknown_key`, `dependency_cycle`. */
export function withDependencies(tasks: readonly NewTask[]): NewTask[] {
  const { dependsOn } = resolveDependencies(tasks.map(toGraphTask));
  refuseKeyedParents(tasks, new Set(dependsOn.flat()));
  return tasks.map((task, index) => {
    const ids = dependsOn[index] ?? [];
    if (ids.length === 0) return task;
    const spec = { ...task.spec, dependsOn: ids };
    extendText(spec, task.spec, { dependsOn: ids });
    return { ...task, dependsOn: ids, spec };
  });
}

/** A task with an idempotency key may repeat an earlier task, whose id differs from the one that its dependants wait for. */
function refuseKeyedParents(tasks: readonly NewTask[], parents: ReadonlySet<string>): void {
  const index = tasks.findIndex(({ id, idempotency }) => idempotency !== null && parents.has(id));
  if (index === -1) return;
  const message = "`idempotencyKey` cannot be given to a task that others of the same request depend on";
  throw atIndex(invalidField("idempotencyKey", message), index);
}

/** The same tasks, each after its dependencies: the storage resolves only dependencies that it already has. */
export function parentsFirst(tasks: readonly NewTask[]): readonly NewTask[] {
  if (tasks.every(({ dependsOn }) => dependsOn.length === 0)) return tasks;
  const indexes = new Map(tasks.map(({ id }, index) => [id, index]));
  const named = tasks.map((task) => ({
    ...toGraphTask(task),
    // Each id is a key here, so that ids are also found among these tasks.
    key: task.id,
    dependsOn: task.dependsOn.filter((id) => indexes.has(id)),
  }));
  return resolveDependencies(named).order.flatMap((index) => tasks[index] ?? []);
}

function toGraphTask({ id, dependsOn, spec }: NewTask) {
  return { id, key: spec.key, dependsOn };
}
