import { z } from "zod";

const count = z.int().min(1).exactOptional();

/** What the bounds of a caller still allow. */
export const leftOfBounds = z
  .strictObject({
    maxActiveSchedules: count,
    maxSubmitsPerHour: count,
    maxOpenTasks: count,
    maxDescendants: count,
  })
  .exactOptional()
  .describe(
    "How many more each bound of the caller allows, this one included. Left out: no bound counts what the caller makes.",
  );
