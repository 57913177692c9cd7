import { slotsPerTenant } from "../../model/lane.ts";
import type { Claim, Slots as SlotCounts, TenantSlots } from "../../storage/storage.ts";
import type { Finish } from "./completer.ts";

/** Tasks claimed from one lane in one transaction: more would hold it, and everybody else, up for long. */
const CLAIM_MAX = 200;

/**
 * How long nothing is claimed from a lane that gave this process a task which it cannot execute: the first time, and at most. The
 * storage believes that it can, and would give it the same task again at once.
 */
const REST_MIN_MS = 100;
const REST_MAX_MS = 1_000;

/** How many tasks of one lane this process runs, and whether it is worth asking for more. */
interface Slots {
  concurrency: number;
  /** How many of them one tenant may hold while there is a second enabled tenant; null: no bound. */
  perTenant: number | null;
  /** Of `held`, how many each tenant has. */
  readonly heldBy: Map<string, number>;
  /** Attempts the storage believes this process runs: their ends may be decided, but are not yet written. */
  held: number;
  /** Whether the lane may have something to start: false once it gave less than it was asked for. */
  hungry: boolean;
  /** How often somebody said there may be work; tells a wake-up during a claim from one before it. */
  wakes: number;
  /** Nothing is claimed before this moment of the monotonic clock. */
  restsUntil: number;
  restMs: number;
}

export interface LaneClaim extends Claim {
  readonly wakes: number;
}

/** The bounds of a claim besides slots, by memory. */
export interface ClaimBounds {
  /** How many tasks may be claimed in all lanes together. */
  readonly claimsMax: number;
  /** Tenants whose tasks are not claimed now. */
  readonly overShare: ReadonlySet<string>;
}

const UNBOUNDED: ClaimBounds = { claimsMax: Number.POSITIVE_INFINITY, overShare: new Set() };

/** The slots of a lane by the tenant who has one. */
export interface SlotHolder {
  readonly lane: string;
  readonly tenant: string;
}

/** How many slots there are in each lane, and how many of them one tenant may hold, where that is bounded. */
export interface Capacity {
  readonly slots: SlotCounts;
  readonly perTenant: SlotCounts;
}

/** The slots of this process, lane by lane. */
export class LaneSlots {
  readonly #slots = new Map<string, Slots>();
  /** How many claims there were: each begins with another lane, so that none is last whenever few may be claimed. */
  #turn = 0;

  constructor(concurrency: SlotCounts, maxLaneShare: number) {
    this.configure(concurrency, maxLaneShare);
  }

