import type { TaskDefaults } from "../../model/input/task-input.ts";
import type { LaneCatalogue } from "../registries/lane-catalogue.ts";

/** Parses the input of tasks with the current defaults. */
export type TaskParser = <Parsed>(
  parse: (defaults: TaskDefaults) => Parsed | Promise<Parsed>,
) => Promise<Parsed>;

export interface TaskParserOptions {
  readonly defaults: () => TaskDefaults;
  readonly lanes: Pick<LaneCatalogue, "learn">;
  /** Throws while no tasks are accepted. */
  readonly checkOpen: () => void;
}

/**
 * A parser that also finds lanes which another node created a moment ago. If a lane is unknown here, it reads the storage before
 * the task falls back to the lane `main`.
 */
export function taskParser({ defaults, lanes, checkOpen }: TaskParserOptions): TaskParser {
  return async (parse) => {
    const known = defaults();
    const unknown = new Set<string>();
    const hasLane = (lane: string): boolean => {
      const has = known.hasLane(lane);
      if (!has) unknown.add(lane);
      return has;
    };
    const parsed = await parse({ ...known, hasLane });
    if (unknown.size === 0) return parsed;
    const learnt = await lanes.learn(unknown);
    // This node may have begun to stop meanwhile.
    checkOpen();
    return learnt ? parse(defaults()) : parsed;
  };
}
