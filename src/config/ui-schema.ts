import { section, yesOrNo } from "./option-kinds.ts";

/** The dashboard. */
export const ui = section({
  enabled: yesOrNo().default(true).describe("False: there is no dashboard, and `/ui/` does not exist."),
});
