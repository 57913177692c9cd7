import { z } from "zod";
import { errorAnswers } from "./error.ts";

const CALL_EXAMPLE = {
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name: "submit", arguments: { message: "Sum up today's papers" } },
};

const ANSWER_EXAMPLE = {
  jsonrpc: "2.0",
  id: 1,
  result: { content: [{ type: "text", text: "tsk_019a8f6e queued, position 1" }] },
};

const message = z
  .looseObject({
    jsonrpc: z.literal("2.0"),
    id: z.union([z.string(), z.number()]).exactOptional(),
    method: z.string().exactOptional(),
    params: z.record(z.string(), z.unknown()).exactOptional(),
  })
  .meta({
    id: "McpMessage",
    description: "A message of the Model Context Protocol, revision 2026-07-28 or one of 2025.",
    examples: [CALL_EXAMPLE],
  });

const answer = z
  .looseObject({ jsonrpc: z.literal("2.0") })
  .meta({ id: "McpAnswer", description: "The response to a message.", examples: [ANSWER_EXAMPLE] });

export const sendMcpMessage = {
  operationId: "sendMcpMessage",
  tags: ["mcp"],
  summary: "Model Context Protocol",
  description:
    "Streamable HTTP for MCP clients: tools, resources and prompts, by the role of the key. docs/mcp.md describes them. One message a request; the response is JSON, or a stream of events for clients that ask for one. A notification gets 202 without a body.",
  body: message,
  response: {
    200: {
      description: "The response.",
      content: {
        "application/json": { schema: answer },
        "text/event-stream": {
          schema: z
            .string()
            .meta({ examples: [`event: message\ndata: ${JSON.stringify(ANSWER_EXAMPLE)}\n\n`] }),
        },
      },
    },
    ...errorAnswers("storage_unavailable"),
  },
};
