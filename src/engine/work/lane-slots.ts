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
  /** Of `held` and `ahead`, how many each tenant has. */
  readonly heldBy: Map<string, number>;
  /** Attempts that have begun here and whose ends are not written yet. */
  held: number;
  /** Of `held`, those that have ended: other tasks may have their slots, before their ends are written. */
  ended: number;
  /** Tasks that are claimed ahead and have not begun. They are in `heldBy`, but not in `held`. */
  ahead: number;
  /** Slots that a claim under way may fill. */
  promised: number;
  /** A critical task waits for a slot: none goes to a task that is held ahead. */
  reserved: boolean;
  /** Number of reservations. It distinguishes one during a claim from one before it. */
  reservations: number;
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
  readonly reservations: number;
}

/** The bounds of a claim besides slots, by memory. */
export interface ClaimBounds {
  /** How many tasks may be claimed in all lanes together. */
  readonly claimsMax: number;
  /** Tenants whose tasks are not claimed now. */
  readonly overShare: ReadonlySet<string>;
  /** How many tasks of a lane with this many slots to hold ahead. Left out: none. */
  readonly target?: (lane: string, slots: number) => number;
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
          ended: 0,
          ahead: 0,
          promised: 0,
          reserved: false,
          reservations: 0,
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
    return slots === undefined ? null : { running: slots.held - slots.ended, concurrency: slots.concurrency };
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

  /**
   * The claims for the transaction that writes these ends: it also frees their slots. The slots are promised to these claims until
   * `answered` or `unanswered` is called. `target`: how many tasks of a lane to hold ahead; left out: none.
   */
  claims(
    finishes: readonly Finish[],
    now: number,
    { claimsMax: max, overShare, target } = UNBOUNDED,
  ): LaneClaim[] {
    const claims: LaneClaim[] = [];
    const freed = Map.groupBy(finishes, ({ lane }) => lane);
    for (const [lane, slots] of this.#slots) {
      const freedHere = freed.get(lane) ?? [];
      // An end frees a slot of the lane and of the agent, so that waiting tasks may start now.
      if (!slots.hungry && freedHere.length === 0) continue;
      const limit = Math.max(Math.min(slots.concurrency - slots.held + freedHere.length, CLAIM_MAX), 0);
      const ahead =
        target && Math.max(Math.min(target(lane, slots.concurrency) - slots.ahead, CLAIM_MAX - limit), 0);
      // A lane that holds tasks ahead asks even for none: the response says whether a critical task waits.
      const asksAhead = ahead !== undefined && (ahead > 0 || slots.ahead > 0);
      if (limit === 0 && !asksAhead) continue;
      if (max > 0 && slots.restsUntil <= now) {
        const asked = { limit, freed: freedHere, overShare, ...(asksAhead && { ahead }) };
        claims.push(this.#claim(lane, slots, asked));
      } else {
        // Nothing may be claimed now. Claim from this lane as soon as that is allowed.
        slots.hungry = true;
      }
    }
    return this.#inTurn(claims, max);
  }

  /**
   * The claims for an insert of tasks in these lanes: for slots that are free and for which no other task is known to wait. The
   * slots are promised as in `claims`.
   */
  claimsOfInsert(lanes: Iterable<string>, now: number, { claimsMax, overShare } = UNBOUNDED): LaneClaim[] {
    const claims: LaneClaim[] = [];
    let left = claimsMax;
    for (const lane of lanes) {
      const slots = this.#slots.get(lane);
      if (slots === undefined || slots.hungry || slots.ahead > 0 || slots.restsUntil > now) continue;
      const limit = Math.min(slots.concurrency - slots.held, CLAIM_MAX);
      if (limit <= 0 || limit > left) continue;
      left -= limit;
      claims.push(this.#claim(lane, slots, { limit, freed: [], overShare }));
    }
    return claims;
  }

  #claim(
    lane: string,
    slots: Slots,
    given: { limit: number; ahead?: number; freed: readonly Finish[]; overShare: ReadonlySet<string> },
  ): LaneClaim {
    const { limit, ahead, freed, overShare } = given;
    const all = limit + (ahead ?? 0);
    const perTenant = without(overShare, tenantSlots(slots, freed, all), all);
    slots.promised = limit;
    return {
      lane,
      limit,
      wakes: slots.wakes,
      reservations: slots.reservations,
      ...(ahead !== undefined && { ahead }),
      ...(perTenant !== null && { perTenant }),
    };
  }

  /** If `max` is smaller than all limits together, another lane is first each time. */
  #inTurn(claims: LaneClaim[], max: number): LaneClaim[] {
    if (claims.length < 2 || claims.reduce((sum, { limit, ahead = 0 }) => sum + limit + ahead, 0) <= max)
      return claims;
    this.#turn = (this.#turn + 1) % claims.length;
    return [...claims.slice(this.#turn), ...claims.slice(0, this.#turn)];
  }

  /** An attempt begins. `ahead`: its task was held ahead until now. */
  took(holder: SlotHolder, { ahead = false } = {}): void {
    this.#change(holder, (slots) => {
      slots.held += 1;
      if (ahead) slots.ahead -= 1;
      else count(slots, holder, 1);
    });
  }

