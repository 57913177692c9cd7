import { createHash } from "node:crypto";
import type { ExecutorHeaders } from "../model/executor-config.ts";
import type { Task } from "../model/task.ts";
import { VERSION } from "../version.ts";
import { mergeHeaders } from "./merge-headers.ts";

/** Who calls, unless the configuration says otherwise. */
export const USER_AGENT = `rota/${VERSION}`;

/**
 * The headers of a call: what the executor sends by itself, what the configuration says over it, and over both what tells
 * whose task it is. The last must not be claimed by whoever describes an agent.
 */
export function callHeaders(params: {
  readonly own: ExecutorHeaders;
  readonly configured: ExecutorHeaders | undefined;
  readonly tenantId: string;
  readonly task: Task;
  readonly identity?: ExecutorHeaders;
}): ExecutorHeaders {
  const { own, configured, tenantId, task, identity } = params;
  return mergeHeaders({ "user-agent": USER_AGENT, ...own }, configured, {
    "x-rota-tenant": headerText(tenantId),
    // The id of the run that it is made for, so that both sides can log the same.
    ...(task.requestId === undefined ? {} : { "x-request-id": task.requestId }),
    ...identity,
  });
}

/** The number of the attempt that a task is handed over for. */
export function attemptOf({ attempts }: Task): number {
  return attempts.at(-1)?.number ?? 1;
}

/** A text as the value of a header: percent-encoded UTF-8 where it is not printable ASCII. */
export function headerText(text: string): string {
  return text.toWellFormed().replace(/[^\x20-\x7e]+/gu, encodeURIComponent);
}

/**
 * The W3C trace context of an attempt. All attempts of a task are one trace, each a span of its own, and both ids follow from
 * the task's, so that a trace can be found by the task.
 */
export function traceparent(task: Task): string {
  const trace = hexHash(task.taskId, 16);
  const span = hexHash(`${task.taskId}/${attemptOf(task)}`, 8);
  return `00-${trace}-${span}-01`;
}

function hexHash(text: string, bytes: number): string {
  return createHash("sha256")
    .update(text)
    .digest("hex")
    .slice(0, 2 * bytes);
}
