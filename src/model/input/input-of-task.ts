import type { Task } from "../task.ts";
import type { SubmitInput } from "./submit-input.ts";

/** The stored input of a task, from which a copy can be submitted. */
export function inputOfTask(task: Task, now: number): SubmitInput {
  const { agentId, lane, priority, timeout, deadline, retryPolicy, callbackUrl, sessionKey } = task;
  const { preemptible, metadata } = task;
  const fields = {
    agentId,
    ...workOfTask(task),
    lane,
    priority,
    timeout,
    // A deadline in the past would be refused.
    deadline: deadline !== undefined && Date.parse(deadline) > now ? deadline : undefined,
    retryPolicy,
    callbackUrl,
    sessionKey,
    preemptible,
    concurrencyKey: concurrencyKeyOf(task),
    metadata,
  };
  return withoutUndefined(fields) as unknown as SubmitInput;
}

/** The work of the task: its action, instruction, message or payload. */
export function workOfTask(task: Task): Readonly<Record<string, unknown>> {
  const { action, tabId, ref, selector, params, instruction, llmConfig, message, payload } = task;
  return withoutUndefined({ action, tabId, ref, selector, params, instruction, llmConfig, message, payload });
}

/** An action in a tab has a key unless it was submitted with an empty one. */
function concurrencyKeyOf({ concurrencyKey, tabId }: Task): string | undefined {
  return concurrencyKey ?? (tabId === undefined || tabId === "" ? undefined : "");
}

function withoutUndefined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
