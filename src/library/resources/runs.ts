import type { RunPage, Runs } from "../../interface/schedules.ts";
import { RotaError } from "../../model/errors.ts";
import type { Redactor } from "../../model/redactor.ts";
import { isSerialId } from "../../model/serial-id.ts";
import { parseRunFilter } from "../../schedules/run-filter-input.ts";
import type { RunRecord, Storage } from "../../storage/storage.ts";
import { toRun } from "./schedule-view.ts";

export interface RunsOptions {
  readonly tenant: string;
  readonly storage: Storage;
  readonly redactor: () => Redactor;
}

/** The runs API of one tenant. */
export function createRuns({ tenant, storage, redactor }: RunsOptions): Runs {
  return {
    async list(filter = {}) {
      const page = await storage.schedules.listRuns({ tenant, ...parseRunFilter({ ...filter }) });
      return toRunPage(page, redactor());
    },

    async get(id) {
      const record = isSerialId(id) ? await storage.schedules.getRun({ tenant, id }) : null;
      if (record === null) throw new RotaError("not_found", "run not found");
      return toRun(record, redactor());
    },
  };
}

export function toRunPage(
  { runs, nextCursor }: { readonly runs: readonly RunRecord[]; readonly nextCursor: number | null },
  redactor: Redactor,
): RunPage {
  return {
    runs: runs.map((run) => toRun(run, redactor)),
    count: runs.length,
    next_cursor: nextCursor === null ? null : String(nextCursor),
  };
}
