import type { Clock } from "../model/clock.ts";
import type { ExecutorHeaders } from "../model/executor-config.ts";
import type { Task } from "../model/task.ts";
import { CallError } from "../outbound/call-error.ts";
import { fetchWithLimits, type LimitedResponse } from "../outbound/fetch-with-limits.ts";
import { PermanentError } from "./errors.ts";
import type { Executor } from "./executor.ts";
import { ANSWER_BYTES_MAX, resultOf } from "./http-answer.ts";
import { mergeHeaders } from "./merge-headers.ts";
import { type TabResolver, unresolved } from "./tab-resolver.ts";

export interface TabActionExecutorOptions {
  readonly resolver: TabResolver;
  readonly headers?: ExecutorHeaders;
  readonly clock: Clock;
}

/** Posts actions to whoever has the tab: `POST {base}/tabs/{tabId}/action`. The answer is the result. */
export function tabActionExecutor({ resolver, headers, clock }: TabActionExecutorOptions): Executor {
  return async (task, { signal }) => {
    const tabId = tabOf(task);
    const body = JSON.stringify(actionOf(task));
    const sent = mergeHeaders(headers, { "content-type": "application/json", "x-agent-id": task.agentId });
    const post = (base: string) =>
      fetchWithLimits(`${base}/tabs/${encodeURIComponent(tabId)}/action`, {
        method: "POST",
        headers: sent,
        body,
        signal,
        bodyBytesMax: ANSWER_BYTES_MAX,
        now: clock.now(),
      });
    return resultOf(await postToOwner({ resolver, tabId, signal, post }), { json: "always" });
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
  // In a URL these are steps along its path, however they are encoded: the action would go somewhere else.
  if (tabId === "." || tabId === "..") throw unresolved(tabId, "a URL cannot name it", { permanent: true });
  return tabId.toWellFormed();
}

/** The body of the request. What the task says itself goes before what its `params` say. */
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

/** Where the tab is no more, or nobody is any more, the tab may have moved: then it is looked for once more. */
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

/** Only what nobody can have got may be sent again: an action is not to be done twice. */
function unlessNeverSent(error: unknown): CallError {
  if (error instanceof CallError && error.neverSent) return error;
  throw error;
}
