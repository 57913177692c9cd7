import type { OutboundRequest } from "../outbound/fetch-answer.ts";
import { type LimitedResponse, readAnswer } from "../outbound/read-answer.ts";
import { SseReader } from "../outbound/sse-reader.ts";
import { ANSWER_BYTES_MAX } from "./answer-text.ts";
import { type CallOptions, openCall } from "./call-out.ts";
import type { ExecutorContext } from "./executor.ts";
import { isSuccess } from "./http-answer.ts";

/** What an agent writes in an hour fits many times; more is a stream that has gone astray. */
const STREAM_BYTES_MAX = 64 * 1_048_576;

export interface EventRequest {
  readonly headers: NonNullable<OutboundRequest["headers"]>;
  readonly body: unknown;
  readonly signal: AbortSignal;
  readonly holds: ExecutorContext["holds"];
  /** What a status that is no success means. */
  readonly failureOf: (response: LimitedResponse) => Error;
}

export interface EventAnswer {
  readonly reader: SseReader;
  /** `X-Rota-Usage`; null when there is none. */
  readonly usageHeader: string | null;
}

/** Posts JSON to whoever answers with events, and reads them while they arrive. */
export async function postForEvents(
  url: string,
  { headers, body, signal, holds, failureOf }: EventRequest,
  options: CallOptions,
): Promise<EventAnswer> {
  const request = { method: "POST", headers, body: JSON.stringify(body), signal, holds };
  const answer = await openCall(url, request, options);
  if (!isSuccess(answer)) throw failureOf(await readAnswer(answer, ANSWER_BYTES_MAX));
  const limits = { bytesMax: STREAM_BYTES_MAX, eventLengthMax: ANSWER_BYTES_MAX };
  return { reader: new SseReader(answer.body, limits), usageHeader: answer.usageHeader };
}
