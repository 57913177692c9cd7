import type { TaskDefaults } from "../model/task-input.ts";
import type { LaneCatalogue } from "./lane-catalogue.ts";

/** Reads what somebody hands in as tasks, with the defaults that hold right now. */
export type TaskParser = <Parsed>(parse: (defaults: TaskDefaults) => Parsed) => Promise<Parsed>;

/**
 * A parser that knows lanes which another node made a moment ago: where a name is one that nobody here knows, it looks at
 * the storage before that counts as none. Only then is anything waited for.
 */
export function taskParser({
  defaults,
  lanes,
}: {
  readonly defaults: () => TaskDefaults;
  readonly lanes: Pick<LaneCatalogue, "learn">;
}): TaskParser {
  return async (parse) => {
    const known = defaults();
    const unknown = new Set<string>();
    const hasLane = (lane: string): boolean => {
      const has = known.hasLane(lane);
      if (!has) unknown.add(lane);
      return has;
    };
    const parsed = parse({ ...known, hasLane });
    return unknown.size > 0 && (await lanes.learn(unknown)) ? parse(defaults()) : parsed;
  };
}
