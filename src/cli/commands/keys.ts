import { Command } from "commander";
import { clientAddress } from "../../config/client-settings.ts";
import type { KeyInfo, KeyInput, KeyOwner, Keys } from "../../interface/keys.ts";
import { KEY } from "../../model/input/key-input.ts";
import type { Role } from "../../model/role.ts";
import { flagsOfFields, inputOfFlags, withInputOptions } from "../flags/input-flags.ts";
import { namingFlags } from "../flags/naming-flags.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { oneLine } from "../terminal/display-text.ts";
import { lineWidth, print, printJson, printNotice } from "../terminal/print.ts";
import { tableLines } from "../views/table.ts";
import { shownAgo } from "../views/times.ts";
import { forEachId } from "./each-id.ts";
import { withStoredKeys } from "./stored-keys.ts";

interface KeyFlags extends ServerFlags {
  readonly tenant?: string;
  /** True: the configured storage. */
  readonly storage?: string | true;
  readonly config?: string;
}

/** `--tenant` is an option of all commands for keys. */
const { tenantId: _tenant, ...NEW_KEY_FIELDS } = KEY.fields;

/** `rota keys`: the API keys of a server and their roles. */
export function keysCommand(): Command {
  return new Command("keys")
    .description("List, create or delete API keys.")
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(createCommand())
    .addCommand(deleteCommand());
}

function listCommand(): Command {
  const command = new Command("list").description("List the keys of a tenant, the oldest first.");
  return withKeyOptions(command).action((flags: KeyFlags) =>
    withKeys(flags, async (keys) => {
      const list = await keys.list(ownerOf(flags));
      if (flags.json) return printJson(list);
      if (list.keys.length === 0) {
        return printNotice('There are no keys; create one with "rota keys create --role admin --name NAME".');
      }
      for (const line of keysTable(list.keys)) print(line);
    }),
  );
}

function createCommand(): Command {
  const command = new Command("create").description("Create a key and print it. It is shown only this once.");
  const withOptions = withInputOptions(command, NEW_KEY_FIELDS);
  return withKeyOptions(withOptions).action((flags: KeyFlags) =>
    withKeys(flags, async (keys) => {
      const input = inputOfFlags(KEY.fields, flags, Date.now()) as KeyInput;
      const created = await keys.create(input).catch((error) => {
        throw namingFlags(error, flagsOfFields(KEY.fields));
      });
      if (flags.json) return printJson(created);
      print(created.key);
      printNotice(
        `${created.id} was created. Store the key now: it is shown only this once. Send it as "Authorization: Bearer …", or set ROTA_KEY.`,
      );
      // A server that has keys refuses a request without one.
      if (flags.storage === undefined && clientAddress(flags).key === undefined) {
        printNotice(firstKeyNotice(input.role));
      }
    }),
  );
}

/** What the first key of a server changes. With a lesser role than admin, the caller has locked itself out. */
function firstKeyNotice(role: Role): string {
  const locked = "It is the first key: from now on the server refuses every request without a key.";
  if (role === "admin") return locked;
  const rescue = "rota keys create --role admin --name me --storage";
  return `${locked} The role ${role} cannot create an admin key: stop the server, run "${rescue}" where it runs, and start it again.`;
}

function deleteCommand(): Command {
  const command = new Command("delete")
    .description("Delete keys: they are refused within a second.")
    .argument("<id...>", "ids of keys");
  return withKeyOptions(command).action((ids: string[], flags: KeyFlags) =>
    withKeys(flags, (keys) =>
      forEachId(ids, flags, {
        act: async (id) => ({ id, ...(await keys.delete(id, ownerOf(flags))) }),
        say: ({ id }) => print(`${id} deleted`),
      }),
    ),
  );
}

function withKeyOptions(command: Command): Command {
  return withServerOptions(
    command
      .option("--tenant <id>", "the tenant of the keys (default: your own)")
      .option(
        "--storage [url]",
        "open this storage directly instead of calling a server, which must be stopped on SQLite; without a value: the storage of the configuration",
      )
      .option("--config <file>", "with --storage: configuration to read"),
  );
}

/** The keys of the server, or with `--storage` those of a storage on which no server runs. */
function withKeys<T>(flags: KeyFlags, use: (keys: Keys) => Promise<T>): Promise<T> {
  const { storage, config } = flags;
  if (storage === undefined) return use(openClient(flags).keys);
  return withStoredKeys({ storage: storage === true ? undefined : storage, config }, use);
}

function ownerOf({ tenant }: KeyFlags): KeyOwner {
  return tenant === undefined ? {} : { tenantId: tenant };
}

function keysTable(keys: readonly KeyInfo[]): string[] {
  const now = Date.now();
  const ago = (moment: string | undefined) => (moment === undefined ? "never" : shownAgo(moment, now));
  return tableLines(
    [
      { title: "KEY" },
      { title: "ROLE" },
      { title: "NAME", shrinksTo: 12 },
      { title: "AGENTS", shrinksTo: 12 },
      { title: "CREATED" },
      { title: "LAST USED" },
      { title: "EXPIRES" },
    ],
    keys.map(({ id, role, name, agentId, agents, createdAt, lastUsedAt, expiresAt }) => [
      id,
      role,
      oneLine(name),
      oneLine(agentId ?? agents?.join(", ") ?? ""),
      ago(createdAt),
      ago(lastUsedAt),
      ago(expiresAt),
    ]),
    { width: lineWidth() },
  );
}
