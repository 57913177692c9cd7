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
export function taskJson(task: SentTask): string {
  return taskTexts(task).join("");
}

/** The same as texts to be sent one after the other: one text would be a copy of all results. */
export function taskTexts(task: SentTask): string[] {
  const { dependencies, ...others } = task;
  if (dependencies === undefined) return [JSON.stringify(task)];
  const items = dependencies.flatMap((dependency, index) => {
    const comma = index === 0 ? "" : ",";
    const text = texts.get(dependency);
    if (text === undefined) return [comma + JSON.stringify(dependency)];
    return [`${comma}{"taskId":${JSON.stringify(dependency.taskId)},"result":`, text, "}"];
  });
  return [`${JSON.stringify(others).slice(0, -1)},"dependencies":[`, ...items, "]}"];
}

type SentTask = Task & { readonly tenantId?: string };
