import { Command } from "commander";
import type { ScheduleChanges } from "../../client/index.ts";
import { SCHEDULE_CHANGES } from "../../model/input/schedule-schema.ts";
import { flagsOfFields, inputOfFlags, withInputOptions } from "../flags/input-flags.ts";
import { namingFlags } from "../flags/naming-flags.ts";
import { serialId } from "../flags/serial-id.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { UsageError } from "../terminal/usage-error.ts";
import { listingForms } from "../views/listing-forms.ts";
import { printSchedule } from "./schedules-show.ts";

interface EditFlags extends ServerFlags {
  readonly schedule?: string;
  readonly message?: string;
  readonly unset?: readonly string[];
}

/** `rota schedules edit ID`: changes the time, the message or any other field. */
export function editCommand(): Command {
  const command = new Command("edit")
    .alias("update")
    .description("Change a schedule; what is not named stays.")
    .argument("<id>", "the schedule's number")
    .option("--schedule <when>", "when it is due, from now on")
    .option("--message <text>", "the message for the agent");
  const withOptions = withInputOptions(command, SCHEDULE_CHANGES.fields, { isChange: true })
    .option("--no-delete-after-run", "it stays after it has succeeded")
    .option("--unset <fields...>", `take away: ${Object.keys(UNSETTABLE).join(", ")}`);
  return withServerOptions(withOptions).action(edit);
}

/** Fields that can be unset, by the names of their flags. */
const UNSETTABLE: Readonly<Record<string, string>> = {
  name: "name",
  session: "session_key",
  conversation: "conversation_id",
  "useful-for": "useful_for",
  timeout: "timeout",
  lane: "lane",
  priority: "priority",
  metadata: "metadata",
  callback: "callback_url",
  "max-runs": "max_runs",
  until: "until",
  "pause-after-failures": "pause_after_failures",
};

/** An error that asks for false should name the flag that sets it. */
const FIELD_FLAGS = { ...flagsOfFields(SCHEDULE_CHANGES.fields), delete_after_run: "--no-delete-after-run" };

async function edit(id: string, flags: EditFlags): Promise<void> {
  const changes = changesOf(flags);
  if (Object.keys(changes).length === 0) {
    throw new UsageError(
      `name a setting to change, as in rota schedules edit ${id} --schedule "every tue at 10:00"`,
    );
  }
  const rota = openClient(flags);
  const changed = await rota.schedules
    .update(serialId("schedule", id), changes as ScheduleChanges)
    .catch((error) => {
      throw flags.json ? error : listingForms(namingFlags(error, FIELD_FLAGS));
    });
  await printSchedule(rota, changed, flags);
}

function changesOf({ schedule, message, unset = [], ...flags }: EditFlags): Record<string, unknown> {
  return {
    ...Object.fromEntries(unset.map((name) => [unsettable(name), null])),
    ...(schedule === undefined ? {} : { schedule }),
    ...(message === undefined ? {} : { message }),
    ...inputOfFlags(SCHEDULE_CHANGES.fields, flags, Date.now()),
  };
}

function unsettable(name: string): string {
  const field = UNSETTABLE[name] ?? Object.values(UNSETTABLE).find((known) => known === name);
  if (field !== undefined) return field;
  throw new UsageError(`--unset takes ${Object.keys(UNSETTABLE).join(", ")}, not ${name}`);
}
