import { DEFAULT_MAX_LANE_SHARE } from "../model/lane.ts";
import { numberIn, section } from "./option-kinds.ts";

/** How tenants share what they have in common. */
export const tenants = section({
  maxLaneShare: numberIn({ min: 0.01, max: 1, integer: false })
    .default(DEFAULT_MAX_LANE_SHARE)
    .describe(
      "Part of a lane's slots that one tenant may hold once a second enabled tenant exists, whether or not others have work: rounded down, at least 1 and never all of several.",
    ),
});
