import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import type { Timer } from "../../src/model/clock.ts";
import type { Chance } from "../chaos/chance.ts";

/** More steps than this at one moment mean an endless loop. */
const AT_ONCE_MAX = 200_000;

/** Read before a test could replace it: the one turn of the real event loop that ends everything a step set off. */
const realTurn = setImmediate;

/** Who acts right now; undefined outside of a simulation. */
export const acting = new AsyncLocalStorage<Actor>();

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly what: string;
  readonly run: () => void;
  cancelled: boolean;
}

/**
 * The time of a simulated world and everything that is yet to happen in it. One thing happens after the other; whose turn
 * it is of those that could go at the same moment is decided by chance, which is what makes one seed differ from another.
 */
export class Agenda {
  readonly #chance: Chance;
  readonly #actors: Actor[] = [];
  readonly #hash = createHash("sha256");
  #now = 0;
  #atOnce = 0;
  steps = 0;
  /** Called with each step. */
  onStep: ((line: string) => void) | null = null;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** Milliseconds since the world began. */
  get now(): number {
    return this.#now;
  }

  /** Stands for all that has happened so far, and in which order. */
  get trace(): string {
    return this.#hash.copy().digest("hex");
  }

  actor(name: string): Actor {
    const actor = new Actor(this, name, this.#chance.fork(name));
    this.#actors.push(actor);
    return actor;
  }

  remove(actor: Actor): void {
    this.#actors.splice(this.#actors.indexOf(actor), 1);
  }

  /** Goes on until `done`, or until so much time has passed. Answers whether it is done. */
  async go(done: () => boolean, forMs: number): Promise<boolean> {
    const end = this.#now + forMs;
    while (!done()) {
      const actor = this.#choose(end);
      if (actor === null) {
        this.#now = end;
        return done();
      }
      this.#step(actor);
      // Whatever promises it resolved are followed to their end before anything else happens.
      await new Promise<void>((resolve) => realTurn(resolve));
    }
    return true;
  }

  #step(actor: Actor): void {
    const { at, what, run } = actor.take();
    if (at > this.#now) {
      this.#now = at;
      this.#atOnce = 0;
    } else if (++this.#atOnce > AT_ONCE_MAX) {
      throw new Error(`${actor.name} goes round in circles: ${what}`);
    }
    this.steps += 1;
    const line = `${this.#now} ${actor.name} ${what}\n`;
    this.#hash.update(line);
    this.onStep?.(line);
    acting.run(actor, run);
  }

  /** One of those whose turn is next; null: nothing happens until `end`. */
  #choose(end: number): Actor | null {
    let next = end;
    let first: Actor[] = [];
    for (const actor of this.#actors) {
      const at = Math.max(actor.nextAt, this.#now);
      if (at > next || at > end) continue;
      if (at < next) first = [];
      next = at;
      first.push(actor);
    }
    if (first.length === 0) return null;
    return first.length === 1 ? (first[0] as Actor) : this.#chance.pick(first);
  }
}

/** An actor: a process, the network, the clients outside. */
export class Actor {
  readonly name: string;
  readonly chance: Chance;
  readonly agenda: Agenda;
  /** The next one last. */
  readonly #entries: Entry[] = [];
  #planned = 0;
  #state: "awake" | "asleep" | "gone" = "awake";

  constructor(agenda: Agenda, name: string, chance: Chance) {
    this.agenda = agenda;
    this.name = name;
    this.chance = chance;
  }

  get isAwake(): boolean {
    return this.#state === "awake";
  }

  get isGone(): boolean {
    return this.#state === "gone";
  }

  /** When it acts next; Infinity: not by itself. */
  get nextAt(): number {
    if (this.#state !== "awake") return Number.POSITIVE_INFINITY;
    while (this.#entries.at(-1)?.cancelled === true) this.#entries.pop();
    return this.#entries.at(-1)?.at ?? Number.POSITIVE_INFINITY;
  }

  /** What is planned for the same moment happens in the order it was planned. */
  plan(delayMs: number, what: string, run: () => void): Timer {
    const at = this.agenda.now + Math.max(delayMs, 0);
    const entry = { at, order: this.#planned++, what, run, cancelled: false };
    if (this.#state !== "gone") this.#entries.splice(this.#placeOf(entry), 0, entry);
    return {
      cancel: () => {
        entry.cancelled = true;
      },
    };
  }

  take(): Entry {
    const entry = this.#entries.pop();
    if (entry === undefined) throw new Error(`${this.name} has nothing to do.`);
    return entry;
  }

  /** Does nothing until it wakes: what is due meanwhile is then late. */
  sleep(): void {
    if (this.#state === "awake") this.#state = "asleep";
  }

  wake(): void {
    if (this.#state === "asleep") this.#state = "awake";
  }

  /** Does nothing any more, from this moment on. */
  end(): void {
    this.#state = "gone";
    this.#entries.length = 0;
    this.agenda.remove(this);
  }

  #placeOf({ at, order }: Entry): number {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#entries[middle] as Entry;
      if (other.at > at || (other.at === at && other.order > order)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
