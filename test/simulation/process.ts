import type { Rota } from "../../src/interface/rota.ts";
import { resolveSettings } from "../../src/library/settings/settings.ts";
import type { Clock } from "../../src/model/clock.ts";
import { joinRota } from "../../src/rota.ts";
import { RecordingLog } from "../support/recording-log.ts";
import type { Actor } from "./agenda.ts";
import { Link } from "./link.ts";
import { AGENT_IDS, LOCAL_AGENTS, type LocalAgent, localAgentOf, optionsIn } from "./settings.ts";
import { BEGAN_AT, type World } from "./world.ts";

const DRAIN_GRACE_MS = 2_000;
const WAKING_MS = 1;
const START_AGAIN_MS = 1_000;

/** One process that runs a Rota, from its start to its end. */
export class SimulatedProcess {
  readonly actor: Actor;
  readonly link: Link;
  readonly log = new RecordingLog();
  readonly #world: World;
  readonly #number: number;
  /** Null: it does not take requests yet, or no longer. */
  rota: Rota | null = null;
  /** How far its wall clock is off. */
  #skewMs: number;

  constructor(world: World, number: number) {
    const { agenda, network, storage, witness } = world;
    const climate = () => world.climate;
    this.#world = world;
    this.#number = number;
    this.actor = agenda.actor(`process-${number}`);
    this.link = new Link({ storage, network, process: this.actor, climate, witness });
    this.#skewMs = this.actor.chance.between(-climate().skewMs, climate().skewMs);
    this.actor.plan(0, "starts", () => void this.#start());
  }

  get name(): string {
    return this.actor.name;
  }

  /** The agent that only every other process has. */
  get localAgent(): LocalAgent {
    return localAgentOf(this.#number);
  }

  /** Since when it could do all that it has to; Infinity: it cannot right now. */
  get calmSince(): number {
    return this.rota !== null && this.actor.isAwake ? this.link.calmSince : Number.POSITIVE_INFINITY;
  }

  /** As `kill -9` does it. */
  crash(): void {
    this.rota = null;
    this.actor.end();
    this.link.close();
    this.#world.agents.gone(this.name);
    this.#world.receiver.gone(this.name);
    this.#world.ended(this);
  }

  /** As SIGSTOP and SIGCONT do it: its clocks go on meanwhile. */
  pause(forMs: number): void {
    const { outside } = this.#world;
    const overcome = this.#world.noteStrike(this.name);
    this.actor.sleep();
    outside.plan(forMs, `${this.name} wakes`, () => {
      this.actor.wake();
      this.link.trouble();
      // What is overdue comes first.
      outside.plan(WAKING_MS, `${this.name} is awake`, overcome);
    });
  }

  /** Stands still while the answer to such an operation is on its way to it. */
  stall(operation: string, forMs: number): void {
    this.link.inTheMidst(operation, () => this.pause(forMs));
  }

  /** An operation, or a part of the storage, fails for a while. */
  ail(what: string, forMs: number): void {
    this.link.ail(what);
    this.#world.outside.plan(forMs, `${this.name} can again`, () => this.link.heal(what));
  }

  cut(forMs: number): void {
    this.link.cut();
    this.#world.outside.plan(forMs, `${this.name} is reached again`, () => this.link.mend());
  }

  jump(byMs: number): void {
    this.#skewMs += byMs;
  }

  /** As SIGTERM does it. */
  leave(): void {
    const { rota } = this;
    this.rota = null;
    this.actor.plan(0, "leaves", () => void rota?.stop({ graceMs: DRAIN_GRACE_MS }).then(() => this.crash()));
  }

  async #start(): Promise<void> {
    const { climate, agents } = this.#world;
    const { log, clock } = this;
    const random = () => this.actor.chance.next();
    const options = { ...optionsIn(climate), log, clock, random };
    try {
      const settings = resolveSettings(options, { clock });
      const rota = await joinRota({ options, settings, storage: this.link.storage });
      const executor = agents.executorIn(this.actor);
      const local = this.#world.isShared ? [this.localAgent] : LOCAL_AGENTS;
      for (const id of [...AGENT_IDS, ...local]) rota.agent(id, { ...options.agents?.[id], executor });
      await rota.start();
      for (const id of local) this.#world.served.add(id);
      this.link.trouble();
      this.rota = rota;
    } catch (error) {
      // It ends, and is started again as by a service manager.
      log.warn({ error }, "did not start");
      this.crash();
      this.#world.startAnother(START_AGAIN_MS);
    }
  }

  get clock(): Clock {
    const { actor } = this;
    return {
      now: () => Math.floor(BEGAN_AT + actor.agenda.now + this.#skewMs),
      monotonic: () => actor.agenda.now,
      setTimer: (delayMs, callback) => actor.plan(delayMs, "timer", callback),
    };
  }

  /** Does something in this process, when it next comes to it. */
  ask<Answer>(what: string, request: (rota: Rota) => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.actor.plan(0, what, () => {
        if (this.rota === null) reject(new Error("the process does not run"));
        else request(this.rota).then(resolve, reject);
      });
    });
  }
}
