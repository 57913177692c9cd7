import { createMcpHandler } from "@modelcontextprotocol/server";
import type { McpBackend } from "./backend.ts";
import { buildServer } from "./build-server.ts";

/** Responds to one HTTP request of an MCP client, whose body is parsed already. */
export type McpRequestHandler = (request: Request, body: unknown, backend: McpBackend) => Promise<Response>;

/**
 * Serves clients of the revision 2026-07-28 and, without sessions, of 2025. Nothing is kept between requests: any node can respond
 * to any of them. Subscriptions are refused, since nothing is published yet.
 */
export function createHttpHandler({ onError }: { onError: (error: Error) => void }): McpRequestHandler {
  const handler = createMcpHandler(
    ({ authInfo }) => buildServer(authInfo?.extra?.["backend"] as McpBackend),
    { legacy: "stateless", maxSubscriptions: 0, onerror: onError },
  );
  return (request, body, backend) =>
    handler.fetch(request, {
      authInfo: { token: "", clientId: "", scopes: [], extra: { backend } },
      parsedBody: body,
    });
}
