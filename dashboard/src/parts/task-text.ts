import type { Task, TaskState } from "../../../src/client/index.ts";
import { formatMoment, sayDuration, shortId } from "./format.ts";
import { stateWord } from "./state.tsx";

const TITLE_MAX = 240;
const ENDED: readonly TaskState[] = ["done", "failed", "cancelled", "rejected"];

const PRIORITIES: Readonly<Record<number, string>> = { 0: "critical", 1: "high", 2: "normal", 3: "low" };

export function isEnded(state: TaskState): boolean {
  return ENDED.includes(state);
}

export function priorityWord(priority: number): string {
  return PRIORITIES[priority] ?? String(priority);
}

/** What a task asks for, in one line. */
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

/** Why a task is in its state, in few words and only by what it says itself. */
export function stateNote(task: Task, now: number): string {
  const { state, error, runAt, retryCount, retryPolicy, dependsOn = [] } = task;
  switch (state) {
    case "failed":
    case "rejected":
    case "cancelled":
      return error ?? stateWord(state);
    case "delayed": {
      const at = runAt === undefined ? undefined : Date.parse(runAt);
      if (retryCount > 0) {
        const soon = at === undefined || at <= now ? "" : ` in ${sayDuration(at - now)}`;
        return `Retry ${retryCount} of ${retryPolicy?.maxRetries ?? retryCount}${soon}`;
      }
      return at === undefined ? "Delayed" : `Not before ${formatMoment(at, now)}`;
    }
    case "waiting_dependency":
      return dependsOn.length === 1
        ? `Waiting for ${shortId(dependsOn[0] ?? "")}`
        : `Waiting for ${dependsOn.length} tasks`;
    default:
      return stateWord(state);
  }
}
