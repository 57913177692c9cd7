import { section, yesOrNo } from "./option-kinds.ts";

/** The dashboard. */
export const ui = section({
  enabled: yesOrNo().default(true).describe("False: no dashboard; `/ui/` is a 404."),
});
