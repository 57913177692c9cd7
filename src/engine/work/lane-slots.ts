import { slotsPerTenant } from "../../model/lane.ts";
import type { Claim, Slots as SlotCounts, TenantSlots } from "../../storage/storage.ts";
import type { Finish } from "./completer.ts";

/** Tasks claimed from one lane in one transaction: a longer transaction would delay all other writes. */
const CLAIM_MAX = 200;

/**
 * How long nothing is claimed from a lane after a claim returned a task that this process cannot execute: the first time, and at
 * most. The storage has outdated abilities of this process, and would return the same task again at once.
 */
const REST_MIN_MS = 100;
const REST_MAX_MS = 1_000;

/** How many tasks of one lane this process runs, and whether a claim may find more. */
interface Slots {
  concurrency: number;
  /** How many of them one tenant may hold while there is a second enabled tenant; null: no bound. */
  perTenant: number | null;
  /** Of `held`, how many each tenant has. */
  readonly heldBy: Map<string, number>;
  /** Attempts that this process runs according to the storage: some may be decided, but their ends are not written yet. */
  held: number;
  /** Whether the lane may have tasks to start: false once a claim returned fewer than its limit. */
  hungry: boolean;
  /** Number of wake-ups. It distinguishes a wake-up during a claim from one before it. */
  wakes: number;
  /** Nothing is claimed before this time of the monotonic clock. */
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

/** The lane of a slot, and the tenant that holds it. */
export interface SlotHolder {
  readonly lane: string;
  readonly tenant: string;
}

/** The slots of each lane, and how many of them one tenant may hold, if that is bounded. */
export interface Capacity {
  readonly slots: SlotCounts;
  readonly perTenant: SlotCounts;
}

/** The slots of this process, lane by lane. */
export class LaneSlots {
  readonly #slots = new Map<string, Slots>();
  /** Rotates the order of lanes: when few tasks may be claimed, each claim begins with another lane. */
  #turn = 0;

  constructor(concurrency: SlotCounts, maxLaneShare: number) {
    this.configure(concurrency, maxLaneShare);
  }

  /**
   * Sets how many tasks of each lane run here at once. If more run already, they continue, and nothing starts until they are
   * fewer. A lane that is not named keeps its number, so that its queued tasks still run. `maxLaneShare`: the part of every lane
   * that one tenant may hold.
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

  /** A claim returned a task that this process cannot execute: no claims from its lane for a while, longer each time. */
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

  /** There may be work in this lane. Returns whether a slot is free for it. */
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

  /** The claims for the transaction that writes these ends: it also frees their slots. */
  claims(finishes: readonly Finish[], now: number, { claimsMax: max, overShare } = UNBOUNDED): LaneClaim[] {
    const claims: LaneClaim[] = [];
    const freed = Map.groupBy(finishes, ({ lane }) => lane);
    for (const [lane, slots] of this.#slots) {
      const freedHere = freed.get(lane) ?? [];
      // An end frees a slot of the lane and of the agent, so that waiting tasks may start now.
      if (!slots.hungry && freedHere.length === 0) continue;
      const limit = Math.min(slots.concurrency - slots.held + freedHere.length, CLAIM_MAX);
      if (limit <= 0) continue;
      if (max > 0 && slots.restsUntil <= now) {
        const perTenant = without(overShare, tenantSlots(slots, freedHere, limit), limit);
        claims.push({ lane, limit, wakes: slots.wakes, ...(perTenant === null ? {} : { perTenant }) });
      } else {
        // Nothing may be claimed now. Claim from this lane as soon as that is allowed.
        slots.hungry = true;
      }
    }
    return this.#inTurn(claims, max);
  }

  /** If `max` is smaller than all limits together, another lane is first each time. */
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
   * A lane that returned fewer tasks than the limit has no more, unless it was woken during the claim, or `claimsMax` cut the
   * claim short (`isCut`).
   */
  answered(claim: LaneClaim, given: number, { isCut = false } = {}): void {
    const slots = this.#slots.get(claim.lane);
    if (slots !== undefined) slots.hungry = isCut || given >= claim.limit || slots.wakes !== claim.wakes;
  }
}

/** How many of the next `limit` slots tenants may take. Names only tenants that could exceed their share. */
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

/** The same with no slots for some tenants, even if the lane has no bound per tenant. */
function without(tenants: ReadonlySet<string>, slots: TenantSlots | null, limit: number): TenantSlots | null {
  if (tenants.size === 0) return slots;
  const left = new Map(slots?.left);
  for (const tenant of tenants) left.set(tenant, Math.min(left.get(tenant) ?? 0, 0));
  return { max: slots?.max ?? limit, left };
}
