import { Client, type ClientDependencies } from "./client.ts";

/** Talks in one session: one message after the other, and now and then a word to stop. */
export class Talker extends Client {
  protected readonly pauseMs = 350;
  readonly #sessionKey: string;

  constructor(sessionKey: string, dependencies: ClientDependencies) {
    super({ ...dependencies, chance: dependencies.chance.fork(sessionKey) });
    this.#sessionKey = sessionKey;
  }

  protected async step(): Promise<void> {
    const sessionKey = this.#sessionKey;
    const path = `/v1/sessions/${sessionKey}`;
    switch (
      this.chance.weighted({ say: 20, steer: 5, collect: 5, interrupt: 2, stop: 1, stopall: 1, reset: 1 })
    ) {
      case "stop":
        return this.#stopped(await this.ask(`${path}/messages`, { message: "/stop" }));
      case "stopall":
        return this.#stopped(await this.ask(`${path}/stopall`, {}));
      case "reset":
        return this.#stopped(await this.ask(`${path}/reset`, {}));
      case "steer":
        return this.#say({ mode: "steer" });
      case "collect":
        return this.#say({ mode: "collect" });
      case "interrupt":
        return this.#say({ mode: "interrupt" });
      case "say":
        return this.#say({});
    }
  }

  async #say(mode: { mode?: string }): Promise<void> {
    const sessionKey = this.#sessionKey;
    const text = this.ledger.marker(sessionKey);
    const json = { message: text, agentId: "talker", ...mode };
    const answered = await this.ask(`/v1/sessions/${sessionKey}/messages`, json);
    if (answered?.status === 202)
      this.note({ what: "message", taskId: answered.body.taskId, sessionKey, text });
  }

  #stopped(answered: Awaited<ReturnType<Client["ask"]>>): void {
    if (answered?.status !== 200) return;
    for (const taskId of [...answered.body.stopped, ...answered.body.cancelled])
      this.note({ what: "cancelled", taskId });
  }
}
