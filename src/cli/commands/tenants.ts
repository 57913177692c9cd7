import { Command } from "commander";
import type {
  RotatedWebhookSecret,
  Tenant,
  TenantChanges,
  TenantLimitsInput,
} from "../../interface/tenants.ts";
import { LIMIT_FIELDS } from "../../model/input/tenant-input.ts";
import { given } from "../flags/given.ts";
import { inputOfFlags, withInputOptions } from "../flags/input-flags.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { lineWidth, print, printJson, printNotice } from "../terminal/print.ts";
import { tenantSheet, tenantsTable } from "../views/tenants-table.ts";
import { shownMoment } from "../views/times.ts";
import { forEachId } from "./each-id.ts";

interface TenantFlags extends ServerFlags {
  readonly name?: string;
}

/** `rota tenants`: lists, creates and changes tenants. */
export function tenantsCommand(): Command {
  return new Command("tenants")
    .description(
      "List tenants, or show, create, change, disable, enable and delete them, or rotate their webhook secrets.",
    )
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(getCommand())
    .addCommand(createCommand())
    .addCommand(updateCommand())
    .addCommand(switchCommand("disable", "Stop starting tasks and firing schedules of tenants."))
    .addCommand(switchCommand("enable", "Resume the work of disabled tenants."))
    .addCommand(deleteCommand())
    .addCommand(rotateSecretCommand());
}

function listCommand(): Command {
  const command = new Command("list").description("List all tenants.");
  return withServerOptions(command).action(async (flags: ServerFlags) => {
    const list = await openClient(flags).tenants.list();
    if (flags.json) printJson(list);
    else for (const line of tenantsTable(list.tenants, { width: lineWidth() })) print(line);
  });
}

function getCommand(): Command {
  const command = new Command("show")
    .alias("get")
    .description("Show one tenant.")
    .argument("<id>", "the tenant's id");
  return withServerOptions(command).action(async (id: string, flags: ServerFlags) =>
    show(await openClient(flags).tenants.get(id), flags),
  );
}

function createCommand(): Command {
  const command = new Command("create")
    .description("Create a tenant; make a key for it with rota keys create --tenant.")
    .argument("<name>", "what it is called");
  return withServerOptions(withLimitOptions(command)).action(async (name: string, flags: TenantFlags) => {
    show(await openClient(flags).tenants.create({ name, ...limits(flags) }), flags);
  });
}

function updateCommand(): Command {
  const command = new Command("update")
    .description("Change the given fields of a tenant.")
    .argument("<id>", "the tenant's id")
    .option("--name <name>", "what it is called");
  return withServerOptions(withLimitOptions(command)).action(async (id: string, flags: TenantFlags) => {
    const changes: TenantChanges = { ...given({ name: flags.name }), ...limits(flags) };
    show(await openClient(flags).tenants.update(id, changes), flags);
  });
}

function switchCommand(name: "disable" | "enable", description: string): Command {
  const command = new Command(name).description(description).argument("<id...>", "ids of tenants");
  return withServerOptions(command).action(async (ids: string[], flags: ServerFlags) => {
    const { tenants } = openClient(flags);
    await forEachId(ids, flags, {
      act: (id) => tenants[name](id),
      say: ({ id }) => print(`${id} ${name}d`),
    });
  });
}

function deleteCommand(): Command {
  const command = new Command("delete")
    .description("Delete tenants with everything they own.")
    .argument("<id...>", "ids of tenants");
  return withServerOptions(command).action(async (ids: string[], flags: ServerFlags) => {
    const { tenants } = openClient(flags);
    await forEachId(ids, flags, {
      act: async (id) => ({ id, ...(await tenants.delete(id)) }),
      say: ({ id }) => print(`${id} deleted`),
    });
  });
}

function rotateSecretCommand(): Command {
  const command = new Command("rotate-secret")
    .description("Create a new secret that signs a tenant's webhooks. It is shown only this once.")
    .argument("<id>", "the tenant's id");
  return withServerOptions(command).action(async (id: string, flags: ServerFlags) => {
    const rotated = await openClient(flags).tenants.rotateWebhookSecret(id);
    if (flags.json) printJson(rotated);
    else printSecret(rotated);
  });
}

function printSecret({ secret, previousUntil }: RotatedWebhookSecret): void {
  print(secret);
  const previous =
    previousUntil === null
      ? ""
      : ` The previous secret signs as well until ${shownMoment(previousUntil, Date.now())}.`;
  printNotice(
    `Store the secret now: it is shown only this once. Configure it in every receiver of the tenant's webhooks.${previous}`,
  );
}

function withLimitOptions(command: Command): Command {
  return withInputOptions(command, LIMIT_FIELDS, { isChange: true }).addHelpText(
    "after",
    '\nEach limit is a number, or "none" for the default.',
  );
}

function limits(flags: TenantFlags): { readonly limits?: TenantLimitsInput } {
  const values = Object.entries(inputOfFlags(LIMIT_FIELDS, flags, Date.now()));
  if (values.length === 0) return {};
  return {
    limits: Object.fromEntries(values.map(([name, value]) => [name, value === "none" ? null : value])),
  };
}

function show(tenant: Tenant, { json }: ServerFlags): void {
  if (json) printJson(tenant);
  else for (const line of tenantSheet(tenant)) print(line);
}
