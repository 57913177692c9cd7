import { type Command, Option } from "commander";
import { RotaClient } from "../../client/index.ts";
import { clientAddress, DEFAULT_URL } from "../../config/client-settings.ts";
import { type Log, silentLog } from "../../model/log.ts";
import { printNotice } from "../terminal/print.ts";

/** The flags of every command that talks to a server. */
export interface ServerFlags {
  readonly url?: string;
  readonly key?: string;
  readonly json?: boolean;
}

const GROUP = "Common options:";

/** Adds the options that choose the server and the output format. */
export function withServerOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--url <url>", `where the server is (default: ROTA_URL, else ${DEFAULT_URL})`).helpGroup(
        GROUP,
      ),
    )
    .addOption(new Option("--key <key>", "API key (default: ROTA_KEY)").helpGroup(GROUP))
    .addOption(new Option("--json", "print JSON, as the HTTP API returns it").helpGroup(GROUP));
}

/** Makes no retries: the user should see an error at once. */
export function openClient(flags: ServerFlags, log: Log = logOfWarnings): RotaClient {
  return new RotaClient({ ...clientAddress(flags), retry: false, log });
}

/** The client reconnects by itself. The warning shows the user why nothing happens. */
const logOfWarnings: Log = {
  ...silentLog,
  warn: ({ error }, message) =>
    printNotice(error instanceof Error ? `${message} (${error.message})` : message),
};
