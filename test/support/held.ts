import { settle } from "../../src/testing/manual-clock.ts";
import { Latch } from "../../src/testing/signals.ts";

/** An agent whose tasks run until the test lets them end, in the order they started. */
export class Held {
  readonly running: Latch[] = [];
  started = 0;

  readonly executor = async (): Promise<void> => {
    const latch = new Latch();
    this.running.push(latch);
    this.started += 1;
    await latch.opened;
  };

  async end(count = 1): Promise<void> {
    for (const latch of this.running.splice(0, count)) latch.open();
    await settle();
  }

  async startedAfterAWhile(): Promise<number> {
    await settle();
    return this.started;
  }
}
