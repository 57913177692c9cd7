import type { BulkAction } from "../../../src/model/bulk.ts";
import type { Task } from "../../../src/model/task.ts";
import { isTerminal } from "../../../src/model/task-state.ts";
import { Client } from "./client.ts";

/** What it does, and how often next to the others. */
const DEEDS = { look: 3, wait: 3, cancel: 3, cancelMany: 1, retry: 4, clear: 0.2 } as const;

/** Looks at tasks that others submitted, waits for some, cancels some, and brings some back that did not end well. */
export class Meddler extends Client {
  protected step(): void {
    const { accepted } = this.ledger;
    if (accepted.length === 0) return;
    const taskId = this.chance.pick(this.chance.oneIn(3) ? accepted : accepted.slice(-15));
    const deeds: Record<keyof typeof DEEDS, () => void> = {
      look: () => this.#look(taskId, () => {}),
      wait: () => this.#wait(taskId),
      cancel: () => this.#cancel(taskId),
      cancelMany: () => this.#many("cancel", [taskId, ...accepted.slice(-4)]),
      retry: () => this.#look(taskId, (task) => this.#retry(task)),
      clear: () => this.ask("clear a lane", (rota) => rota.lanes.clear("tasks")),
    };
    deeds[this.chance.weighted(DEEDS)]();
  }

  #wait(taskId: string): void {
    this.ask(
      `wait for ${taskId}`,
      (rota) => rota.tasks.wait(taskId, { timeoutMs: 10_000 }),
      (task) => this.#noteEnd(task),
    );
  }

  #cancel(taskId: string): void {
    this.ask(
      `cancel ${taskId}`,
      (rota) => rota.tasks.cancel(taskId),
      () => this.note({ what: "cancelled", taskId }),
    );
  }

  #look(taskId: string, then: (task: Task) => void): void {
    this.ask(
      `look at ${taskId}`,
      (rota) => rota.tasks.get(taskId),
      (task) => {
        this.#noteEnd(task);
        then(task);
      },
    );
  }

  #noteEnd({ taskId, state, result }: Task): void {
    if (isTerminal(state)) this.note({ what: "ended", taskId, state, result });
  }

  /** One that depends on others would wait for them, and they might never be retried. */
  #retry({ taskId, state, dependsOn }: Task): void {
    if (dependsOn !== undefined || !["failed", "cancelled"].includes(state)) return;
    // Counted before the request: the server may carry it out although the client gets no response.
    this.ledger.retriesAsked.push(taskId);
    if (this.chance.oneIn(4)) this.#many("retry", [taskId]);
    else this.#retryOne(taskId);
  }

  #retryOne(taskId: string): void {
    this.ask(
      `retry ${taskId}`,
      (rota) => rota.tasks.retry(taskId),
      () => this.note({ what: "retried", taskId }),
    );
  }

  /** By their names, or the first of them by a filter. */
  #many(action: BulkAction, ids: readonly string[]): void {
    const which = this.chance.oneIn(2) ? { ids } : { filter: { q: ids[0] as string } };
    this.ask(
      `${action} ${ids.join(", ")}`,
      (rota) => rota.bulks.start({ action, ...which }),
      ({ bulkId }) => this.ledger.bulkIds.push(bulkId),
    );
  }
}
