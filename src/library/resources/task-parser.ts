import type { TaskDefaults } from "../../model/input/task-input.ts";
import type { LaneCatalogue } from "../registries/lane-catalogue.ts";

/** Reads what somebody hands in as tasks, with the defaults that hold right now. */
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
 * A parser that knows lanes which another node made a moment ago: where nobody here knows a name, it looks at the storage
 * before the task goes where those go that name none.
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
    // It may have begun to stop meanwhile.
    checkOpen();
    return learnt ? parse(defaults()) : parsed;
  };
}
