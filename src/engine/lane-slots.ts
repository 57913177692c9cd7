import type { Finish } from "./completer.ts";

/** Tasks claimed from one lane in one transaction: more would hold it, and everybody else, up for long. */
const CLAIM_MAX = 200;

/** How many tasks of one lane this process runs, and whether it is worth asking for more. */
interface Slots {
  concurrency: number;
  /** Attempts the storage believes this process runs: their ends may be decided, but are not yet written. */
  held: number;
  /** Whether the lane may have something to start: false once it gave less than it was asked for. */
  hungry: boolean;
  /** How often somebody said there may be work; tells a wake-up during a claim from one before it. */
  wakes: number;
}

export interface LaneClaim {
  readonly lane: string;
  readonly limit: number;
  readonly wakes: number;
}

/** The slots of this process, lane by lane. */
export class LaneSlots {
  readonly #slots = new Map<string, Slots>();
  /** How many claims there were: each begins with another lane, so that none is last whenever few may be claimed. */
  #turn = 0;

  constructor(concurrency: Readonly<Record<string, number>>) {
    this.configure(concurrency);
  }

  /**
   * Sets how many tasks of each lane run here at once. Where more run already, they go on, and nothing starts until
   * they are fewer. A lane that is not named stays as it is, so that what waits in it is still run.
   */
  configure(concurrency: Readonly<Record<string, number>>): void {
    for (const [lane, limit] of Object.entries(concurrency)) {
      const slots = this.#slots.get(lane);
      if (slots === undefined) this.#slots.set(lane, { concurrency: limit, held: 0, hungry: true, wakes: 0 });
      else slots.concurrency = limit;
    }
  }

  /** How many slots there are in each lane, taken or not. */
  get capacity(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#slots].map(([lane, { concurrency }]) => [lane, concurrency]));
  }

  /** The lanes that this process runs tasks of. */
  get lanes(): string[] {
    return [...this.#slots].filter(([, { concurrency }]) => concurrency > 0).map(([lane]) => lane);
  }

  /** How many slots of a lane are taken here; null when this process does not run it. */
  load(lane: string): { readonly running: number; readonly concurrency: number } | null {
    const slots = this.#slots.get(lane);
    return slots === undefined ? null : { running: slots.held, concurrency: slots.concurrency };
  }

  /** Whether some lane has a free slot and may have something for it. */
  get hungry(): boolean {
    for (const slots of this.#slots.values()) if (slots.hungry && slots.held < slots.concurrency) return true;
    return false;
  }

  /** There may be work in this lane. Answers whether a slot is free to take it. */
  wake(lane: string): boolean {
    const slots = this.#slots.get(lane);
    if (slots === undefined) return false;
    slots.hungry = true;
    slots.wakes += 1;
    return slots.held < slots.concurrency;
  }

  wakeAll(): void {
    for (const lane of this.#slots.keys()) this.wake(lane);
  }

  /** What to ask for in the transaction that writes these ends, whose slots are free again in it: of `max` tasks in all. */
  claims(finishes: readonly Finish[], max = Number.POSITIVE_INFINITY): LaneClaim[] {
    const freed = countByLane(finishes);
    const claims: LaneClaim[] = [];
    for (const [lane, slots] of this.#slots) {
      const freedHere = freed.get(lane) ?? 0;
      // An end makes room for the agent and the lane, so that work that had to wait may start now.
      if (!slots.hungry && freedHere === 0) continue;
      const limit = Math.min(slots.concurrency - slots.held + freedHere, CLAIM_MAX);
      if (limit > 0 && max > 0) claims.push({ lane, limit, wakes: slots.wakes });
      // What may not be claimed now is asked for as soon as it may.
      else if (limit > 0) slots.hungry = true;
    }
    return this.#inTurn(claims, max);
  }

  /** Where not all may be claimed, another lane is the first each time. */
  #inTurn(claims: LaneClaim[], max: number): LaneClaim[] {
    if (claims.length < 2 || claims.reduce((sum, { limit }) => sum + limit, 0) <= max) return claims;
    this.#turn = (this.#turn + 1) % claims.length;
    return [...claims.slice(this.#turn), ...claims.slice(0, this.#turn)];
  }

  took(lane: string): void {
    const slots = this.#slots.get(lane);
    if (slots !== undefined) slots.held += 1;
  }

  freed(lane: string): void {
    const slots = this.#slots.get(lane);
    if (slots !== undefined) slots.held -= 1;
  }

  /**
   * A lane that gave less than it was asked for has nothing more, unless somebody woke it while it was asked, or no more may be
   * claimed: `isCut`.
   */
  answered(claim: LaneClaim, given: number, { isCut = false } = {}): void {
    const slots = this.#slots.get(claim.lane);
    if (slots !== undefined) slots.hungry = isCut || given >= claim.limit || slots.wakes !== claim.wakes;
  }
}

function countByLane(finishes: readonly Finish[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { lane } of finishes) counts.set(lane, (counts.get(lane) ?? 0) + 1);
  return counts;
}
