import type { Rota } from "../../src/interface/rota.ts";
import type { Clock } from "../../src/model/clock.ts";
import type { Delivery } from "../../src/model/delivery.ts";
import { openOracle } from "../../src/storage/oracle/connection/open.ts";
import type { RunRecord, Storage } from "../../src/storage/storage.ts";
import { Chance } from "../chaos/chance.ts";
import type { Mutable, Strike } from "../chaos/history.ts";
import { Ledger } from "../chaos/ledger.ts";
import { openMemory } from "../support/storages.ts";
import { type Actor, Agenda } from "./agenda.ts";
import { Agents } from "./agents.ts";
import { type Climate, chooseClimate, fairWeather } from "./climate.ts";
import { SimulatedProcess } from "./process.ts";
import { Receiver } from "./receiver.ts";
import { LOCAL_AGENTS, type LocalAgent } from "./settings.ts";
import type { countGuests, Guest, readGuests } from "./tenants.ts";
import { Witness } from "./witness.ts";

/** What the storage's clock says when the world begins. */
export const BEGAN_AT = Date.UTC(2026, 0, 1);

/** No request waits longer than this for a response. */
const ANSWER_MS = 180_000;

/** What processes can share: the model of a storage, and a real one that lives in memory. */
const STORAGES = {
  oracle: async (clock: Clock) => openOracle({ clock }),
  sqlite: (clock: Clock) => openMemory(clock),
} as const;
export type SimulatedStorage = keyof typeof STORAGES;

export interface WorldParams {
  readonly seed: number;
  readonly storage: SimulatedStorage;
  /** Makes the storage another one. */
  readonly spoil: (storage: Storage) => Storage;
}

/** One storage, the processes that share it, the agents that do their work, and the clients that use it. */
export class World {
  readonly chance: Chance;
  readonly agenda: Agenda;
  /** On its time, what was sent arrives. */
  readonly network: Actor;
  /** On its time, clients act and things go wrong. */
  readonly outside: Actor;
  readonly agents: Agents;
  readonly receiver: Receiver;
  readonly ledger = new Ledger();
  readonly witness: Witness;
  readonly strikes: Strike[] = [];
  /** Whether processes may differ in their agents: only one program at a time can open an SQLite database. */
  readonly isShared: boolean;
  /** The agents of only some processes that a process has made known: no task may name others yet. */
  readonly served = new Set<LocalAgent>();
  /** What was found wrong on the way. */
  readonly complained: string[] = [];
  /** The tenants besides the one that is always there, and what each sees at the end. */
  guests: readonly Guest[] = [];
  seenByGuests: Awaited<ReturnType<typeof readGuests>> = [];
  /** What the statistics over time say of each. */
  countedOfGuests: Awaited<ReturnType<typeof countGuests>> = [];
  /** The callbacks, as they are known at the end. */
  deliveries: readonly Delivery[] = [];
  /** The runs, as they are stored at the end. */
  runs: readonly RunRecord[] = [];
  /** All there ever were. */
  readonly all: SimulatedProcess[] = [];
  /** How it is now. */
  climate: Climate;
  /** How bad it gets. */
  readonly worst: Climate;
  #storage: Storage | null = null;
  #processes: SimulatedProcess[] = [];
  /** How far the storage's clock is off, and how far it ever was. */
  #clockOff = { ms: 0, mostMs: 0 };

  static async open({ seed, storage, spoil }: WorldParams): Promise<World> {
    const world = new World(seed, storage === "oracle");
    world.#storage = spoil(await STORAGES[storage](world.clock));
    return world;
  }

  private constructor(seed: number, isShared: boolean) {
    this.isShared = isShared;
    this.chance = new Chance(seed);
    this.agenda = new Agenda(this.chance.fork("turns"));
    this.network = this.agenda.actor("network");
    this.outside = this.agenda.actor("outside");
    this.worst = chooseClimate(this.chance.fork("climate"));
    this.climate = fairWeather(this.worst);
    this.agents = new Agents(() => this.climate);
    this.receiver = new Receiver({ climate: () => this.climate, network: this.network });
    this.witness = new Witness({
      now: () => this.agents.now,
      newestEvent: async () => (await this.storage.events.range()).newest,
    });
  }

  get storage(): Storage {
    if (this.#storage === null) throw new Error("This world has no storage yet.");
    return this.#storage;
  }

  /** The storage's. */
  get clock(): Clock {
    return {
      now: () => Math.floor(BEGAN_AT + this.agenda.now + this.#clockOff.ms),
      monotonic: () => this.agenda.now,
      setTimer: (delayMs, callback) => this.outside.plan(delayMs, "timer", callback),
    };
  }

  /** The processes that have an agent, of agents that not all have. */
  get homes(): Readonly<Record<string, readonly string[]>> {
    if (!this.isShared) return {};
    return Object.fromEntries(
      LOCAL_AGENTS.map((agent) => [
        agent,
        this.all.filter(({ localAgent }) => localAgent === agent).map(({ name }) => name),
      ]),
    );
  }

  /** Those that have begun to start and have not ended. */
  get processes(): readonly SimulatedProcess[] {
    return this.#processes;
  }

  /** Those that take requests, though they may sleep. */
  get open(): readonly SimulatedProcess[] {
    return this.#processes.filter(({ rota }) => rota !== null);
  }

  start(): SimulatedProcess {
    const process = new SimulatedProcess(this, this.all.length);
    this.all.push(process);
    this.#processes.push(process);
    return process;
  }

  startAnother(afterMs: number): void {
    this.outside.plan(afterMs, "a process is started", () => this.start());
  }

  ended(process: SimulatedProcess): void {
    this.#processes = this.#processes.filter((other) => other !== process);
  }

  /** The process could not act from here on, until what this answers is called. */
  noteStrike(process: string): () => void {
    const strike: Mutable<Strike> = { process, from: this.agents.now, until: null };
    this.strikes.push(strike);
    return () => {
      strike.until = this.agents.now;
    };
  }

  /** Lets so much time pass. */
  async pass(ms: number): Promise<void> {
    await this.agenda.go(() => false, ms);
  }

  /** Asks a process, and lets the world go on until it has answered. */
  async answer<Answer>(process: SimulatedProcess, request: (rota: Rota) => Promise<Answer>): Promise<Answer> {
    let isOver = false;
    const answered = process.ask("a question", request).finally(() => {
      isOver = true;
    });
    answered.catch(() => {});
    if (await this.agenda.go(() => isOver, ANSWER_MS)) return answered;
    throw new Error(`${process.name} does not answer.`);
  }

  /** Lets the world continue until a process accepts requests. */
  async anyOpen(): Promise<SimulatedProcess> {
    await this.agenda.go(() => this.open.length > 0, ANSWER_MS);
    return this.chance.pick(this.open);
  }

  /** As when the database's machine corrects its clock, or another takes over whose clock differs. */
  setClock(offMs: number): void {
    this.#clockOff = { ms: offMs, mostMs: Math.max(this.#clockOff.mostMs, offMs) };
    for (const { link } of this.#processes) link.trouble();
  }

  complain(said: string): void {
    this.complained.push(said);
  }

  /** From now on things go wrong. */
  darken(): void {
    this.climate = this.worst;
  }

  /** From now on all goes well. */
  clearUp(): void {
    this.climate = fairWeather(this.worst);
    this.agents.strike(null);
    // Some clocks stay behind: what is due then waits for its moment once more.
    if (this.chance.oneIn(2)) this.setClock(this.#clockOff.mostMs);
    for (const { actor, link } of this.#processes) {
      actor.wake();
      link.trouble();
      link.mend();
    }
  }
}
