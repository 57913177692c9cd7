import { settle } from "../../src/testing/manual-clock.ts";
import { Gate } from "../../src/testing/signals.ts";

/** An agent whose tasks run until the test lets them end, in the order they started. */
export class Held {
  readonly running: Gate[] = [];
  started = 0;

  readonly executor = async (): Promise<void> => {
    const gate = new Gate();
    this.running.push(gate);
    this.started += 1;
    await gate.opened;
  };

  async end(count = 1): Promise<void> {
    for (const gate of this.running.splice(0, count)) gate.open();
    await settle();
  }

  async startedAfterAWhile(): Promise<number> {
    await settle();
    return this.started;
  }
}
