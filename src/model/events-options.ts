import { checkAgentId } from "./agent-id.ts";
import { checkKnown, checkName, optionalNumber } from "./field-checks.ts";
import { optionalScheduleId } from "./serial-id.ts";
import { optionalSessionKey } from "./session-key.ts";

/** Checks which events somebody wants to read. Throws `invalid_field`. */
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

/** The same for notifications. */
export function checkNotificationsOptions<Options extends object>(options: Options): Options {
  const fields = { ...options } as Readonly<Record<string, unknown>>;
  checkKnown(fields, ["after", "signal", "onGap", "onBehind", "pace"]);
  optionalNumber(fields, "after", { min: 0, max: Number.MAX_SAFE_INTEGER });
  return options;
}
