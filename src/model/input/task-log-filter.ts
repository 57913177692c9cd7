import { TASK_LOG_MAX } from "../task-log.ts";
import { number } from "./kinds.ts";
import { type FilterSchema, optional } from "./schema.ts";

const NUMBERS = { min: 1, max: 2_147_483_647 } as const;
export const LOG_LINES_DEFAULT = 500;

/** Which log lines of a task to read. */
export const TASK_LOG_FILTER = {
  noun: "filter",
  refusesNull: true,
  fields: {
    attempt: optional(number(NUMBERS), {
      description: "The number of the attempt.",
      default: "the newest that logged something",
    }),
    after: optional(number({ ...NUMBERS, min: 0 }), { description: "Only lines with a larger number." }),
    limit: optional(number({ min: 1, max: TASK_LOG_MAX.lines }), {
      description: `The most lines in the response: 1 to ${TASK_LOG_MAX.lines}.`,
      default: String(LOG_LINES_DEFAULT),
    }),
  },
} as const satisfies FilterSchema;