  /**
   * Sets how many tasks of each lane run here at once. Where more run already, they go on, and nothing starts until
   * they are fewer. A lane that is not named keeps its number, so that what waits in it is still run. `maxLaneShare`: the
   * part of every lane that one tenant may hold.
   */
  configure(concurrency: SlotCounts, maxLaneShare: number): void {
    for (const [lane, limit] of Object.entries(concurrency)) {
      const slots = this.#slots.get(lane);
      if (slots !== undefined) slots.concurrency = limit;
      else {
        const none = {
          perTenant: null,
          heldBy: new Map(),
          held: 0,
          wakes: 0,
          restsUntil: Number.NEGATIVE_INFINITY,
          restMs: 0,
        };
        this.#slots.set(lane, { ...none, concurrency: limit, hungry: true });
      }
    }
    for (const slots of this.#slots.values())
      slots.perTenant = slotsPerTenant(slots.concurrency, maxLaneShare);
  }

  get capacity(): Capacity {
    const lanes = [...this.#slots];
    return {
      slots: Object.fromEntries(lanes.map(([lane, { concurrency }]) => [lane, concurrency])),
      perTenant: Object.fromEntries(
        lanes.flatMap(([lane, { perTenant }]) => (perTenant === null ? [] : [[lane, perTenant]])),
      ),
    };
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

  /** Milliseconds until a lane with a free slot may be claimed from; Infinity: no lane has a free slot. */
  hungryInMs(now: number): number {
    let first = Number.POSITIVE_INFINITY;
    for (const { hungry, held, concurrency, restsUntil } of this.#slots.values())
      if (hungry && held < concurrency) first = Math.min(first, Math.max(restsUntil - now, 0));
    return first;
  }

  /** The lane returned a task that this process cannot execute: no claims from it for a while, longer each time. */
  rest(lane: string, now: number): void {
    const slots = this.#slots.get(lane);
    if (slots === undefined) return;
    slots.hungry = true;
    // Tasks that were claimed together make it rest once.
    if (slots.restsUntil > now) return;
    const isAgain = now - slots.restsUntil < REST_MAX_MS;
    slots.restMs = isAgain ? Math.min(slots.restMs * 2, REST_MAX_MS) : REST_MIN_MS;
    slots.restsUntil = now + slots.restMs;
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

  /** What to claim in the transaction that ends these tasks: their slots are free again in it. */
  claims(finishes: readonly Finish[], now: number, { claimsMax: max, overShare } = UNBOUNDED): LaneClaim[] {
    const claims: LaneClaim[] = [];
    const freed = Map.groupBy(finishes, ({ lane }) => lane);
    for (const [lane, slots] of this.#slots) {
      const freedHere = freed.get(lane) ?? [];
      // An end makes room for the agent and the lane, so that work that had to wait may start now.
      if (!slots.hungry && freedHere.length === 0) continue;
      const limit = Math.min(slots.concurrency - slots.held + freedHere.length, CLAIM_MAX);
      if (limit <= 0) continue;
      if (max > 0 && slots.restsUntil <= now) {
        const perTenant = without(overShare, tenantSlots(slots, freedHere, limit), limit);
        claims.push({ lane, limit, wakes: slots.wakes, ...(perTenant === null ? {} : { perTenant }) });
      } else {
        // What may not be claimed now is asked for as soon as it may.
        slots.hungry = true;
      }
    }
    return this.#inTurn(claims, max);
  }

  /** Where not all may be claimed, another lane is the first each time. */
  #inTurn(claims: LaneClaim[], max: number): LaneClaim[] {
    if (claims.length < 2 || claims.reduce((sum, { limit }) => sum + limit, 0) <= max) return claims;
    this.#turn = (this.#turn + 1) % claims.length;
    return [...claims.slice(this.#turn), ...claims.slice(0, this.#turn)];
  }

  took(holder: SlotHolder): void {
    this.#hold(holder, 1);
  }

  freed(holder: SlotHolder): void {
    this.#hold(holder, -1);
  }

  #hold({ lane, tenant }: SlotHolder, by: 1 | -1): void {
    const slots = this.#slots.get(lane);
    if (slots === undefined) return;
    slots.held += by;
    const held = (slots.heldBy.get(tenant) ?? 0) + by;
    if (held === 0) slots.heldBy.delete(tenant);
    else slots.heldBy.set(tenant, held);
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

/** What tenants may take of the next `limit` slots. Only those are named whose share that could exceed. */
function tenantSlots(
  { perTenant: max, heldBy }: Slots,
  freed: readonly Finish[],
  limit: number,
): TenantSlots | null {
  if (max === null) return null;
  const left = new Map<string, number>();
  for (const [tenant, held] of heldBy) {
    if (held + limit > max) left.set(tenant, max - held);
  }
  for (const { tenant } of freed) {
    const own = left.get(tenant);
    if (own !== undefined) left.set(tenant, own + 1);
  }
  return { max, left };
}

/** The same with nothing for some tenants, where the lane itself is shared or not. */
function without(tenants: ReadonlySet<string>, slots: TenantSlots | null, limit: number): TenantSlots | null {
  if (tenants.size === 0) return slots;
  const left = new Map(slots?.left);
  for (const tenant of tenants) left.set(tenant, Math.min(left.get(tenant) ?? 0, 0));
  return { max: slots?.max ?? limit, left };
}
