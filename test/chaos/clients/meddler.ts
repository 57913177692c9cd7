import { isTerminal } from "../../../src/model/task-state.ts";
import { Client } from "./client.ts";

/** Looks at tasks that others submitted, cancels some, and brings some back that did not end well. */
export class Meddler extends Client {
  protected readonly pauseMs = 150;

  protected async step(): Promise<void> {
    const { accepted } = this.ledger;
    if (accepted.length === 0) return;
    const taskId = this.chance.pick(this.chance.oneIn(3) ? accepted : accepted.slice(-15));
    switch (this.chance.weighted({ look: 5, cancel: 2, cancelMany: 1, retry: 4 })) {
      case "look":
        return void (await this.#look(taskId));
      case "cancel":
        return this.#cancel(taskId);
      case "cancelMany":
        return this.#cancelMany([taskId, ...accepted.slice(-4)]);
      case "retry":
        return this.#retry(taskId);
    }
  }

  async #look(taskId: string) {
    const answered = await this.ask(`/tasks/${taskId}`);
    if (answered?.status !== 200) return null;
    const { state, result } = answered.body;
    if (isTerminal(state)) this.note({ what: "ended", taskId, state, result });
    return answered.body;
  }

  async #cancel(taskId: string): Promise<void> {
    const answered = await this.ask(`/tasks/${taskId}/cancel`, {});
    if (answered?.status === 200) this.note({ what: "cancelled", taskId });
  }

  async #cancelMany(ids: readonly string[]): Promise<void> {
    const which = this.chance.oneIn(2) ? { ids } : { filter: { q: ids[0] } };
    const answered = await this.ask("/v1/tasks/bulk", { action: "cancel", ...which });
    if (answered?.status === 202) this.ledger.bulkIds.push(answered.body.bulkId);
  }

  /** One that depends on others would wait for them, and they might never be retried. */
  async #retry(taskId: string): Promise<void> {
    const task = await this.#look(taskId);
    if (task === null || task.dependsOn !== undefined || !["failed", "cancelled"].includes(task.state))
      return;
    // Counted before the request: the server may carry it out although the client gets no response.
    this.ledger.retriesAsked.push(taskId);
    const answered = await this.ask(`/tasks/${taskId}/retry`, {});
    if (answered?.status === 202) this.note({ what: "retried", taskId });
  }
}
