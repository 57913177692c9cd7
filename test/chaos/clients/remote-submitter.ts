import { REMOTE_AGENT } from "../settings.ts";
import { Client, type ClientDependencies } from "./client.ts";

/** Longer than a lease. */
const TIMEOUT_MS = 30_000;

/** Submits tasks that only workers can execute: short ones, and some that take longer than faults last. */
export class RemoteSubmitter extends Client {
  protected readonly pauseMs = 100;
  readonly #longestMs: number;

  constructor(longestMs: number, dependencies: ClientDependencies) {
    super(dependencies);
    this.#longestMs = longestMs;
  }

  protected async step(): Promise<void> {
    const marker = this.ledger.marker("remote");
    const takesLong = this.chance.oneIn(6);
    const takesMs = this.chance.between(this.#longestMs / 4, this.#longestMs);
    const answered = await this.askUntilAnswered("/tasks", {
      agentId: REMOTE_AGENT,
      payload: marker,
      // Most outlast the lease of a worker, so that a lost one is found by its lease.
      timeout: this.chance.oneIn(4) ? this.chance.between(1_000, 3_000) : TIMEOUT_MS,
      retryPolicy: { maxRetries: 10, backoffMs: 20, backoffMultiplier: 2, maxBackoffMs: 500 },
      metadata: { marker, ...(takesLong ? { takesMs } : {}) },
      ...(this.chance.oneIn(6) ? { sessionKey: "in-order" } : {}),
      idempotencyKey: marker,
    });
    if (answered?.status === 202) this.note({ what: "task", taskId: answered.body.taskId, marker });
  }
}
