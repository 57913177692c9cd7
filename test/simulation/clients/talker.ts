import type { StoppedTasks } from "../../../src/interface/sessions.ts";
import type { SessionMode } from "../../../src/model/session.ts";
import type { World } from "../world.ts";
import { Client } from "./client.ts";

/** What it says, and how often next to the others. */
const WORDS = { say: 16, steer: 6, collect: 6, interrupt: 2, stop: 1, stopAll: 1, reset: 1 } as const;

/** Talks in one session: one message after the other, and now and then a word to stop. */
export class Talker extends Client {
  readonly #sessionKey: string;

  constructor(world: World, sessionKey: string) {
    super(world, sessionKey);
    this.#sessionKey = sessionKey;
  }

  protected step(): void {
    if (!this.chance.oneIn(3)) return;
    const key = this.#sessionKey;
    const stopped = (answer: Partial<StoppedTasks>) => this.#stopped(answer);
    const words: Record<keyof typeof WORDS, () => void> = {
      say: () => this.#say({}),
      // Where two may run, a message that one of them took is passed by those behind it.
      steer: () => this.#say(key === "side-by-side" ? {} : { mode: "steer" }),
      collect: () => this.#say({ mode: "collect" }),
      interrupt: () => this.#say({ mode: "interrupt" }),
      stop: () => this.ask("/stop", (rota) => rota.sessions.send(key, { message: "/stop" }), stopped),
      stopAll: () => this.ask("/stopall", (rota) => rota.sessions.stopAll(key), stopped),
      reset: () => this.ask("reset a session", (rota) => rota.sessions.reset(key), stopped),
    };
    words[this.chance.weighted(WORDS)]();
  }

  #say(mode: { mode?: SessionMode }): void {
    const sessionKey = this.#sessionKey;
    const text = this.ledger.marker(sessionKey);
    this.ask(
      `say ${text}`,
      (rota) => rota.sessions.send(sessionKey, { message: text, agentId: "talker", ...mode }),
      ({ taskId = "" }) => this.note({ what: "message", taskId, sessionKey, text }),
    );
  }

  #stopped({ stopped = [], cancelled = [] }: Partial<StoppedTasks>): void {
    for (const taskId of [...stopped, ...cancelled]) this.note({ what: "cancelled", taskId });
  }
}
