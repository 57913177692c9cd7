import { checkAgentId } from "../agent.ts";
import { EVENT_TYPES, type EventType } from "../event.ts";
import { optionalScheduleId } from "../serial-id.ts";
import { optionalSessionKey } from "../session-key.ts";
import { optionalChoice } from "./choice-input.ts";
import { checkKnown, checkName, type Fields, optionalNumber } from "./field-checks.ts";

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
  optionalSessionKey(fields);
  optionalScheduleId(fields);
  return agentId === undefined ? options : { ...options, agentId };
}

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 1_000;

export interface ParsedEventPageFilter {
  readonly after?: number | undefined;
  readonly before?: number | undefined;
  readonly type?: EventType | undefined;
  readonly taskId?: string | undefined;
  readonly limit: number;
}

/** Parses the options of a page of events. Throws `invalid_field`. */
export function parseEventPageFilter(filter: object): ParsedEventPageFilter {
  const fields = { ...filter } as Fields;
  checkKnown(fields, ["after", "before", "type", "taskId", "limit"]);
  return {
    after: optionalNumber(fields, "after", { min: 0, max: Number.MAX_SAFE_INTEGER }),
    before: optionalNumber(fields, "before", { min: 1, max: Number.MAX_SAFE_INTEGER }),
    type: optionalChoice(fields, "type", EVENT_TYPES),
    taskId: checkName(fields, "taskId", "the id of a task"),
    limit: optionalNumber(fields, "limit", { min: 1, max: LIMIT_MAX }) ?? LIMIT_DEFAULT,
  };
}

/** The same for notifications. */
export function checkNotificationsOptions<Options extends object>(options: Options): Options {
  const fields = { ...options } as Readonly<Record<string, unknown>>;
  checkKnown(fields, ["after", "signal", "onGap", "onBehind", "pace"]);
  optionalNumber(fields, "after", { min: 0, max: Number.MAX_SAFE_INTEGER });
  return options;
}
