import { localAgent } from "../settings.ts";
import { Client } from "./client.ts";

/** Submits tasks that only one node can execute, for one node after the other, to whichever node takes them. */
export class LocalSubmitter extends Client {
  protected readonly pauseMs = 400;
  #submitted = 0;

  /** Each node has been given something. */
  protected override get hasDoneItsPart(): boolean {
    return this.#submitted >= this.nodes;
  }

  protected async step(): Promise<void> {
    const marker = this.ledger.marker("local");
    const json = {
      agentId: localAgent(this.#submitted % this.nodes),
      payload: marker,
      timeout: 1_500,
      retryPolicy: { maxRetries: 3, backoffMs: 20, backoffMultiplier: 2, maxBackoffMs: 200 },
      metadata: { marker },
      idempotencyKey: marker,
    };
    const answered = await this.askUntilAnswered("/tasks", json);
    if (answered?.status !== 202) return;
    this.#submitted += 1;
    this.note({ what: "task", taskId: answered.body.taskId, marker });
  }
}
