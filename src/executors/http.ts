import type { Clock } from "../model/clock.ts";
import type { ExecutorHeaders } from "../model/executor-config.ts";
import { fetchWithLimits } from "../outbound/fetch-with-limits.ts";
import type { Executor } from "./executor.ts";
import { ANSWER_BYTES_MAX, resultOf } from "./http-answer.ts";
import { mergeHeaders } from "./merge-headers.ts";

export interface HttpExecutorOptions {
  readonly url: string;
  readonly headers?: ExecutorHeaders;
  readonly clock: Clock;
}

/** Posts the task as JSON to a URL; the JSON or text answer is the result. */
export function httpExecutor({ url, headers, clock }: HttpExecutorOptions): Executor {
  const sent = mergeHeaders({ "content-type": "application/json" }, headers);
  return async (task, { signal }) => {
    const response = await fetchWithLimits(url, {
      method: "POST",
      headers: sent,
      body: JSON.stringify(task),
      signal,
      bodyBytesMax: ANSWER_BYTES_MAX,
      now: clock.now(),
    });
    return resultOf(response, { json: "as-declared" });
  };
}
