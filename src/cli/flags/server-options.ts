import { type Command, Option } from "commander";
import { RotaClient } from "../../client/index.ts";
import { clientAddress, DEFAULT_URL } from "../../config/client-settings.ts";
import { type Log, silentLog } from "../../model/log.ts";
import { note } from "../terminal/print.ts";

/** What every command takes that talks to a server. */
export interface ServerFlags {
  readonly url?: string;
  readonly key?: string;
  readonly json?: boolean;
}

const GROUP = "Common options:";

/** Adds the options that say which server is meant and how the answer is written. */
export function withServerOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--url <url>", `where the server is (default: ROTA_URL, else ${DEFAULT_URL})`).helpGroup(
        GROUP,
      ),
    )
    .addOption(new Option("--key <key>", "API key (default: ROTA_KEY)").helpGroup(GROUP))
    .addOption(new Option("--json", "answer in JSON, as the HTTP API does").helpGroup(GROUP));
}

/** Whoever sits in front of a command wants to see at once that something is in the way: it asks once. */
export function openClient(flags: ServerFlags, log: Log = tellTrouble): RotaClient {
  return new RotaClient({ ...clientAddress(flags), retry: false, log });
}

/** A connection that is lost is made again by itself, but whoever waits should know why nothing happens. */
const tellTrouble: Log = {
  ...silentLog,
  warn: ({ error }, message) => note(error instanceof Error ? `${message} (${error.message})` : message),
};
