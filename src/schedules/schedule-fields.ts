import type { Fields } from "../model/input/field-checks.ts";
import type { SCHEDULE } from "../model/input/schedule-schema.ts";
import type { ReadChangesOf } from "../model/input/schema.ts";
import { jsonValue } from "../model/json-value.ts";
import type { CatchUp, Overlap, ScheduleWork } from "../model/schedule.ts";
import { checkRetry, type RetryInput } from "./retry-input.ts";

/** The fields of a schedule that its owner sets, besides its due times. */
export interface ScheduleFields {
  readonly name: string | null;
  readonly agent: string;
  readonly work: ScheduleWork;
  readonly conversationId: string | null;
  readonly sessionKey: string | null;
  readonly postToSession: boolean;
  readonly deleteAfterRun: boolean;
  readonly retry: RetryInput;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  readonly usefulForMs: number | null;
  readonly timeoutMs: number | null;
  readonly lane: string | null;
  readonly priority: number | null;
  readonly metadata: Fields | null;
  readonly callbackUrl: string | null;
  readonly maxRuns: number | null;
  readonly untilAt: number | null;
  readonly pauseAfterFailures: number | null;
}

export const DEFAULT_OVERLAP: Overlap = "skip";
export const DEFAULT_CATCH_UP: CatchUp = "one";

export interface FieldLimits {
  /** The longest `timeout` that is allowed. */
  readonly timeoutMaxMs: number;
}

/** The fields that are set, except for the work. `given` is the input as it was submitted. Throws `invalid_field`. */
export function scheduleFieldsOf(
  read: ReadChangesOf<typeof SCHEDULE.fields>,
  given: Fields,
): Partial<Omit<ScheduleFields, "work">> {
  const { useful_for: usefulFor, metadata, retry } = read;
  const fields = {
    name: read.name,
    agent: read.agent,
    conversationId: read.conversation_id,
    sessionKey: read.session_key,
    postToSession: read.post_to_session,
    deleteAfterRun: read.delete_after_run,
    retry: retry === undefined || retry === null ? undefined : checkRetry(retry),
    overlap: read.overlap,
    catchUp: read.catch_up,
    usefulForMs: typeof usefulFor === "number" ? usefulFor * 1_000 : usefulFor,
    timeoutMs: read.timeout,
    lane: read.lane,
    priority: read.priority,
    metadata: (metadata ?? null) === null ? metadata : (jsonValue(given, "metadata") as Fields),
    callbackUrl: read.callback_url,
    maxRuns: read.max_runs,
    untilAt: read.until,
    pauseAfterFailures: read.pause_after_failures,
  };
  const set = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set) as Partial<Omit<ScheduleFields, "work">>;
}
