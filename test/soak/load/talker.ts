import { User } from "./user.ts";

/** Talks in a few sessions that stay, and in some that are never seen again. */
export class Talker extends User {
  protected readonly everyMs = 100;

  protected async step(): Promise<void> {
    const passing = this.chance.oneIn(5);
    const key = passing ? `once-${process.hrtime.bigint()}` : `user-${this.chance.between(1, 10)}`;
    switch (this.chance.weighted({ say: 40, interrupt: 2, stop: 2, stopAll: 1, reset: 1, look: 4 })) {
      case "say":
        await this.rota.sessions.send(key, { message: "and then?", agentId: "talker" });
        this.tally.accepted += 1;
        return;
      case "interrupt":
        await this.rota.sessions.send(key, { message: "no, wait", agentId: "talker", mode: "interrupt" });
        this.tally.accepted += 1;
        return;
      case "stop":
        return void (await this.rota.sessions.stop(key));
      case "stopAll":
        return void (await this.rota.sessions.stopAll(key));
      case "reset":
        return void (await this.rota.sessions.reset(key));
      case "look":
        return void (await this.rota.sessions.list({ limit: 20 }));
    }
  }
}
