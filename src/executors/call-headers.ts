import { createHash } from "node:crypto";
import type { ExecutorHeaders } from "../model/executor-config.ts";
import type { Task } from "../model/task.ts";
import { VERSION } from "../version.ts";
import { mergeHeaders } from "./merge-headers.ts";

/** The default `User-Agent`. */
export const USER_AGENT = `rota/${VERSION}`;

/**
 * The headers of a call: those of the executor, overridden by the configuration, and both overridden by those that identify the
 * task. The configuration of an agent must not be able to forge the last.
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
    // The `request_id` of the schedule's run, so that both sides can log the same id.
    ...(task.requestId === undefined ? {} : { "x-request-id": task.requestId }),
    ...identity,
  });
}

/** The number of the current attempt. */
export function attemptOf({ attempts }: Task): number {
  return attempts.at(-1)?.number ?? 1;
}

/** A text as a header value: percent-encoded UTF-8 unless it is printable ASCII. */
export function headerText(text: string): string {
  return text.toWellFormed().replace(/[^\x20-\x7e]+/gu, encodeURIComponent);
}

/**
 * The W3C trace context of an attempt. All attempts of a task are one trace, and each is a span. Both ids are derived from the
 * task id, so that a trace can be found by the task.
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
