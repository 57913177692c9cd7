import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { McpBackend } from "./backend.ts";
import { type BuildServerOptions, buildServer } from "./build-server.ts";

export interface StdioOptions extends BuildServerOptions {
  readonly onError: (error: Error) => void;
}

/** Serves one MCP client on the standard input and output of this process. */
export function serveOnStdio(
  backend: McpBackend,
  { onError, ...options }: StdioOptions,
): { close(): Promise<void> } {
  return serveStdio(() => buildServer(backend, options), { maxSubscriptions: 0, onerror: onError });
}
