import { DEFAULT_MAX_LANE_SHARE } from "../model/lane.ts";
import { numberIn, section } from "./option-kinds.ts";

/** How tenants share lanes, memory and time. */
export const tenants = section({
  maxLaneShare: numberIn({ min: 0.01, max: 1, integer: false })
    .default(DEFAULT_MAX_LANE_SHARE)
    .describe(
      "The share of a lane's slots, and of `scheduler.maxRunningBytes`, that one tenant may hold once a second enabled tenant exists, even while others have no work. Rounded down to whole slots, at least 1, and at least one slot less than the lane has.",
    ),
  maxFiresPerSec: numberIn({ min: 0, max: 1_000_000 })
    .default(200)
    .describe(
      "How often the schedules of one tenant may fire in one process, per second on average, once a second enabled tenant exists. Ten seconds' worth may fire at once. Beyond it they fire late. 0: any number.",
    ),
});
