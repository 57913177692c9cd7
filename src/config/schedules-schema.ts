import { numberIn, section } from "./option-kinds.ts";

/** What is kept of schedules. */
export const schedules = section({
  runRetentionDays: numberIn({ min: 1, max: 36_500, unit: "days" })
    .default(90)
    .describe("How long runs of schedules, and what was told of them, are kept once they are over."),
});
