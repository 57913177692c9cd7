import { Command } from "commander";
import type { KeyInfo, KeyInput, KeyOwner, Keys } from "../../interface/keys.ts";
import { momentFlag } from "../flags/flag-values.ts";
import { given } from "../flags/given.ts";
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

interface NewKeyFlags extends KeyFlags {
  readonly role: string;
  readonly name: string;
  readonly agent?: string;
  readonly expires?: string;
}

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
      if (flags.json) printJson(list);
      else for (const line of keysTable(list.keys)) print(line);
    }),
  );
}

function createCommand(): Command {
  const command = new Command("create")
    .description("Create a key and print it. It is shown only this once.")
    .requiredOption("--role <role>", "what it allows: viewer, agent, operator, tenant-admin or admin")
    .requiredOption("--name <name>", "the program or person that uses it")
    .option("--agent <id>", "with --role agent: the agent that the key may act for")
    .option("--expires <time>", "when the key expires: a span like 30d, or a time");
  return withKeyOptions(command).action((flags: NewKeyFlags) =>
    withKeys(flags, async (keys) => {
      const created = await keys.create(newKey(flags));
      if (flags.json) return printJson(created);
      print(created.key);
      printNotice(
        `${created.id} was created. Store the key now: it is shown only this once. Send it as "Authorization: Bearer …", or set ROTA_KEY.`,
      );
    }),
  );
}

function deleteCommand(): Command {
  const command = new Command("delete")
    .description("Take keys away: they are refused within a second.")
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
      .option("--tenant <id>", "whose keys are meant (default: your own tenant's)")
      .option(
        "--storage [url]",
        "go to the storage itself, where no server runs on it: this one, or the one that is configured here",
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

function newKey({ role, name, agent, expires, tenant }: NewKeyFlags): KeyInput {
  return given({
    role,
    name,
    agentId: agent,
    expiresAt: expires === undefined ? undefined : momentFlag(expires, Date.now()),
    tenantId: tenant,
  }) as KeyInput;
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
      { title: "AGENT", shrinksTo: 12 },
      { title: "CREATED" },
      { title: "LAST USED" },
      { title: "EXPIRES" },
    ],
    keys.map(({ id, role, name, agentId, createdAt, lastUsedAt, expiresAt }) => [
      id,
      role,
      oneLine(name),
      oneLine(agentId ?? ""),
      ago(createdAt),
      ago(lastUsedAt),
      ago(expiresAt),
    ]),
    { width: lineWidth() },
  );
}
