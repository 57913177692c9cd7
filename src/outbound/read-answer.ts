import type { Answer, OutboundRequest } from "./fetch-answer.ts";

export interface LimitedRequest extends OutboundRequest {
  /** How many bytes of the body are read, after decompression. The connection of a longer body is dropped. */
  readonly bodyBytesMax: number;
}

export interface LimitedResponse extends Omit<Answer, "body"> {
  readonly body: string;
  /** Whether there was more than `bodyBytesMax`. */
  readonly truncated: boolean;
}

/** Reads the body of a response, up to a limit. */
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
  // With `stream`, the decoder drops a character that the limit cuts in two.
  return { ...answer, body: new TextDecoder().decode(kept, { stream: truncated }), truncated };
}
