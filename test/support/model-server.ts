import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { serve } from "./http-server.ts";

/** A request that a model got. */
export interface Asked {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
  readonly port: number | undefined;
}

export interface ModelServer {
  readonly url: string;
  /** The requests that it received, in order. */
  readonly asked: Asked[];
}

/** A server with the API of OpenAI that responds as the test says. It ends with the test. */
export async function serveModel(answer: (response: ServerResponse) => void): Promise<ModelServer> {
  const asked: Asked[] = [];
  const url = await serve(({ method, url: path, headers, socket }, response, body) => {
    asked.push({ method, path, headers, body: JSON.parse(body), port: socket.remotePort });
    answer(response);
  });
  return { url, asked };
}

/** A part of a response: the delta of the first choice. */
export function delta(added: object, finishReason: string | null = null): object {
  return {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    model: "gpt-test-2026",
    choices: [{ index: 0, delta: added, finish_reason: finishReason }],
  };
}

/** The part that comes last if usage was asked for. */
export function usagePart(inputTokens: number, outputTokens: number): object {
  return {
    object: "chat.completion.chunk",
    choices: [],
    usage: {
      prompt_tokens: inputTokens,
      completion_tokens: outputTokens,
      total_tokens: inputTokens + outputTokens,
    },
  };
}
