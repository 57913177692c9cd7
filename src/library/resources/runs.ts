import type { RunPage, Runs } from "../../interface/schedules.ts";
import { RotaError } from "../../model/errors.ts";
import type { Redactor } from "../../model/redactor.ts";
import { ownRecord, type Scope } from "../../model/scope.ts";
import { isSerialId } from "../../model/serial-id.ts";
import { parseRunFilter } from "../../schedules/run-filter-input.ts";
import type { RunRecord, Storage } from "../../storage/storage.ts";
import { toRun } from "./schedule-view.ts";

export interface RunsOptions {
  readonly scope: Scope;
  readonly storage: Storage;
  readonly redactor: () => Redactor;
}

/** The runs API of one tenant or agent. */
export function createRuns({ scope, storage, redactor }: RunsOptions): Runs {
  return {
    async list(filter = {}) {
      const page = await storage.schedules.listRuns({ ...scope, ...parseRunFilter({ ...filter }) });
      return toRunPage(page, redactor());
    },

    async get(id) {
      const { tenant } = scope;
      const found = isSerialId(id) ? await storage.schedules.getRun({ tenant, id }) : null;
      const record = ownRecord(scope, found);
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
