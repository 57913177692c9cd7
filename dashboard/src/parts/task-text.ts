import type { Task, TaskState } from "../../../src/client/index.ts";
import { shortId } from "./format.ts";

const TITLE_MAX = 240;
const ENDED: readonly TaskState[] = ["done", "failed", "cancelled", "rejected"];

const PRIORITIES: Readonly<Record<number, string>> = { 0: "critical", 1: "high", 2: "normal", 3: "low" };

export function isEnded(state: TaskState): boolean {
  return ENDED.includes(state);
}

/** Whether a task, or what was explained of it, waits to be started. */
export function isWaiting({ state }: { readonly state: TaskState }): boolean {
  return state === "queued" || state === "delayed" || state === "waiting_dependency";
}

export function priorityWord(priority: number): string {
  return PRIORITIES[priority] ?? String(priority);
}

/** The work of a task, in one line. */
export function titleOf(task: Partial<Task>): string {
  const { instruction, message, action, ref, selector, tabId, payload, key, taskId = "" } = task;
  const text =
    instruction ??
    message ??
    (action === undefined
      ? undefined
      : [action, ref ?? selector, tabId && `in tab ${tabId}`].filter(Boolean).join(" ")) ??
    (payload === undefined ? key : typeof payload === "string" ? payload : JSON.stringify(payload)) ??
    shortId(taskId);
  const line = text.replaceAll(/\s+/g, " ").trim().slice(0, TITLE_MAX);
  return line === "" ? shortId(taskId) : line;
}
