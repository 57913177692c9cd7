import { DEFAULT_TENANT } from "../../model/task.ts";
import type { RescuedTasks, TaskPlace } from "../../storage/storage.ts";
import { Metrics } from "./metrics.ts";

/** Tenants that are counted for themselves. */
const TENANTS_MAX = 1_000;
/** Agents of all tenants together that get a row of their own, so that many tenants with many agents fit into memory. */
const ROWS_MAX = 10_000;

/** What this process did since it started, for each tenant by itself: the names of its agents are nobody else's business. */
export class MetricsByTenant {
  readonly #tenants = new Map<string, Metrics>();
  readonly #rows = { left: ROWS_MAX };
  /** Of all further tenants; shown to nobody. */
  readonly #others = new Metrics(this.#rows);

  /** Where the tasks of a tenant are counted. */
  of(tenant: string): Metrics {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    if (this.#tenants.size >= TENANTS_MAX && tenant !== DEFAULT_TENANT) return this.#others;
    const metrics = new Metrics(this.#rows);
    this.#tenants.set(tenant, metrics);
    return metrics;
  }

  /** What may be shown to a tenant: its own, or nothing yet. */
  shownTo(tenant: string): Metrics {
    return this.#tenants.get(tenant) ?? new Metrics(this.#rows);
  }

  forget(tenant: string): void {
    this.#rows.left += this.#tenants.get(tenant)?.rows ?? 0;
    this.#tenants.delete(tenant);
  }

  /** Failed before they started. */
  expired(tasks: readonly TaskPlace[]): void {
    for (const task of tasks) this.of(task.tenant).expired(task);
  }

  /** Failed for want of an executor. */
  unserved(tasks: readonly TaskPlace[]): void {
    for (const task of tasks) this.of(task.tenant).ended(task, "failed");
  }

  /** Their node was lost: they failed, or go on elsewhere. */
  lost({ failed, requeued }: RescuedTasks): void {
    for (const task of failed) this.of(task.tenant).lost(task, "failed");
    for (const task of requeued) this.of(task.tenant).lost(task, "queued");
  }
}
