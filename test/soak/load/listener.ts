import { isTerminal } from "../../../src/model/task-state.ts";
import { User } from "./user.ts";

/** Follows all events from beginning to end, and records how late they come. */
export class Listener extends User {
  protected readonly everyMs = 1_000;

  protected async step(): Promise<void> {
    for await (const { type, state, timestamp } of this.rota.events({ signal: this.stop })) {
      this.tally.events += 1;
      this.tally.lag.add(Date.now() - Date.parse(timestamp));
      if (isTerminal(state) && type !== "batch.completed") this.tally.ended += 1;
    }
  }
}

/** Opens streams and leaves them again: some after an event, some before there is one. */
export class Passer extends User {
  protected readonly everyMs = 400;

  protected async step(): Promise<void> {
    const signal = AbortSignal.timeout(this.chance.between(20, 800));
    const stream = this.chance.oneIn(3)
      ? this.rota.notifications({ signal })
      : this.rota.events({ signal, agentId: "worker-1" });
    for await (const _ of stream) if (this.chance.oneIn(4)) break;
  }
}
