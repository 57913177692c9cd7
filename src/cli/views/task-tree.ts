import type { Task } from "../../model/task.ts";
import { cutShort } from "../../model/text/task-title.ts";
import { oneLine } from "../terminal/display-text.ts";
import { styled, styledState } from "../terminal/style.ts";

export interface TaskTreeOptions {
  readonly rootTaskId: string;
  /** The task that the reader asked for. */
  readonly marked: string;
  readonly width: number;
}

/** Tasks as a tree: each below the task that submitted it. `tasks`: oldest first. */
export function taskTree(tasks: readonly Task[], { rootTaskId, marked, width }: TaskTreeOptions): string[] {
  const known = new Set(tasks.map(({ taskId }) => taskId));
  const children = new Map<string, Task[]>();
  const tops: Task[] = [];
  for (const task of tasks) {
    const { parentTaskId: parent } = task;
    // A parent that was deleted for its age, or that is another agent's, cannot be shown.
    if (parent === undefined || !known.has(parent)) tops.push(task);
    else children.set(parent, [...(children.get(parent) ?? []), task]);
  }
  const lines: string[] = known.has(rootTaskId) ? [] : [`${rootTaskId} (not shown)`];
  const add = (task: Task, lead: string, branch: string, indent: string): void => {
    const text = `${task.taskId} ${task.state} ${oneLine(task.agentId)}: ${oneLine(titleOf(task))}`;
    const room = Math.max(width - lead.length - branch.length, 20);
    const shown = text.length > room ? `${text.slice(0, room - 1)}…` : text;
    const coloured = shown.replace(` ${task.state} `, ` ${styledState(task.state)} `);
    lines.push(lead + branch + (task.taskId === marked ? styled("bold", coloured) : coloured));
    const own = children.get(task.taskId) ?? [];
    for (const [index, child] of own.entries()) {
      const isLast = index === own.length - 1;
      add(child, lead + indent, isLast ? "└─ " : "├─ ", isLast ? "   " : "│  ");
    }
  };
  for (const top of tops) add(top, "", "", "");
  return lines;
}

function titleOf({ action, instruction, message, payload }: Task): string {
  return cutShort(instruction ?? message ?? action ?? JSON.stringify(payload ?? null));
}
