import { type CallToolResult, ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { RotaError } from "../model/errors.ts";
import type { Task } from "../model/task.ts";
import { isTerminal, type TaskState } from "../model/task-state.ts";
import { taskAnswer } from "./task-answer.ts";
import type { ToolCall } from "./tool.ts";
import { harmless, quoteField } from "./untrusted.ts";

/** The tasks extension: an answer may be the handle of a task, whose result the client polls. */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

const POLL_MS = { running: 1_000, waiting: 3_000, max: 60_000 } as const;

/** A task as the extension shows it. */
interface McpTask {
  readonly taskId: string;
  readonly status: "working" | "completed" | "cancelled";
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  /** From its creation; null: it has not ended, and is kept until then. */
  readonly ttlMs: number | null;
  readonly pollIntervalMs: number;
  readonly result?: CallToolResult;
}

type ExtensionCall = Pick<ToolCall, "rota" | "backend" | "changed">;

/** The answer of a tool whose task goes on: its handle. Only for clients that know it: others take it for an empty success. */
export async function createdTask(taskId: string, call: ExtensionCall): Promise<CallToolResult> {
  const { result: _result, ...handle } = await toMcpTask(await call.rota.tasks.get(taskId), call);
  return { resultType: "task", ...handle, content: [] };
}

/** `tasks/get`. */
export async function getTask(taskId: string, call: ExtensionCall): Promise<McpTask> {
  return toMcpTask(await found(call.rota.tasks.get(taskId)), call);
}

/** `tasks/cancel`. A task that has ended stays as it is. */
export async function cancelTask(taskId: string, { rota, changed }: ExtensionCall): Promise<void> {
  const isCancelled = await found(
    rota.tasks.cancel(taskId).then(
      () => true,
      (error) => {
        if (error instanceof RotaError && error.code === "conflict") return false;
        throw error;
      },
    ),
  );
  if (isCancelled) changed({ tool: "tasks/cancel", subject: taskId, isChosen: false });
}

/** `tasks/update`. No task asks for anything, so all replies are to questions that were never asked, and are ignored. */
export async function updateTask(taskId: string, { rota }: ExtensionCall): Promise<void> {
  await found(rota.tasks.get(taskId));
}

async function toMcpTask(task: Task, { rota, backend }: ExtensionCall): Promise<McpTask> {
  const { taskId, state, createdAt, completedAt, attempts } = task;
  const common = {
    taskId,
    createdAt,
    lastUpdatedAt: completedAt ?? attempts.at(-1)?.startedAt ?? createdAt,
    pollIntervalMs: pollMs(task, backend.now()),
  };
  if (!isTerminal(state)) {
    const message = await firstReason(taskId, rota);
    return {
      ...common,
      status: "working",
      ttlMs: null,
      ...(message === undefined ? {} : { statusMessage: message }),
    };
  }
  const ended = { ...common, ttlMs: await ttlMs(task, backend) };
  if (state === "cancelled") {
    const why = task.error === undefined ? "" : `: ${quoteField(task.error)}`;
    return { ...ended, status: "cancelled", statusMessage: `the task was cancelled${why}` };
  }
  return { ...ended, status: "completed", result: toResult(task) };
}

/** `failed` of the extension is for errors of the protocol: a task that failed is completed, with an error. */
function toResult(task: Task): CallToolResult {
  const answer = taskAnswer(task);
  const isError = (["failed", "rejected"] satisfies TaskState[] as TaskState[]).includes(task.state);
  return isError ? { ...answer, isError } : answer;
}

async function firstReason(taskId: string, { tasks }: ExtensionCall["rota"]): Promise<string | undefined> {
  const { state, reasons } = await tasks.explain(taskId);
  const [first] = reasons;
  return first === undefined ? state : harmless(first.message);
}

/** Retention counts from the end. */
async function ttlMs({ createdAt, completedAt }: Task, { retentionMs }: ExtensionCall["backend"]) {
  const retention = await retentionMs();
  if (retention === null || completedAt === undefined) return null;
  return Math.max(Date.parse(completedAt) - Date.parse(createdAt), 0) + retention;
}

/** How long a client should wait before it asks again: for a task that starts later, until then. */
export function pollMs({ state, runAt }: Pick<Task, "state" | "runAt">, now: number): number {
  if (state === "running" || state === "assigned") return POLL_MS.running;
  if (state !== "delayed" || runAt === undefined) return POLL_MS.waiting;
  const aheadMs = Date.parse(runAt) - now;
  return Math.min(Math.max(aheadMs, POLL_MS.running), POLL_MS.max);
}

/** A task that does not exist, or is another tenant's, is an error of the protocol here. */
async function found<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof RotaError) || error.code !== "not_found") throw error;
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "task not found");
  }
}
