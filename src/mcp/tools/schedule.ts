import type { NewScheduleInput } from "../../interface/schedules.ts";
import { RotaError } from "../../model/errors.ts";
import { boolean, filledText } from "../../model/input/kinds.ts";
import { SCHEDULE } from "../../model/input/schedule-schema.ts";
import { optional, required } from "../../model/input/schema.ts";
import { leftText } from "../../model/text/left-text.ts";
import { text } from "../answer.ts";
import { defineTool } from "../tool.ts";
import { nameText, quoteField } from "../untrusted.ts";
import { timeText } from "./list.ts";

const { tz, message, agent, name, until } = SCHEDULE.fields;

export const schedule = defineTool({
  name: "schedule",
  description:
    "Schedule a message for an agent. By default a dry run that shows the next due times; dryRun: false stores it",
  access: "schedule",
  annotations: { readOnlyHint: false, destructiveHint: false },
  names: { schedule: "when", until: "expiresAt" },
  fields: {
    when: required(filledText(), {
      description: '"in 10 minutes", "every Mon at 09:00", cron; see rota://help/phrases',
    }),
    tz: optional(tz, { description: "Like Europe/Berlin" }),
    message: required(message, { description: "The message that the agent gets" }),
    agent: optional(agent, { description: "Default: index" }),
    name: optional(name, { description: "For people" }),
    expiresAt: optional(until, { description: "Last possible time, RFC 3339" }),
    dryRun: optional(boolean(), { description: "Default: true" }),
  },
  async run({ when, expiresAt, dryRun = true, ...rest }, { rota, changed }) {
    const input: NewScheduleInput = {
      ...rest,
      schedule: when,
      ...(expiresAt === undefined ? {} : { until: expiresAt }),
    };
    // The next times first, so that an answer about what was stored cannot fail after it was.
    const plan = await rota.schedules.dryRun(input).catch(withForms);
    const { normalized, next, notes, scheduled_task: planned, left } = plan;
    const times = next.length === 0 ? ["Nothing is due."] : next.map((moment) => `- ${moment}`);
    const what = `${normalized} (${planned.tz}) → ${nameText(planned.agent_id)} ${quoteField(rest.message, 60)}`;
    // A bound may have set it.
    const ends = planned.until === undefined ? [] : [`Ends ${timeText(planned.until)}.`];
    if (dryRun) {
      const how = "To store it, call again with dryRun: false.";
      return text(
        [`Dry run, nothing stored: ${what}`, ...times, ...ends, ...notes, ...leftText(left), how].join("\n"),
      );
    }
    const { scheduled_task: made } = await rota.schedules.create(input);
    changed({ tool: "schedule", subject: String(made.id), isChosen: false });
    return text([`Schedule #${made.id} stored: ${what}`, ...times, ...ends, ...notes].join("\n"));
  },
});

/** For a phrase that was not understood, the forms that are. */
function withForms(error: unknown): never {
  const accepted = error instanceof RotaError ? error.details?.["accepted"] : undefined;
  if (!(error instanceof RotaError) || !Array.isArray(accepted)) throw error;
  const forms = accepted.filter((form) => typeof form === "string").join("; ");
  throw new RotaError(error.code, `${error.message}\nAccepted: ${forms}`, { cause: error });
}
