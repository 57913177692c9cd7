import type { Task } from "../../model/task.ts";
import { oneLine, safeLines } from "../terminal/display-text.ts";
import { styled, styledState } from "../terminal/style.ts";
import { sheetLines } from "./sheet.ts";
import { tableLines } from "./table.ts";
import { shownMoment, shownSpan } from "./times.ts";

/** All fields of a task, for people. */
export function taskSheet(task: Task, now: number): string[] {
  const moment = (value: string | undefined) => (value === undefined ? undefined : shownMoment(value, now));
  const { retryPolicy, retryCount, attempts } = task;
  return [
    ...sheetLines([
      ["task", task.taskId],
      ["state", styledState(task.state)],
      ["agent", task.agentId],
      ["kind", task.kind],
      ["lane", task.lane],
      ["priority", String(task.priority)],
      ["preemptible", task.preemptible ? "yes" : undefined],
      ["created by", makerText(task.createdBy)],
      ["parent", task.parentTaskId],
      ["root", task.rootTaskId],
      ["batch", task.batchId],
      ["session", text(task.sessionKey)],
      ["concurrency", text(task.concurrencyKey)],
      ["schedule", task.scheduleId === undefined ? undefined : String(task.scheduleId)],
      ["action", text(task.action)],
      ["tab", text(task.tabId)],
      ["ref", text(task.ref)],
      ["selector", text(task.selector)],
      ["params", jsonText(task.params)],
      ["instruction", text(task.instruction)],
      ["llmConfig", jsonText(task.llmConfig)],
      ["message", text(task.message)],
      ["payload", jsonText(task.payload)],
      ["metadata", jsonText(task.metadata)],
      ["callback", text(task.callbackUrl)],
      ["created", moment(task.createdAt)],
      ["run at", moment(task.runAt)],
      ["deadline", moment(task.deadline)],
      ["timeout", task.timeout === undefined ? undefined : shownSpan(task.timeout)],
      ["retries", `${retryCount} of ${retryPolicy.maxRetries}`],
      ["started", moment(task.startedAt)],
      ["completed", moment(task.completedAt)],
      ["took", task.latencyMs === undefined ? undefined : shownSpan(task.latencyMs)],
      ["used", usageText(task.usage)],
      ["error", task.error === undefined ? undefined : styled("red", safeLines(task.error))],
      ["result", jsonText(task.result)],
    ]),
    ...(attempts.length === 0 ? [] : ["", ...attemptLines(task, now)]),
  ];
}

function makerText(createdBy: Task["createdBy"]): string | undefined {
  if (createdBy === undefined) return undefined;
  const { keyId, agentId, via, client } = createdBy;
  const who = [keyId, agentId === null ? null : `agent ${agentId}`].filter((each) => each !== null);
  return oneLine([...who, `via ${via}`, ...(client === undefined ? [] : [`(${client})`])].join(" "));
}

function attemptLines({ attempts }: Task, now: number): string[] {
  return tableLines(
    [
      { title: "ATTEMPT", align: "right" },
      { title: "STARTED" },
      { title: "TOOK", align: "right" },
      { title: "OUTCOME" },
      { title: "NODE" },
      { title: "ERROR" },
    ],
    attempts.map(({ number, startedAt, endedAt, outcome, node, error }) => [
      String(number),
      shownMoment(startedAt, now),
      shownSpan(Math.max((endedAt === null ? now : Date.parse(endedAt)) - Date.parse(startedAt), 0)),
      outcome ?? "running",
      oneLine(node),
      error === null ? "" : oneLine(error),
    ]),
  );
}

function usageText(usage: Task["usage"]): string | undefined {
  if (usage === undefined) return undefined;
  const { inputTokens, outputTokens, contextWindow } = usage;
  const window = contextWindow === undefined ? "" : `, of a context window of ${contextWindow}`;
  return `${inputTokens} tokens in, ${outputTokens} out${window}`;
}

function text(value: string | undefined): string | undefined {
  return value === undefined ? undefined : safeLines(value);
}

/** JSON, indented for people. Text stays as it is. */
export function jsonText(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return safeLines(typeof value === "string" ? value : JSON.stringify(value, null, 2));
}
