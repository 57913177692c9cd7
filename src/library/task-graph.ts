import { resolveDependencies } from "../model/dependency-graph.ts";
import type { NewTask } from "../storage/storage.ts";

/** Tasks with what they depend on by id, where keys may have been written. Throws `unknown_key`, `dependency_cycle`. */
export function withDependencies(tasks: readonly NewTask[]): NewTask[] {
  const { dependsOn } = resolveDependencies(tasks.map(toGraphTask));
  return tasks.map((task, place) => {
    const ids = dependsOn[place] ?? [];
    return ids.length === 0 ? task : { ...task, dependsOn: ids, spec: { ...task.spec, dependsOn: ids } };
  });
}

/** The same tasks, each after those it depends on: a storage knows only what came before. */
export function parentsFirst(tasks: readonly NewTask[]): readonly NewTask[] {
  if (tasks.every(({ dependsOn }) => dependsOn.length === 0)) return tasks;
  const places = new Map(tasks.map(({ id }, place) => [id, place]));
  const byPlace = tasks.map((task) => ({
    ...toGraphTask(task),
    // Each is its own key here, so that ids are found among these tasks, too.
    key: task.id,
    dependsOn: task.dependsOn.filter((id) => places.has(id)),
  }));
  return resolveDependencies(byPlace).order.flatMap((place) => tasks[place] ?? []);
}

function toGraphTask({ id, dependsOn, spec }: NewTask) {
  return { id, key: spec.key, dependsOn };
}
