import type { Task } from "../../../../src/client/index.ts";

type Node = Pick<Task, "taskId" | "parentTaskId">;

export interface TreeRow<Each extends Node> {
  readonly task: Each;
  /** 0: the root, or a task whose parent is not among them. */
  readonly level: number;
}

/** The tasks of a tree in the order of their lines: each below its parent, siblings in the given order. */
export function treeRows<Each extends Node>(tasks: readonly Each[]): readonly TreeRow<Each>[] {
  const known = new Set(tasks.map(({ taskId }) => taskId));
  const below = Map.groupBy(tasks, ({ parentTaskId }) =>
    parentTaskId !== undefined && known.has(parentTaskId) ? parentTaskId : "",
  );
  const rows: TreeRow<Each>[] = [];
  const add = (parent: string, level: number) => {
    for (const task of below.get(parent) ?? []) {
      rows.push({ task, level });
      add(task.taskId, level + 1);
    }
  };
  add("", 0);
  return rows;
}
