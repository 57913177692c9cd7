import type { ExecutorHeaders } from "../model/executor-config.ts";
import type { Task } from "../model/task.ts";
import { mergeHeaders } from "./merge-headers.ts";

/** The header fields of a call, and the id of the run that it is made for, so that both sides can log the same. */
export function requestHeaders(headers: ExecutorHeaders, { requestId }: Task): ExecutorHeaders {
  return requestId === undefined ? headers : mergeHeaders(headers, { "x-request-id": requestId });
}
