import type { Lane } from "../../model/lane.ts";
import type { Log } from "../../model/log.ts";
import type { Storage } from "../../storage/storage.ts";

/**
 * Logs every lane with waiting tasks that this process will never run: the configuration had the lane when they were submitted,
 * and no longer has it. Another process may serve the lane, so that this is only a warning.
 */
export async function warnOfUnservedLanes(params: {
  readonly storage: Storage;
  readonly lanes: ReadonlyMap<string, Lane>;
  readonly log: Log;
}): Promise<void> {
  const { storage, lanes, log } = params;
  for (const { name, waiting } of await storage.lanes.list()) {
    if (waiting === 0 || lanes.has(name)) continue;
    const tasks = waiting === 1 ? "1 task waits" : `${waiting} tasks wait`;
    log.warn(
      { lane: name, waiting },
      `${tasks} in the lane "${name}", which this process does not have: write \`lanes.${name}\` in the configuration`,
    );
  }
}
