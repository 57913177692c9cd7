import type { SubmitInput, Task } from "../../../../src/client/index.ts";

/** What a task was submitted with, as far as it is kept: the input of one just like it. */
export function inputOf(task: Task): SubmitInput {
  const { agentId, lane, priority, timeout, deadline, retryPolicy, callbackUrl, sessionKey } = task;
  const { preemptible, concurrencyKey, metadata } = task;
  const fields = {
    agentId,
    ...workOf(task),
    lane,
    priority,
    timeout,
    // One that has passed would be refused.
    deadline: deadline !== undefined && Date.parse(deadline) > Date.now() ? deadline : undefined,
    retryPolicy,
    callbackUrl,
    sessionKey,
    preemptible,
    concurrencyKey,
    metadata,
  };
  return withoutUndefined(fields) as unknown as SubmitInput;
}

/** What the task itself asks for: the part that a user wants to read. */
export function workOf(task: Task): Readonly<Record<string, unknown>> {
  const { action, tabId, ref, selector, params, instruction, llmConfig, message, payload } = task;
  return withoutUndefined({ action, tabId, ref, selector, params, instruction, llmConfig, message, payload });
}

/** A command that submits one just like it. The key is left out: the user who pastes the command adds their own. */
export function curlOf(
  input: SubmitInput,
  { url, hasKey }: { readonly url: string; readonly hasKey: boolean },
): string {
  const body = JSON.stringify(input).replaceAll("'", String.raw`'\''`);
  const key = hasKey ? ` -H "authorization: Bearer $ROTA_KEY"` : "";
  return `curl -s '${url}/v1/tasks'${key} -H 'content-type: application/json' -d '${body}'`;
}

function withoutUndefined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
