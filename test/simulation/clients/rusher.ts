import { Client } from "./client.ts";

const QUICK = { backoffMs: 20, backoffMultiplier: 2, maxBackoffMs: 300, jitter: 0.5 };

/** Submits many short tasks at once, now and then a critical one among them, and cancels some while they are on their way. */
export class Rusher extends Client {
  protected step(): void {
    const markers = Array.from({ length: this.chance.between(5, 20) }, () => this.ledger.marker("rush"));
    const tasks = markers.map((marker) => ({
      agentId: "rusher",
      lane: "quick",
      instruction: marker,
      timeout: 3_000,
      ...(this.chance.oneIn(12) ? { priority: "critical" as const } : {}),
      retryPolicy: { ...QUICK, maxRetries: this.chance.oneIn(8) ? 0 : 4 },
      preemptible: this.chance.oneIn(3),
      metadata: { marker },
    }));
    this.ask(
      "submit many",
      (rota) => rota.tasks.submitMany(tasks),
      (answers) => {
        for (const [index, { taskId, state }] of answers.entries()) {
          if (state !== "rejected") this.note({ what: "task", taskId, marker: markers[index] ?? "" });
        }
        const ids = answers.filter(() => this.chance.oneIn(10)).map(({ taskId }) => taskId);
        for (const id of ids) this.ask(`cancel ${id}`, (rota) => rota.tasks.cancel(id));
      },
    );
  }
}
