import { Command } from "commander";
import { ConnectionError, RotaClient } from "../../client/index.ts";
import { clientAddress } from "../../config/client-settings.ts";
import { rotaOptions } from "../../config/rota-options.ts";
import type { Rota } from "../../interface/rota.ts";
import type { McpBackend } from "../../mcp/backend.ts";
import { codeList } from "../../model/input/field-checks.ts";
import type { Log } from "../../model/log.ts";
import { DEFAULT_TENANT } from "../../model/tenant.ts";
import { configSource } from "../flags/config-flags.ts";
import { type AddressFlags, withAddressOptions } from "../flags/server-options.ts";
import { createLog } from "../terminal/log.ts";
import { stopSignal } from "../terminal/stop-signal.ts";
import { UsageError } from "../terminal/usage-error.ts";

interface McpFlags extends AddressFlags {
  readonly embedded?: string;
  readonly tools?: string;
}

/** The Rota behind the tools. `close` ends it after the client has left. */
interface Opened {
  readonly backend: McpBackend;
  close(): Promise<void>;
}

const EXAMPLES = `
An MCP client starts this command; for Claude Code:
  claude mcp add rota -- rota mcp
If the server has API keys, give the client one: claude mcp add rota --env ROTA_KEY=rota_… -- rota mcp`;

/** `rota mcp`: the tools for AI agents, for a client that starts programs and speaks with them by stdin and stdout. */
export function mcpCommand(): Command {
  const command = new Command("mcp")
    .description("Serve Rota's tools to an MCP client, on stdin and stdout.")
    .option("--embedded <url>", "run a scheduler in this process, like sqlite:rota.db, in place of a server")
    .option("--tools <names>", "offer only these tools, like submit,get");
  return withAddressOptions(command).addHelpText("after", EXAMPLES).action(serveMcp);
}

async function serveMcp(flags: McpFlags): Promise<void> {
  if (flags.embedded !== undefined && (flags.url !== undefined || flags.key !== undefined)) {
    throw new UsageError("--embedded runs without a server: leave out --url and --key, or --embedded");
  }
  const { serveOnStdio } = await import("../../mcp/stdio.ts");
  const { TOOL_NAMES } = await import("../../mcp/tools.ts");
  const tools = flags.tools === undefined ? undefined : toolsOf(flags.tools, TOOL_NAMES);
  // Standard output is for the client alone.
  const log = createLog({ level: "warn" });
  const signalled = stopSignal();
  const { backend, close } =
    flags.embedded === undefined ? await openServer(flags, log) : await openEmbedded(flags.embedded, log);
  const server = serveOnStdio(backend, {
    onError: (error) => log.warn({ error }, "a message of the client could not be handled"),
    ...(tools === undefined ? {} : { tools }),
  });
  await Promise.race([signalled, server.done]);
  await server.close();
  await close();
  // A wait of the client may still hold a connection, which would keep the process alive.
  process.exit(0);
}

function toolsOf(text: string, known: readonly string[]): string[] {
  const names = text.split(",").map((name) => name.trim());
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return names;
  throw new UsageError(
    `--tools: there is no tool ${JSON.stringify(unknown)}; name some of ${codeList(known)}`,
  );
}

/** Asks for the role first: a wrong address or key is reported at once, and not by the first tool. */
async function openServer(flags: McpFlags, log: Log): Promise<Opened> {
  const address = clientAddress(flags);
  const { apiBackend } = await import("../../mcp/api-backend.ts");
  const { role, keyId, agentId = null } = await new RotaClient({ ...address, retry: false }).me();
  if (role === "worker") {
    throw new UsageError(
      "an API key with the role `worker` has no tools: use one with the role `agent`, `viewer` or `operator`",
    );
  }
  const backend = apiBackend({
    caller: { role, agentId, keyId },
    rotaFor: (client) =>
      new RotaClient({ ...address, via: "mcp", ...(client === null ? {} : { name: client }) }),
    now: () => Date.now(),
    onFailure: (error) => failureText(error, log),
  });
  return { backend, close: async () => {} };
}

/** A scheduler with the configuration of this directory and another storage. It runs tasks while the client is there. */
async function openEmbedded(storage: string, log: Log): Promise<Opened> {
  const { apiBackend } = await import("../../mcp/api-backend.ts");
  const { createRota } = await import("../../rota.ts");
  const loaded = configSource({ storage }).load();
  const rota: Rota = await createRota({ ...rotaOptions(loaded), log });
  await rota.start();
  const backend = apiBackend({
    caller: { role: "admin", agentId: null, keyId: null },
    rotaFor: (client) => {
      const createdBy = {
        keyId: null,
        agentId: null,
        via: "mcp" as const,
        ...(client === null ? {} : { client }),
      };
      return rota.tenant(DEFAULT_TENANT, { provenance: { createdBy, within: null } });
    },
    now: () => Date.now(),
    onFailure: (error) => failureText(error, log),
  });
  return { backend, close: () => rota.stop() };
}

function failureText(error: unknown, log: Log): string {
  if (error instanceof ConnectionError) return error.message;
  log.error({ error }, "a call failed unexpectedly");
  return "internal error of `rota mcp`; its standard error has the details";
}
