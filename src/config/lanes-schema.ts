import { z } from "zod";
import { DEFAULT_LANES, isLaneName, LANE_NAME_FORM, LANE_RANGES, TASKS_LANE } from "../model/lane.ts";
import { dotted, must, numberIn, section } from "./option-kinds.ts";

/** A number is short for `{ "concurrency": number }`. */
const lane = z.preprocess(
  (value) => (typeof value === "number" ? { concurrency: value } : value),
  section(
    {
      concurrency: numberIn(LANE_RANGES.concurrency),
      total: numberIn(LANE_RANGES.total).exactOptional(),
    },
    "be a number or an object with `concurrency` and perhaps `total`",
  ),
);

const tasksLane = z
  .never({
    error:
      "`lanes.tasks` is described by `scheduler.workerCount`, `scheduler.maxInflight` and `scheduler.maxPerAgentInflight`",
  })
  .exactOptional();

/** Lanes by name, including the built-in ones. */
export const lanes = lanesWith({
  main: lane
    .prefault(DEFAULT_LANES.main)
    .describe("Messages, and tasks that name a lane that does not exist."),
  subagent: lane.prefault(DEFAULT_LANES.subagent).describe("Used only by tasks and agents that name it."),
  team: lane.prefault(DEFAULT_LANES.team).describe("Used only by tasks and agents that name it."),
  cron: lane.prefault(DEFAULT_LANES.cron).describe("Runs of schedules."),
});

/** Only the configured lanes: users can change the others. */
export const saidLanes = lanesWith({});

function lanesWith<Shape extends z.core.$ZodLooseShape>(known: Shape) {
  return z
    .object({ ...known, [TASKS_LANE]: tasksLane }, { error: must("be an object of lanes") })
    .catchall(lane)
    .check(({ value, issues }) => {
      for (const name of Object.keys(value).filter((key) => !isLaneName(key))) {
        const message = `\`${dotted(["lanes", name])}\`: the name of a lane is ${LANE_NAME_FORM}`;
        issues.push({ code: "custom", path: [name], input: name, message });
      }
    });
}
