import { Client, type ClientDependencies } from "./client.ts";

/**
 * Submits work that takes long, so that there is always some under way: when a node sleeps or is cut off, it is taken over
 * while the node that had it could still be answered.
 */
export class Ponderer extends Client {
  protected readonly pauseMs = 1_500;
  readonly #longestMs: number;

  constructor(longestMs: number, dependencies: ClientDependencies) {
    super(dependencies);
    this.#longestMs = longestMs;
  }

  protected async step(): Promise<void> {
    const marker = this.ledger.marker("ponder");
    const takesMs = this.chance.between(this.#longestMs / 4, this.#longestMs);
    const answered = await this.askUntilAnswered("/tasks", {
      agentId: "ponderer",
      instruction: marker,
      timeout: this.#longestMs + 5_000,
      retryPolicy: { maxRetries: 20, backoffMs: 100, backoffMultiplier: 1 },
      metadata: { marker, takesMs },
      idempotencyKey: marker,
    });
    if (answered?.status === 202) this.note({ what: "task", taskId: answered.body.taskId, marker });
  }
}
