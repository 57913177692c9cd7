import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { type Answer, ask } from "./http.ts";

/** The era of the protocol that a client speaks: `auto` is 2026-07-28 here, `legacy` 2025. */
export type Era = "auto" | "legacy";

export interface McpClientParams {
  readonly url: string;
  readonly era: Era;
  readonly key?: string;
  /** How the person replies to a question; left out: the client cannot ask. */
  readonly reply?: (question: string) => "accept" | "decline";
}

/** A client of the protocol's own package, connected over HTTP. Close it. */
export async function openMcpClient({ url, era, key, reply }: McpClientParams): Promise<Client> {
  const client = createClient({ era, ...(reply === undefined ? {} : { reply }) });
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }),
  );
  return client;
}

/** The same, not connected yet. */
export function createClient({ era, reply }: Pick<McpClientParams, "era" | "reply">): Client {
  const client = new Client(
    { name: "test-client", version: "1.2" },
    {
      versionNegotiation: { mode: era },
      capabilities: reply === undefined ? {} : { elicitation: { form: {} } },
    },
  );
  if (reply !== undefined) {
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      const action = reply(params.message);
      return action === "accept" ? { action, content: { confirm: true } } : { action };
    });
  }
  return client;
}

/** The result of a tool: its text, whether it is an error, and its structured content. */
export async function callTool(client: Client, name: string, args: Record<string, unknown>) {
  const { content, isError = false, structuredContent } = await client.callTool({ name, arguments: args });
  const text = (content as { text: string }[]).map((block) => block.text).join("\n");
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  return { text, isError, json: structuredContent as any };
}

export interface RpcParams {
  readonly url: string;
  readonly key?: string;
  readonly method: string;
  readonly params?: Record<string, unknown>;
  readonly capabilities?: object;
  readonly headers?: Record<string, string>;
}

/** One request of the revision 2026-07-28, as its bytes are: for what no client package does. */
export function sendRpc({
  url,
  key,
  method,
  params = {},
  capabilities = {},
  headers,
}: RpcParams): Promise<Answer> {
  const named = params["name"] ?? params["taskId"] ?? params["uri"];
  return ask(`${url}/mcp`, {
    json: {
      jsonrpc: "2.0",
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "raw", version: "0" },
          "io.modelcontextprotocol/clientCapabilities": capabilities,
        },
      },
    },
    headers: {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(typeof named === "string" ? { "mcp-name": named } : {}),
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
  });
}
