import type { OutboundRequest } from "../outbound/fetch-answer.ts";
import { type LimitedResponse, readAnswer } from "../outbound/read-answer.ts";
import { SseReader } from "../outbound/sse-reader.ts";
import { ANSWER_BYTES_MAX } from "./answer-text.ts";
import { type CallOptions, openCall } from "./call-out.ts";
import type { ExecutorContext } from "./executor.ts";
import { isSuccess } from "./http-answer.ts";

/** The output of an agent in an hour fits many times. A longer stream is out of control. */
const STREAM_BYTES_MAX = 64 * 1_048_576;

export interface EventRequest {
  readonly headers: NonNullable<OutboundRequest["headers"]>;
  readonly body: unknown;
  readonly signal: AbortSignal;
  readonly holds: ExecutorContext["holds"];
  /** The error for a status that is not a success. */
  readonly failureOf: (response: LimitedResponse) => Error;
}

export interface EventAnswer {
  readonly reader: SseReader;
  /** The header `X-Rota-Usage`; null if there is none. */
  readonly usageHeader: string | null;
}

/** Posts JSON to a server that responds with events, and reads them as they arrive. */
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
