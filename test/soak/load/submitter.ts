import type { SubmitInput } from "../../../src/model/input/submit-input.ts";
import { WORKERS } from "../settings.ts";
import { User } from "./user.ts";

/** Submits tasks of all kinds one by one, and takes some of them back. */
export class Submitter extends User {
  protected readonly everyMs = 120;
  #made = 0;
  #last: string[] = [];

  protected async step(): Promise<void> {
    const input = this.#task();
    const begun = performance.now();
    const { taskId } = await this.rota.tasks.submit(input);
    this.tally.submit.add(performance.now() - begun);
    this.tally.accepted += 1;
    this.#last = [...this.#last.slice(-9), taskId];
    if (this.chance.oneIn(15)) await this.rota.tasks.cancel(this.chance.pick(this.#last));
    if (this.chance.oneIn(60)) await this.rota.tasks.retry(this.chance.pick(this.#last));
  }

  #task(): SubmitInput {
    this.#made += 1;
    const common = { agentId: this.chance.pick(WORKERS), timeout: 5_000 };
    const soon = (mostMs: number) => new Date(Date.now() + this.chance.between(1_000, mostMs));
    const payload = { n: this.#made, words: "some words ".repeat(this.chance.between(1, 40)) };
    switch (
      this.chance.weighted({
        plain: 12,
        called: 4,
        once: 3,
        later: 2,
        dependant: 2,
        slow: 1,
        hurried: 1,
        known: 1,
        echo: 2,
      })
    ) {
      case "plain":
        return { ...common, payload, metadata: { sentAt: Date.now() } };
      case "called":
        return { ...common, instruction: "call me back", callbackUrl: this.callbackUrl };
      case "once":
        // Agents that are met once must leave nothing behind.
        return { agentId: `once-${process.hrtime.bigint()}`, payload };
      case "later":
        return { ...common, payload, runAt: soon(2_000) };
      case "dependant":
        return { ...common, payload, dependsOn: this.#last.slice(-2) };
      case "slow":
        return { ...common, payload, metadata: { slow: true }, preemptible: true, priority: "low" };
      case "hurried":
        return { ...common, payload, priority: "critical", deadline: soon(3_000) };
      case "known":
        return { ...common, payload, idempotencyKey: `${Date.now()}-${this.chance.next()}` };
      case "echo":
        return { message: "hello", sessionKey: `passing-${this.chance.between(1, 50)}` };
    }
  }
}