  /** An attempt has ended. Its slot is free for a task that is held ahead; its end is still to be written. */
  ended(holder: SlotHolder): void {
    this.#change(holder, (slots) => {
      slots.ended += 1;
    });
  }

  /** The end of an attempt is written. */
  written(holder: SlotHolder): void {
    this.#change(holder, (slots) => {
      slots.ended -= 1;
    });
    this.freed(holder);
  }

  /** An attempt has lost its lease. */
  freed(holder: SlotHolder): void {
    this.#change(holder, (slots) => {
      slots.held -= 1;
      count(slots, holder, -1);
    });
  }

  /** A task is held ahead. */
  tookAhead(holder: SlotHolder): void {
    this.#change(holder, (slots) => {
      slots.ahead += 1;
      count(slots, holder, 1);
    });
  }

  /** A task that was held ahead goes back to the queue, or has lost its lease. */
  droppedAhead(holder: SlotHolder): void {
    this.#change(holder, (slots) => {
      slots.ahead -= 1;
      count(slots, holder, -1);
    });
  }

  #change({ lane }: SlotHolder, change: (slots: Slots) => void): void {
    const slots = this.#slots.get(lane);
    if (slots !== undefined) change(slots);
  }

  /** Whether a task that is held ahead may begin. */
  hasFree(lane: string): boolean {
    const slots = this.#slots.get(lane);
    if (slots === undefined || slots.reserved) return false;
    return slots.held - slots.ended + slots.promised < slots.concurrency;
  }

  isReserved(lane: string): boolean {
    return this.#slots.get(lane)?.reserved ?? false;
  }

  /** The next free slot of a lane is for a critical task that waits: the next claim asks for it. */
  reserve(lane: string): void {
    const slots = this.#slots.get(lane);
    if (slots === undefined || slots.ahead === 0) return;
    slots.reserved = true;
    slots.reservations += 1;
    slots.hungry = true;
  }

  /**
   * A lane that returned fewer tasks than the limit has no more, unless it was woken during the claim, or `claimsMax` cut the
   * claim short (`isCut`). `given`: how many it returned to begin now, `ahead`: how many besides. `criticalWaits`: a critical task
   * is left, and gets the next free slot if this node could take it.
   */
  answered(
    claim: LaneClaim,
    { given, ahead = 0 }: { given: number; ahead?: number },
    { isCut = false, criticalWaits = false } = {},
  ): void {
    const slots = this.#slots.get(claim.lane);
    if (slots === undefined) return;
    const { limit, ahead: asked = 0 } = claim;
    const isFilled = given + ahead >= limit + asked;
    slots.promised = 0;
    const isReservedSince = slots.reserved && slots.reservations !== claim.reservations;
    slots.reserved = slots.ahead > 0 && (isReservedSince || (criticalWaits && given >= limit));
    slots.hungry = isCut || isFilled || slots.reserved || slots.wakes !== claim.wakes;
  }

  /** The exchange of these claims failed. */
  unanswered(claims: readonly LaneClaim[]): void {
    for (const { lane } of claims) {
      const slots = this.#slots.get(lane);
      if (slots !== undefined) slots.promised = 0;
    }
  }
}

function count({ heldBy }: Slots, { tenant }: SlotHolder, by: 1 | -1): void {
  const held = (heldBy.get(tenant) ?? 0) + by;
  if (held === 0) heldBy.delete(tenant);
  else heldBy.set(tenant, held);
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
