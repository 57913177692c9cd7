import { LEASE_MS } from "../../model/node.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import type { NodeRecord, Storage } from "../../storage/storage.ts";
import type { MetricsByTenant } from "../work/metrics-by-tenant.ts";

const LOOK_EVERY_MS = 5_000;
/** Attempts taken back in one transaction. */
const SLICE = 500;

export interface RescuerOptions extends ServiceOptions {
  readonly storage: Storage;
  /** This node's own membership, which it never rescues. */
  readonly node: () => string;
  readonly metrics: MetricsByTenant;
  /** How often a process may die with a task before the task fails. */
  readonly maxLost: () => number;
  /** Called after tasks went back to the queue. */
  readonly onRequeued: () => void;
  /** Called after tasks failed because they had no retry left. */
  readonly onFailed: () => void;
}

interface Sighting {
  readonly beat: number;
  /** By this node's monotonic clock: wall clocks of different machines cannot be compared. */
  readonly since: number;
}

/** Takes back the work of nodes that are gone. */
export class Rescuer extends Service<RescuerOptions> {
  readonly name = "rescuer";
  #seen = new Map<string, Sighting>();

  async tick(): Promise<number> {
    const { storage, node } = this.options;
    const others = (await storage.nodes.list()).filter((other) => other.node !== node());
    this.#recordBeats(others);
    for (const other of others) {
      if (other.dead || this.#isGone(other)) await this.rescue(other, { died: true });
    }
    return LOOK_EVERY_MS;
  }

  /**
   * Declares a node dead, unless it renewed its lease meanwhile, and takes back all its tasks. `died`: its process is gone, or
   * missed a whole lease, and one of its tasks may be the cause. Such a loss counts against `maxLost`.
   */
  async rescue({ node, beat, dead }: NodeRecord, { died }: { died: boolean }): Promise<void> {
    const { storage, metrics, maxLost, onRequeued, onFailed } = this.options;
    if (!dead && !(await storage.nodes.markDead({ node, beat }))) return;
    const total = { requeued: 0, failed: 0 };
    for (let taken = SLICE; taken === SLICE; ) {
      const rescued = await storage.tasks.rescue({ node, limit: SLICE, ...(died && { maxLost: maxLost() }) });
      const { requeued, failed } = rescued;
      taken = requeued.length + failed.length;
      total.requeued += requeued.length;
      total.failed += failed.length;
      metrics.lost(rescued);
      if (requeued.length > 0) onRequeued();
      if (failed.length > 0) onFailed();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await storage.nodes.remove({ node });
    this.#seen.delete(node);
    if (total.requeued + total.failed > 0)
      this.log.warn({ node, ...total }, "requeued the tasks of a lost node");
  }

  #recordBeats(nodes: readonly NodeRecord[]): void {
    const now = this.clock.monotonic();
    // Only listed nodes are kept, so that the map does not grow with every node there ever was.
    this.#seen = new Map(
      nodes.map(({ node, beat }) => {
        const before = this.#seen.get(node);
        return [node, before?.beat === beat ? before : { beat, since: now }];
      }),
    );
  }

  /** This node saw no renewal for a whole lease. On an exclusive storage no other node can be alive. */
  #isGone({ node }: NodeRecord): boolean {
    if (this.options.storage.capabilities.exclusive) return true;
    const sighting = this.#seen.get(node);
    return sighting !== undefined && this.clock.monotonic() - sighting.since >= LEASE_MS;
  }
}
