import { Receiver } from "../receiver.ts";
import { Client } from "./client.ts";
import { KEYS } from "./submitter.ts";

const QUICK = { backoffMs: 20, backoffMultiplier: 2, maxBackoffMs: 300, jitter: 0.5 };

/** Submits batches whose tasks depend on each other, and cancels one now and then. */
export class Batcher extends Client {
  protected step(): void {
    if (!this.chance.oneIn(3)) return;
    const parallelism = this.chance.between(1, 3);
    const callsBack = this.chance.oneIn(2);
    const tasks = Array.from({ length: this.chance.between(2, 6) }, (_, index) =>
      this.#task(index, { parallelism, callsBack }),
    );
    const callbacks = callsBack ? { batchCallbackUrl: Receiver.url } : {};
    this.ask(
      "submit a batch",
      (rota) => rota.tasks.submitBatch({ agentId: "helper", parallelism, tasks, ...callbacks }),
      ({ batchId, tasks: accepted }) => {
        for (const [index, { taskId, state }] of accepted.entries()) {
          const marker = tasks[index]?.metadata.marker ?? "";
          if (state !== "rejected") this.note({ what: "task", taskId, marker });
        }
        if (this.chance.oneIn(5)) this.ask("cancel a batch", (rota) => rota.tasks.cancelBatch(batchId));
      },
    );
  }

  #task(index: number, ofBatch: { parallelism: number; callsBack: boolean }) {
    const marker = this.ledger.marker("batch");
    const before = index === 0 || this.chance.oneIn(3) ? [] : [`task-${this.chance.between(0, index - 1)}`];
    return {
      key: `task-${index}`,
      instruction: marker,
      timeout: 3_000,
      retryPolicy: { ...QUICK, maxRetries: 3 },
      metadata: { marker, ...ofBatch },
      ...(before.length === 0 ? {} : { dependsOn: before }),
      ...(this.chance.oneIn(3) ? { concurrencyKey: this.chance.pick(KEYS) } : {}),
    };
  }
}
