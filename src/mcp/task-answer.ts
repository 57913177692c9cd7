import type { CallToolResult } from "@modelcontextprotocol/server";
import type { Task } from "../model/task.ts";
import { isTerminal } from "../model/task-state.ts";
import { text } from "./answer.ts";
import type { JsonSchema } from "./json-schema.ts";
import { harmless, nameText, quoteField, TEXT_BYTES, untrusted } from "./untrusted.ts";

/** What the structured content of a task always has. */
export const TASK_OUTPUT = {
  type: "object",
  properties: { taskId: { type: "string" }, state: { type: "string" } },
  required: ["taskId", "state"],
} as const satisfies JsonSchema;

export interface TaskAnswerOptions {
  readonly full?: boolean;
  /** Of the submit, for a task that has not ended: why it may never start. */
  readonly warnings?: readonly string[];
}

/** A task as text and as JSON. What it returned is marked as data in both. */
export function taskAnswer(
  task: Task,
  { full = false, warnings = [] }: TaskAnswerOptions = {},
): CallToolResult {
  const { taskId, state, agentId, lane, priority, createdAt, runAt, sessionKey, usage } = task;
  const outcome = outcomeOf(task, full);
  const next = isTerminal(state)
    ? []
    : [...warnings.map(harmless), `${state}: call get again, or explain for the reasons.`];
  const json = {
    taskId,
    state,
    agentId,
    lane,
    priority,
    createdAt,
    ...given("runAt", runAt),
    ...given("session", sessionKey),
    ...given("startedAt", task.startedAt),
    ...given("completedAt", task.completedAt),
    ...given("latencyMs", task.latencyMs),
    attempts: task.attempts.length,
    ...given("usage", usage),
    ...outcome,
  };
  const lines = [taskLine(task), ...Object.values(outcome), ...next];
  return { ...text(lines.join("\n")), structuredContent: json };
}

/** `tsk_… done 4.2s research "Sum up…"`. */
function taskLine(task: Task): string {
  const { taskId, state, agentId, latencyMs } = task;
  const took = latencyMs === undefined ? "" : ` ${durationText(latencyMs)}`;
  return `${taskId} ${state}${took} ${nameText(agentId)} ${quoteField(workOf(task), 60)}`;
}

export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)}s`;
  return `${Math.floor(ms / 60_000)}m${Math.round((ms % 60_000) / 1_000)}s`;
}

function workOf(task: Task): string {
  return task.message ?? task.instruction ?? task.action ?? JSON.stringify(task.payload) ?? "";
}

/** The result or the error of a task, as data. */
function outcomeOf({ taskId, result, error }: Task, full: boolean): { result?: string; error?: string } {
  const bytesMax = full ? TEXT_BYTES.full : TEXT_BYTES.short;
  const more = full ? `GET /v1/tasks/${taskId} has all of it` : "call get with full: true";
  const marked = (value: unknown, what: "result" | "error") =>
    untrusted(value, { what, of: taskId, bytesMax, more });
  return {
    ...(result === undefined ? {} : { result: marked(result, "result") }),
    ...(error === undefined ? {} : { error: marked(error, "error") }),
  };
}

function given<Name extends string, Value>(name: Name, value: Value | undefined): { [Each in Name]?: Value } {
  return (value === undefined ? {} : { [name]: value }) as { [Each in Name]?: Value };
}
