import type { SubmitInput } from "../../../src/model/input/submit-input.ts";
import { Receiver } from "../receiver.ts";
import { Client } from "./client.ts";

const QUICK = { backoffMs: 20, backoffMultiplier: 2, maxBackoffMs: 300, jitter: 0.5 };

/** What it submits, and how often next to the others. */
const KINDS = {
  instruction: 6,
  payload: 3,
  message: 2,
  delayed: 2,
  deadline: 2,
  critical: 3,
  preemptible: 4,
  dependant: 4,
  said: 1,
  local: 3,
} as const;

/** So few that tasks of all kinds wait for each other. */
export const KEYS = ["c1", "c2", "c3"];

/** Submits tasks of all kinds one by one, each until it knows that it was accepted. */
export class Submitter extends Client {
  protected step(): void {
    const marker = this.ledger.marker("submit");
    const callback = this.chance.oneIn(3) ? { callbackUrl: Receiver.url } : {};
    const key = this.chance.oneIn(3) ? { concurrencyKey: this.chance.pick(KEYS) } : {};
    const input = {
      ...this.#task(marker),
      ...callback,
      ...key,
      metadata: { marker },
      idempotencyKey: marker,
    };
    this.askUntilAnswered(
      `submit ${marker}`,
      (rota) => rota.tasks.submit(input),
      ({ taskId }) => this.note({ what: "task", taskId, marker }),
    );
  }

  #task(marker: string): SubmitInput {
    const timeout = this.chance.between(500, 4_000);
    const soon = (mostMs: number) =>
      new Date(this.world.clock.now() + this.chance.between(10, mostMs)).toISOString();
    const retryPolicy = { ...QUICK, maxRetries: this.chance.between(0, 6) };
    const worker = { agentId: "worker", timeout };
    const helper = { agentId: "helper", timeout };
    const tasks: Record<keyof typeof KINDS, () => SubmitInput> = {
      instruction: () => ({ ...worker, instruction: marker, retryPolicy }),
      payload: () => ({ ...helper, payload: { marker } }),
      message: () => ({ ...worker, message: marker }),
      delayed: () => ({ ...worker, payload: marker, runAt: soon(20_000) }),
      deadline: () => ({ ...helper, instruction: marker, deadline: soon(6_000), retryPolicy }),
      critical: () => ({ ...helper, payload: marker, priority: "critical" }),
      preemptible: () => ({
        ...helper,
        instruction: marker,
        priority: "low",
        preemptible: true,
        retryPolicy,
      }),
      dependant: () => ({ ...worker, payload: marker, dependsOn: this.#some(), retryPolicy }),
      said: () => ({ agentId: "talker", message: marker, timeout, sessionKey: "in-order" }),
      local: () => ({
        agentId: this.chance.pick([...this.world.served]),
        payload: marker,
        timeout,
        retryPolicy,
      }),
    };
    return tasks[this.chance.weighted(KINDS)]();
  }

  /** One or two of the tasks that were accepted lately. */
  #some(): string[] {
    const latest = this.ledger.accepted.slice(-20);
    if (latest.length === 0) return [];
    return [...new Set([this.chance.pick(latest), this.chance.pick(latest)])];
  }
}
