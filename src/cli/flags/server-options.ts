import { type Command, Option } from "commander";
import { RotaClient } from "../../client/index.ts";
import { clientAddress, DEFAULT_URL } from "../../config/client-settings.ts";
import { type Log, silentLog } from "../../model/log.ts";
import { VERSION } from "../../version.ts";
import { printNotice } from "../terminal/print.ts";

/** The flags that name a server. */
export interface AddressFlags {
  readonly url?: string;
  readonly key?: string;
}

/** The flags of every command that talks to a server and prints. */
export interface ServerFlags extends AddressFlags {
  readonly json?: boolean;
}

const GROUP = "Common options:";

/** Adds the options that choose the server and the output format. */
export function withServerOptions(command: Command): Command {
  return withAddressOptions(command).addOption(
    new Option("--json", "print JSON, as the HTTP API returns it").helpGroup(GROUP),
  );
}

/** Adds the options that choose the server. */
export function withAddressOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--url <url>", `where the server is (default: ROTA_URL, else ${DEFAULT_URL})`).helpGroup(
        GROUP,
      ),
    )
    .addOption(new Option("--key <key>", "API key (default: ROTA_KEY)").helpGroup(GROUP));
}

/** Makes no retries: the user should see an error at once. */
export function openClient(flags: ServerFlags, log: Log = logOfWarnings): RotaClient {
  return new RotaClient({ ...clientAddress(flags), via: "cli", name: `rota/${VERSION}`, retry: false, log });
}

/** The client reconnects by itself. The warning shows the user why nothing happens. */
const logOfWarnings: Log = {
  ...silentLog,
  warn: ({ error }, message) =>
    printNotice(error instanceof Error ? `${message} (${error.message})` : message),
};
