import type { Clock } from "../model/clock.ts";
import type { ExecutorHeaders } from "../model/executor-config.ts";
import { fetchWithLimits, type LimitedRequest, type LimitedResponse } from "../outbound/fetch-with-limits.ts";
import { TargetRefused } from "../outbound/guarded-agent.ts";
import type { TargetGuard } from "../outbound/target-guard.ts";
import { PermanentError } from "./errors.ts";

/** What all calls of an executor have in common. */
export interface CallOptions {
  readonly headers?: ExecutorHeaders;
  readonly clock: Clock;
  /** Decides where it may call, if the configuration came from a user. */
  readonly guard?: TargetGuard | undefined;
}

/** One call of an executor. Where it may not go now, it may not go the next time either. */
export async function callOut(
  url: string,
  request: Omit<LimitedRequest, "now" | "guard">,
  { clock, guard }: CallOptions,
): Promise<LimitedResponse> {
  try {
    return await fetchWithLimits(url, { ...request, now: clock.now(), ...(guard && { guard }) });
  } catch (error) {
    if (error instanceof TargetRefused) throw new PermanentError(error.message, { cause: error });
    throw error;
  }
}
