import { numberIn, section } from "./option-kinds.ts";

/** The section `schedules`. */
export const schedules = section({
  runRetentionDays: numberIn({ min: 1, max: 36_500, unit: "days" })
    .default(90)
    .describe("How long ended runs of schedules, and all notifications, are kept."),
});
