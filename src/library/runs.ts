import type { RunPage, Runs } from "../interface/schedules.ts";
import { RotaError } from "../model/errors.ts";
import { isSerialId } from "../model/serial-id.ts";
import { parseRunFilter } from "../schedules/run-filter-input.ts";
import type { RunRecord, Storage } from "../storage/storage.ts";
import { toRun } from "./schedule-view.ts";

export interface RunsOptions {
  readonly tenant: string;
  readonly storage: Storage;
}

/** One tenant's runs, as its users look at them. */
export function createRuns({ tenant, storage }: RunsOptions): Runs {
  return {
    async list(filter = {}) {
      return toRunPage(await storage.schedules.listRuns({ tenant, ...parseRunFilter({ ...filter }) }));
    },

    async get(id) {
      const record = isSerialId(id) ? await storage.schedules.getRun({ tenant, id }) : null;
      if (record === null) throw new RotaError("not_found", "run not found");
      return toRun(record);
    },
  };
}

export function toRunPage(page: {
  readonly runs: readonly RunRecord[];
  readonly nextCursor: number | null;
}): RunPage {
  const { runs, nextCursor } = page;
  return {
    runs: runs.map(toRun),
    count: runs.length,
    next_cursor: nextCursor === null ? null : String(nextCursor),
  };
}
