import { numberIn, section } from "./option-kinds.ts";

/** The section `audit`. */
export const audit = section({
  retentionDays: numberIn({ min: 1, max: 36_500, unit: "days" })
    .default(90)
    .describe("How long entries of the audit log are kept."),
});
