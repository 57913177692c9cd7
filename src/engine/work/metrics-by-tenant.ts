import { DEFAULT_TENANT } from "../../model/tenant.ts";
import type { RescuedTasks, TaskLabels } from "../../storage/storage.ts";
import { Metrics } from "./metrics.ts";

/** Tenants with counters of their own. */
const TENANTS_MAX = 1_000;
/** Agents of all tenants together that get a row of their own: a bound on the memory for many tenants with many agents. */
const ROWS_MAX = 10_000;

/** What this process did since it started, per tenant: no tenant may see the agent names of another. */
export class MetricsByTenant {
  readonly #tenants = new Map<string, Metrics>();
  readonly #rows = { left: ROWS_MAX };
  /** The counters of all further tenants. They are not shown. */
  readonly #others = new Metrics(this.#rows);

  /** The counters for the tasks of a tenant. */
  of(tenant: string): Metrics {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    if (this.#tenants.size >= TENANTS_MAX && tenant !== DEFAULT_TENANT) return this.#others;
    const metrics = new Metrics(this.#rows);
    this.#tenants.set(tenant, metrics);
    return metrics;
  }

  /** The counters that a tenant may see: its own, or empty ones. */
  shownTo(tenant: string): Metrics {
    return this.#tenants.get(tenant) ?? new Metrics(this.#rows);
  }

  forget(tenant: string): void {
    this.#rows.left += this.#tenants.get(tenant)?.rows ?? 0;
    this.#tenants.delete(tenant);
  }

  /** These tasks failed before they started. */
  expired(tasks: readonly TaskLabels[]): void {
    for (const task of tasks) this.of(task.tenant).expired(task);
  }

  /** These tasks failed because no node has an executor for them. */
  unserved(tasks: readonly TaskLabels[]): void {
    for (const task of tasks) this.of(task.tenant).ended(task, "failed");
  }

  /** The node of these tasks was lost. They failed, or are in the queue again. */
  lost({ failed, requeued }: RescuedTasks): void {
    for (const task of failed) this.of(task.tenant).lost(task, "failed");
    for (const task of requeued) this.of(task.tenant).lost(task, "queued");
  }
}
