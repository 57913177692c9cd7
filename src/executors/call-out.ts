import type { Clock } from "../model/clock.ts";
import type { ExecutorHeaders } from "../model/executor-config.ts";
import { type Answer, fetchAnswer, type OutboundRequest } from "../outbound/fetch-answer.ts";
import { TargetRefused } from "../outbound/guarded-agent.ts";
import { type LimitedRequest, type LimitedResponse, readAnswer } from "../outbound/read-answer.ts";
import type { TargetGuard } from "../outbound/target-guard.ts";
import { PermanentError } from "./errors.ts";

/** What all calls of an executor have in common. */
export interface CallOptions {
  readonly headers?: ExecutorHeaders;
  readonly clock: Clock;
  /** Decides where it may call, if the configuration came from a user. */
  readonly guard?: TargetGuard | undefined;
}

/** One call of an executor, with a bounded answer. */
export async function callOut(
  url: string,
  { bodyBytesMax, ...request }: Omit<LimitedRequest, "now" | "guard">,
  options: CallOptions,
): Promise<LimitedResponse> {
  return readAnswer(await openCall(url, request, options), bodyBytesMax);
}

/** The same, for an answer that is read while it arrives. Where it may not go now, it may not go the next time either. */
export async function openCall(
  url: string,
  request: Omit<OutboundRequest, "now" | "guard">,
  { clock, guard }: CallOptions,
): Promise<Answer> {
  try {
    return await fetchAnswer(url, { ...request, now: clock.now(), ...(guard && { guard }) });
  } catch (error) {
    if (error instanceof TargetRefused) throw new PermanentError(error.message, { cause: error });
    throw error;
  }
}
