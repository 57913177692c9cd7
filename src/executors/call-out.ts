import type { Clock } from "../model/clock.ts";
import type { ExecutorHeaders } from "../model/executor-config.ts";
import { type Answer, fetchAnswer, type OutboundRequest } from "../outbound/fetch-answer.ts";
import { TargetRefused } from "../outbound/guarded-agent.ts";
import { type LimitedRequest, type LimitedResponse, readAnswer } from "../outbound/read-answer.ts";
import type { TargetGuard } from "../outbound/target-guard.ts";
import { lengthOf } from "../outbound/text-body.ts";
import { ANSWER_BYTES_MAX } from "./answer-text.ts";
import { PermanentError } from "./errors.ts";
import type { ExecutorContext } from "./executor.ts";

/** Options that all calls of an executor share. */
export interface CallOptions {
  readonly headers?: ExecutorHeaders;
  readonly clock: Clock;
  /** Decides which targets are allowed, if the configuration came from a user. */
  readonly guard?: TargetGuard | undefined;
}

/** One request of an executor. */
export interface CallRequest extends Omit<OutboundRequest, "now" | "guard"> {
  /** Called with the bytes that the call holds: of the body, and of the response as it arrives, `ANSWER_BYTES_MAX` at most. */
  readonly holds?: ExecutorContext["holds"];
}

/** One call of an executor, with a bounded response. */
export async function callOut(
  url: string,
  { bodyBytesMax, ...request }: CallRequest & Pick<LimitedRequest, "bodyBytesMax">,
  options: CallOptions,
): Promise<LimitedResponse> {
  return readAnswer(await openCall(url, request, options), bodyBytesMax);
}

/** The same, for a response that is read while it arrives. A target that is refused now would be refused on a retry too. */
export async function openCall(
  url: string,
  { holds, ...request }: CallRequest,
  { clock, guard }: CallOptions,
): Promise<Answer> {
  try {
    holds?.(lengthOf(request.body ?? ""));
    const answer = await fetchAnswer(url, { ...request, now: clock.now(), ...(guard && { guard }) });
    return holds === undefined ? answer : { ...answer, body: counted(answer.body, holds) };
  } catch (error) {
    if (error instanceof TargetRefused) throw new PermanentError(error.message, { cause: error });
    throw error;
  }
}

/** Executors keep no more of a response than a result may take. */
async function* counted(
  body: AsyncIterable<Uint8Array>,
  holds: ExecutorContext["holds"],
): AsyncGenerator<Uint8Array> {
  let left = ANSWER_BYTES_MAX;
  for await (const chunk of body) {
    if (left > 0) holds(Math.min(chunk.byteLength, left));
    left -= chunk.byteLength;
    yield chunk;
  }
}
