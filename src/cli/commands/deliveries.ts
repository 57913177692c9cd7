import { Command } from "commander";
import type { DeliveryFilter } from "../../interface/webhooks.ts";
import { given } from "../flags/given.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { lineWidth, print, printJson } from "../terminal/print.ts";
import { deliveriesTable, deliverySheet } from "../views/deliveries-table.ts";
import { type PageFlags, printPages, withPageOptions } from "../views/pages.ts";
import { forEachId } from "./each-id.ts";

interface ListFlags extends PageFlags {
  readonly task?: string;
  readonly status?: string;
}

/** `rota deliveries`: webhook deliveries and their outcomes. */
export function deliveriesCommand(): Command {
  return new Command("deliveries")
    .description("List webhook deliveries, show one, or send them again.")
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(getCommand())
    .addCommand(resendCommand());
}

function listCommand(): Command {
  const command = new Command("list")
    .description("List deliveries, newest first.")
    .option("--task <id>", "of this task")
    .option("--status <status>", "pending, delivered or failed");
  return withServerOptions(withPageOptions(command)).action(async (flags: ListFlags) => {
    const { webhooks } = openClient(flags);
    const filter = given({ taskId: flags.task, status: flags.status }) as DeliveryFilter;
    await printPages(flags, {
      noun: "deliveries",
      read: (position) => webhooks.deliveries({ ...filter, ...position }),
      cursor: ({ nextCursor }) => nextCursor,
      lines: ({ deliveries }) => deliveriesTable(deliveries, { now: Date.now(), width: lineWidth() }),
    });
  });
}

function getCommand(): Command {
  const command = new Command("show")
    .alias("get")
    .description("Show one delivery.")
    .argument("<id>", "the delivery's id");
  return withServerOptions(command).action(async (id: string, flags: ServerFlags) => {
    const delivery = await openClient(flags).webhooks.get(id);
    if (flags.json) printJson(delivery);
    else for (const line of deliverySheet(delivery, Date.now())) print(line);
  });
}

function resendCommand(): Command {
  const command = new Command("resend")
    .description("Send deliveries once more.")
    .argument("<id...>", "ids of deliveries");
  return withServerOptions(command).action(async (ids: string[], flags: ServerFlags) => {
    const { webhooks } = openClient(flags);
    await forEachId(ids, flags, {
      act: (id) => webhooks.resend(id),
      say: ({ deliveryId, status }) => print(`${deliveryId} ${status}`),
    });
  });
}
