import { Command } from "commander";
import type { NewScheduleInput, ScheduleDryRun } from "../../client/index.ts";
import { SCHEDULE } from "../../model/input/schedule-schema.ts";
import { leftText } from "../../model/text/left-text.ts";
import { flagsOfFields, inputOfFlags, withInputOptions } from "../flags/input-flags.ts";
import { namingFlags } from "../flags/naming-flags.ts";
import { scheduleOrder } from "../flags/schedule-order.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { print, printJson, printNotice } from "../terminal/print.ts";
import { listingForms } from "../views/listing-forms.ts";
import { scheduleLine } from "../views/schedule-text.ts";

interface NewScheduleFlags extends ServerFlags {
  readonly instruction?: string;
  readonly payload?: string;
  readonly paused?: boolean;
  readonly dryRun?: boolean;
}

/** `rota schedule "WHEN: MESSAGE"`: creates a schedule that sends an agent a message, once or repeatedly. */
export function scheduleCommand(): Command {
  const command = new Command("schedule")
    .description("Send a message to an agent at a time, or repeatedly.")
    .argument("<text...>", 'the time and the message for the agent: "WHEN: MESSAGE", or "WHEN" "MESSAGE"');
  const withOptions = withInputOptions(command, SCHEDULE.fields)
    .option("--paused", "create it paused")
    .option("--dry-run", "only check it, and show its next due times");
  return withServerOptions(withOptions).addHelpText("after", EXAMPLES).action(schedule);
}

const EXAMPLES = `
Examples:
  rota schedule "every monday at 09:00: summarise the week" --agent research
  rota schedule "in 30 minutes: look whether the deploy stayed green"
  rota schedule "0 9 * * 1-5" "say good morning" --tz Europe/Berlin
  rota schedule "every day at 7:00" --instruction "sum up the night" --max-runs 30 --pause-after-failures 3
"rota schedules preview WHEN" shows what would be understood, without making anything.`;

/** With an instruction or a payload, the words contain only the time. */
function orderOf(words: readonly string[], { instruction, payload }: NewScheduleFlags) {
  if (instruction !== undefined || payload !== undefined) return { schedule: words.join(" ") };
  const { phrase, message } = scheduleOrder(words);
  return { schedule: phrase, message };
}

async function schedule(words: readonly string[], flags: NewScheduleFlags): Promise<void> {
  const input = {
    ...orderOf(words, flags),
    ...inputOfFlags(SCHEDULE.fields, flags, Date.now()),
    ...(flags.paused ? { enabled: false } : {}),
  };
  const { schedules } = openClient(flags);
  const named = (error: unknown) => {
    throw flags.json ? error : listingForms(namingFlags(error, flagsOfFields(SCHEDULE.fields)));
  };
  if (flags.dryRun) return showDryRun(await schedules.dryRun(input as NewScheduleInput).catch(named), flags);
  const created = await schedules.create(input as NewScheduleInput).catch(named);
  if (flags.json) return printJson(created);
  const { scheduled_task: made, normalized } = created;
  print(scheduleLine({ ...made, schedule_phrase: normalized }, Date.now()));
  if (process.stdout.isTTY) printNotice(`See it with "rota schedules show ${made.id}".`);
}

function showDryRun(planned: ScheduleDryRun, { json }: ServerFlags): void {
  const { normalized, next, notes, scheduled_task: schedule } = planned;
  const first = `Nothing was stored. ${normalized} (${schedule.tz}) → ${schedule.agent_id}`;
  if (json) printJson(planned);
  else print([first, ...next, ...notes, ...leftText(planned.left)].join("\n"));
}
