import { ANSWER_BYTES_MAX } from "./answer-text.ts";
import { type CallOptions, callOut } from "./call-out.ts";
import type { Executor } from "./executor.ts";
import { resultOf } from "./http-answer.ts";
import { mergeHeaders } from "./merge-headers.ts";
import { requestHeaders } from "./request-headers.ts";

export interface HttpExecutorOptions extends CallOptions {
  readonly url: string;
}

/** Posts the task as JSON to a URL; the JSON or text answer is the result. */
export function httpExecutor(options: HttpExecutorOptions): Executor {
  const headers = mergeHeaders({ "content-type": "application/json" }, options.headers);
  return async (task, { signal }) => {
    const body = JSON.stringify(task);
    const request = {
      method: "POST",
      headers: requestHeaders(headers, task),
      body,
      signal,
      bodyBytesMax: ANSWER_BYTES_MAX,
    };
    return resultOf(await callOut(options.url, request, options), { json: "as-declared" });
  };
}
