import type { Marked } from "../history.ts";
import { Client } from "./client.ts";
import { KEYS } from "./submitter.ts";

/** Submits batches whose tasks depend on each other, and cancels one now and then. */
export class Batcher extends Client {
  protected readonly pauseMs = 900;

  protected async step(): Promise<void> {
    const parallelism = this.chance.between(1, 3);
    const whenAllHaveEnded = this.callbackUrl("batchCallbackUrl", 2);
    const batch = {
      agentId: "helper",
      parallelism,
      ...this.callbackUrl("callbackUrl", 4),
      ...whenAllHaveEnded,
    };
    const tasks = Array.from({ length: this.chance.between(2, 7) }, (_, index) =>
      this.#task(index, { parallelism, ...whenAllHaveEnded }),
    );
    const answered = await this.ask("/tasks/batch", { ...batch, tasks });
    if (answered?.status !== 202) return;
    const { batchId, tasks: accepted } = answered.body;
    for (const [index, { taskId, state }] of accepted.entries()) {
      const marker = tasks[index]?.metadata.marker ?? "";
      if (state !== "rejected") this.note({ what: "task", taskId, marker });
    }
    if (this.chance.oneIn(5)) await this.ask(`/tasks/batches/${batchId}/cancel`, {});
  }

  #task(index: number, ofBatch: Marked) {
    const marker = this.ledger.marker("batch");
    const before = index === 0 || this.chance.oneIn(3) ? [] : [`task-${this.chance.between(0, index - 1)}`];
    return {
      key: `task-${index}`,
      instruction: marker,
      timeout: 1_500,
      retryPolicy: { maxRetries: 3, backoffMs: 20, backoffMultiplier: 2, maxBackoffMs: 200 },
      metadata: { marker, ...ofBatch },
      ...(before.length === 0 ? {} : { dependsOn: before }),
      ...(this.chance.oneIn(3) ? { concurrencyKey: this.chance.pick(KEYS) } : {}),
    };
  }
}
