import { setTimeout as delay } from "node:timers/promises";
import { RotaClient } from "../../../src/client/index.ts";
import { RotaError } from "../../../src/model/errors.ts";
import type { Chance } from "../../chaos/chance.ts";
import type { Tally } from "../tally.ts";

export interface Circumstances {
  readonly url: string;
  readonly callbackUrl: string;
  readonly chance: Chance;
  readonly tally: Tally;
  /** No user begins anything new after this time. */
  readonly stop: AbortSignal;
}

/** A simulated user: makes one request after the other, at a constant pace. */
export abstract class User {
  protected readonly rota: RotaClient;
  protected readonly chance: Chance;
  protected readonly tally: Tally;
  protected readonly callbackUrl: string;
  protected readonly stop: AbortSignal;

  constructor({ url, callbackUrl, chance, tally, stop }: Circumstances, number = 0) {
    this.rota = new RotaClient({ url, retry: false });
    this.chance = chance.fork(`${this.constructor.name} ${number}`);
    this.tally = tally;
    this.callbackUrl = callbackUrl;
    this.stop = stop;
  }

  /** From the beginning of one step to the beginning of the next, on average. */
  protected abstract readonly everyMs: number;

  protected abstract step(): Promise<void>;

  async run(): Promise<void> {
    // Counted from the start and not from the last step: slower responses must not reduce the load.
    for (let due = performance.now(); !this.stop.aborted; ) {
      due += this.everyMs * (0.5 + this.chance.next());
      await this.#step();
      // What was missed while the server hung is not made up for: that would be a flood.
      due = Math.max(due, performance.now() - 1_000);
      await delay(Math.max(due - performance.now(), 0));
    }
  }

  async #step(): Promise<void> {
    try {
      await this.step();
    } catch (error) {
      // Other users may have ended or deleted it, or filled the queue: such responses are expected.
      const expected = error instanceof RotaError && /conflict|not_found|queue_full/.test(error.code);
      if (expected) this.tally.refused += 1;
      else this.tally.surprise(error);
    }
  }
}
