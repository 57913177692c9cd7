import type { DependencyResult, Task } from "./task.ts";

/** The results of dependencies as stored text. */
const texts = new WeakMap<DependencyResult, string>();

/** Keeps the text of the result: parsed JSON takes up to thirteen times as much memory. */
export function dependencyResult(taskId: string, text: string): DependencyResult {
  const dependency = {
    taskId,
    get result() {
      return JSON.parse(text);
    },
  };
  texts.set(dependency, text);
  return dependency;
}

/**
 * `JSON.stringify` of the task that an executor gets. The results of its dependencies, which can be megabytes, are inserted as
 * stored text instead of being parsed and serialized again.
 */
export function taskJson(task: Task & { readonly tenantId?: string }): string {
  const { dependencies, ...others } = task;
  if (dependencies === undefined) return JSON.stringify(task);
  const items = dependencies.map((dependency) => {
    const text = texts.get(dependency);
    if (text === undefined) return JSON.stringify(dependency);
    return `{"taskId":${JSON.stringify(dependency.taskId)},"result":${text}}`;
  });
  return `${JSON.stringify(others).slice(0, -1)},"dependencies":[${items.join(",")}]}`;
}
