import { checkAgentId } from "../agent.ts";
import { EVENT_TYPES, type EventType } from "../event.ts";
import { checkScheduleId } from "../serial-id.ts";
import { checkSessionKey } from "../session-key.ts";
import { checkKnown, checkName, optionalNumber } from "./field-checks.ts";
import { choice, name, number } from "./kinds.ts";
import { LIMIT_DEFAULT, pageLimit } from "./page-input.ts";
import { readFields } from "./read-fields.ts";
import { type FilterSchema, optional } from "./schema.ts";

/** Checks the options of a stream of events. Throws `invalid_field`. */
export function checkEventsOptions<Options extends object>(options: Options): Options {
  const fields = { ...options } as Readonly<Record<string, unknown>>;
  checkKnown(fields, [
    "after",
    "agentId",
    "batchId",
    "sessionKey",
    "scheduleId",
    "signal",
    "onGap",
    "onBehind",
    "pace",
  ]);
  optionalNumber(fields, "after", { min: 0, max: Number.MAX_SAFE_INTEGER });
  const agentId = fields["agentId"] === undefined ? undefined : checkAgentId(fields["agentId"]);
  checkName(fields, "batchId", "the id of a batch");
  const { sessionKey, scheduleId } = fields;
  if (sessionKey !== undefined) checkSessionKey(sessionKey);
  if (scheduleId !== undefined) checkScheduleId(scheduleId, "scheduleId");
  return agentId === undefined ? options : { ...options, agentId };
}

/** Which events to list. */
export const EVENT_FILTER = {
  noun: "filter",
  refusesNull: true,
  fields: {
    after: optional(number({ min: 0, max: Number.MAX_SAFE_INTEGER }), {
      description: "Only events with a larger number, oldest first; 0: from the oldest stored one.",
    }),
    before: optional(number({ min: 1, max: Number.MAX_SAFE_INTEGER }), {
      description: "Only events with a smaller number.",
    }),
    type: optional(choice(EVENT_TYPES), { description: "Only events of this type." }),
    taskId: optional(name("the id of a task"), { description: "Only those of this task." }),
    limit: pageLimit(),
  },
} as const satisfies FilterSchema;

export interface ParsedEventPageFilter {
  readonly after?: number | undefined;
  readonly before?: number | undefined;
  readonly type?: EventType | undefined;
  readonly taskId?: string | undefined;
  readonly limit: number;
}

/** Parses the options of a page of events. Throws `invalid_field`. */
export function parseEventPageFilter(filter: object): ParsedEventPageFilter {
  return { limit: LIMIT_DEFAULT, ...readFields(EVENT_FILTER, { ...filter }) };
}

/** The same for notifications. */
export function checkNotificationsOptions<Options extends object>(options: Options): Options {
  const fields = { ...options } as Readonly<Record<string, unknown>>;
  checkKnown(fields, ["after", "signal", "onGap", "onBehind", "pace"]);
  optionalNumber(fields, "after", { min: 0, max: Number.MAX_SAFE_INTEGER });
  return options;
}
