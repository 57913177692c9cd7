import { fetchAnswer } from "../../src/outbound/fetch-answer.ts";
import { type LimitedRequest, type LimitedResponse, readAnswer } from "../../src/outbound/read-answer.ts";

/** One HTTP call with a bounded response, as executors make it. */
export async function fetchWithLimits(
  url: string,
  { bodyBytesMax, ...request }: LimitedRequest,
): Promise<LimitedResponse> {
  return readAnswer(await fetchAnswer(url, request), bodyBytesMax);
}
