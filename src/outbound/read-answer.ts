import type { Answer, OutboundRequest } from "./fetch-answer.ts";

export interface LimitedRequest extends OutboundRequest {
  /** How much of the answer is read, unpacked if it comes packed; the rest is left and the connection dropped. */
  readonly bodyBytesMax: number;
}

export interface LimitedResponse extends Omit<Answer, "body"> {
  readonly body: string;
  /** Whether there was more than `bodyBytesMax`. */
  readonly truncated: boolean;
}

/** The rest of an answer that has begun, up to a bound. */
export async function readAnswer(answer: Answer, bodyBytesMax: number): Promise<LimitedResponse> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    // Leaving the loop cancels the stream.
    if (bytes > bodyBytesMax) break;
  }
  const kept = Buffer.concat(chunks).subarray(0, bodyBytesMax);
  const truncated = bytes > bodyBytesMax;
  // As a stream that goes on, a character that the cut went through is left out.
  return { ...answer, body: new TextDecoder().decode(kept, { stream: truncated }), truncated };
}
