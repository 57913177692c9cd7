import { Client } from "./client.ts";

const QUICK = { backoffMs: 20, backoffMultiplier: 2, maxBackoffMs: 300 };

/** So few that tasks of all kinds wait for each other. */
export const KEYS = ["c1", "c2", "c3"];

/** Submits tasks of all kinds one by one, each until it knows that it was accepted. */
export class Submitter extends Client {
  protected readonly pauseMs = 120;

  protected async step(): Promise<void> {
    const marker = this.ledger.marker("submit");
    const json = {
      ...this.#task(marker),
      ...this.callbackUrl("callbackUrl", 3),
      ...(this.chance.oneIn(3) ? { concurrencyKey: this.chance.pick(KEYS) } : {}),
      metadata: { marker },
      idempotencyKey: marker,
    };
    const answered = await this.askUntilAnswered("/tasks", json);
    if (answered?.status === 202) this.note({ what: "task", taskId: answered.body.taskId, marker });
  }

  #task(marker: string): Record<string, unknown> {
    const timeout = this.chance.between(1_000, 2_000);
    const soon = (leastMs: number, mostMs: number) =>
      new Date(Date.now() + this.chance.between(leastMs, mostMs)).toISOString();
    const kinds = {
      instruction: () => ({
        agentId: "worker",
        instruction: marker,
        timeout,
        retryPolicy: { ...QUICK, maxRetries: 6 },
      }),
      payload: () => ({ agentId: "helper", payload: { marker }, timeout }),
      message: () => ({ agentId: "worker", message: marker, timeout }),
      echo: () => ({ payload: marker, runAt: soon(50, 1_500) }),
      deadline: () => ({ agentId: "helper", instruction: marker, timeout, deadline: soon(500, 4_000) }),
      critical: () => ({ agentId: "helper", payload: marker, timeout, priority: "critical" }),
      preemptible: () => ({
        agentId: "helper",
        instruction: marker,
        timeout,
        priority: "low",
        preemptible: true,
      }),
      dependant: () => ({
        agentId: "worker",
        payload: marker,
        timeout,
        dependsOn: this.#some(),
        retryPolicy: { ...QUICK, maxRetries: 3 },
      }),
      said: () => ({ agentId: "talker", message: marker, timeout, sessionKey: "in-order" }),
    };
    const weights = {
      instruction: 6,
      payload: 3,
      message: 2,
      echo: 2,
      deadline: 1,
      critical: 1,
      preemptible: 2,
      dependant: 4,
      said: 1,
    };
    return kinds[this.chance.weighted(weights)]();
  }

  /** One or two of the tasks that were accepted lately. */
  #some(): string[] {
    const latest = this.ledger.accepted.slice(-20);
    if (latest.length === 0) return [];
    return [...new Set([this.chance.pick(latest), this.chance.pick(latest)])];
  }
}
