import { Service, type ServiceOptions } from "../../services/service.ts";
import type { BulkRecord, BulkStep, EndedTask, Storage } from "../../storage/storage.ts";

/** Tasks of one transaction, so that other writes do not wait for long. */
const SLICE = 100;
/** How long a node may take for a slice before another node tries it. Only the first to commit has an effect. */
const LEASE_MS = 15_000;
/** A signal may be lost: check at least this often. */
const EVERY_MS = 60_000;

export interface BulkWorkerOptions extends ServiceOptions {
  readonly storage: Storage;
  /** Called with the tasks that a slice has cancelled. */
  readonly onCancelled: (tenant: string, tasks: readonly EndedTask[]) => void;
}

/** Carries out bulk actions, one slice at a time. Tenants take turns. */
export class BulkWorker extends Service<BulkWorkerOptions> {
  readonly name = "bulk actions";

  async tick(): Promise<number> {
    const { storage, onCancelled } = this.options;
    // No other process uses this storage: the holder of the lease was an earlier process, which is gone.
    const leaseMs = storage.capabilities.exclusive ? 0 : LEASE_MS;
    const { bulk, retryMs } = await storage.bulks.claim({ leaseMs });
    if (bulk === null) return Math.min(retryMs ?? EVERY_MS, EVERY_MS);
    const stepped = await storage.bulks.step(await this.#nextStep(bulk));
    if (stepped !== null) onCancelled(bulk.tenant, stepped.cancelled);
    return 0;
  }

  async #nextStep(bulk: BulkRecord): Promise<BulkStep> {
    const { tenant, id, cursor, ids, selection, lastSeq, limit } = bulk;
    if (ids !== null || selection === null) {
      const rest = (ids ?? []).slice(cursor);
      const slice = rest.slice(0, SLICE);
      const next = rest.length > slice.length ? cursor + slice.length : null;
      return { tenant, id, cursor, next, ids: slice };
    }
    const left = limit - bulk.done - bulk.failed - bulk.skipped;
    const params = { tenant, ...selection, cursor, limit: Math.min(SLICE, left) };
    const { rows, nextCursor } = await this.options.storage.tasks.listRows(params);
    // In ascending order, tasks accepted after the request come last.
    const covered = rows.filter(({ seq }) => seq <= lastSeq);
    const isLast = nextCursor === null || covered.length < rows.length || covered.length === left;
    return { tenant, id, cursor, next: isLast ? null : nextCursor, ids: covered.map((row) => row.id) };
  }
}
