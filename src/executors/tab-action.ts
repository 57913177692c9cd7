import type { Task } from "../model/task.ts";
import { CallError } from "../outbound/call-error.ts";
import type { LimitedResponse } from "../outbound/read-answer.ts";
import { ANSWER_BYTES_MAX } from "./answer-text.ts";
import { callHeaders, headerText } from "./call-headers.ts";
import { type CallOptions, callOut } from "./call-out.ts";
import { PermanentError } from "./errors.ts";
import type { Executor } from "./executor.ts";
import { resultOf } from "./http-answer.ts";
import { type TabResolver, unresolved } from "./tab-resolver.ts";

export interface TabActionExecutorOptions extends CallOptions {
  readonly resolver: TabResolver;
}

/** Posts actions to the instance that has the tab: `POST {base}/tabs/{tabId}/action`. The response is the result. */
export function tabActionExecutor(options: TabActionExecutorOptions): Executor {
  return async (task, { tenantId, signal, holds }) => {
    const tabId = tabOf(task);
    const headers = callHeaders({
      own: {},
      configured: options.headers,
      tenantId,
      task,
      identity: { "content-type": "application/json", "x-agent-id": headerText(task.agentId) },
    });
    const body = JSON.stringify(actionOf(task));
    const request = { method: "POST", headers, body, signal, holds, bodyBytesMax: ANSWER_BYTES_MAX };
    const post = (base: string) =>
      callOut(`${base}/tabs/${encodeURIComponent(tabId)}/action`, request, options);
    const answer = await postToOwner({ resolver: options.resolver, tabId, signal, post });
    return resultOf(answer, { json: "always" });
  };
}

function tabOf({ kind, tabId }: Task): string {
  if (kind !== "action") {
    throw new PermanentError(
      `a tab-action executor does tasks with an \`action\`; this one is of kind ${kind}`,
    );
  }
  if (tabId === undefined || tabId.trim() === "") {
    throw new PermanentError("tabId is required for task execution");
  }
  // In a URL these are relative steps, even when encoded: the action would go to another path.
  if (tabId === "." || tabId === "..") throw unresolved(tabId, "a URL cannot name it", { permanent: true });
  return tabId.toWellFormed();
}

/** The body of the request. Fields of the task override its `params`. */
function actionOf({ action, ref, selector, params = {} }: Task): Readonly<Record<string, unknown>> {
  const { kind: _kind, tabId: _tabId, ...others } = params;
  return {
    kind: action,
    ...others,
    ...(ref ? { ref } : {}),
    ...(selector ? { selector } : {}),
  };
}

interface PostToOwnerParams {
  readonly resolver: TabResolver;
  readonly tabId: string;
  readonly signal: AbortSignal;
  readonly post: (base: string) => Promise<LimitedResponse>;
}

/** If the tab or its instance is gone, the tab may have moved: it is looked up once more. */
async function postToOwner({ resolver, tabId, signal, post }: PostToOwnerParams): Promise<LimitedResponse> {
  const base = await resolver.resolve({ tabId, signal });
  const answer = await post(base).catch(unlessNeverSent);
  if (answer instanceof CallError || answer.status === 404) {
    const newBase = await resolver.resolve({ tabId, signal, notAt: base });
    if (newBase !== base) return post(newBase);
  }
  if (answer instanceof CallError) throw answer;
  return answer;
}

/** Only a request that was never sent may be sent again: an action must not run twice. */
function unlessNeverSent(error: unknown): CallError {
  if (error instanceof CallError && error.neverSent) return error;
  throw error;
}
