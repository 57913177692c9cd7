import { within } from "../clock/within.ts";
import type { DeliveryShares, HeldDelivery } from "../model/delivery-shares.ts";
import type { Redactor } from "../model/redactor.ts";
import { fetchAnswer } from "../outbound/fetch-answer.ts";
import { TargetRefused } from "../outbound/guarded-agent.ts";
import type { TargetGuard } from "../outbound/target-guard.ts";
import { Service, type ServiceOptions } from "../services/service.ts";
import type { StorageClock } from "../services/storage-clock.ts";
import type { ClaimedDelivery, PutBackClaim, Storage } from "../storage/storage.ts";
import { type CallbackParams, callbackRequest } from "./callback-request.ts";
import { deliveryId } from "./delivery-id.ts";
import { ResponseDrain } from "./response-drain.ts";
import { settleTry, type TryOutcome } from "./try-outcome.ts";

/**
 * Slots for exchanges under way, and how tenants share them. A single tenant gets 12: it may hold three times the number of
 * free slots, so that the next tenant always finds one, and several tenants end up with equal shares. Of its slots, a tenant may
 * use four for unproven hosts (new or failing), one per host; all tenants together may use half of all slots for them. So
 * hosts that hang, however many, do not slow down callbacks to hosts that respond.
 */
const SHARES: DeliveryShares = {
  slots: 16,
  tenantFactor: 3,
  unprovenSlots: 8,
  unprovenFactor: 1,
  perHost: 4,
  perUnprovenHost: 1,
};
/** The timeout of one exchange, from the name lookup to the status of the response. */
const EXCHANGE_MS = 10_000;
/** The lease of a claim: longer than an exchange and the writes before and after it. */
const HOLD_MS = 30_000;
/** How often to check for lost wake-ups, and for deliveries that other nodes left behind. */
const POLL_MS = 30_000;

const TOO_LATE = new Error(`no answer within ${EXCHANGE_MS / 1_000} s`);
const DROPPED = new Error("dropped: the node was stopping");

export interface DeliveryResult {
  /** `retried`: it failed and will be retried. */
  readonly outcome: "delivered" | "failed" | "retried";
  /** How long the exchange took. */
  readonly ms: number;
}

export interface DelivererOptions extends ServiceOptions {
  readonly storage: Pick<Storage, "deliveries">;
  readonly storageClock: StorageClock;
  /** Decides which hosts may be called, by the current configuration. */
  readonly guard: () => TargetGuard;
  /** Signs the requests for a tenant; null: they are not signed. */
  readonly sign: CallbackParams["sign"];
  /** Masks secrets in the body, by the current configuration. */
  readonly redactor: () => Redactor;
  readonly version: string;
  /** Called after each try. */
  readonly onResult?: (result: DeliveryResult) => void;
}

/** A delivery that was claimed, until its outcome is stored. */
interface Try {
  readonly claimed: ClaimedDelivery;
  /** The number of the try, from the last claim. */
  number: number;
  readonly exchange: AbortController;
  /** Null while the exchange is under way. */
  verdict: ReturnType<typeof settleTry> | null;
}

/**
 * Sends the callbacks of tasks and batches. The storage keeps the queue, and a claim returns only deliveries that may be sent
 * at once: no delivery waits in this process and could be lost with it.
 */
export class Deliverer extends Service<DelivererOptions> {
  readonly name = "deliverer";
  readonly #rests: ResponseDrain;
  /** By the number of the delivery. */
  readonly #tries = new Map<number, Try>();
  #putBack: PutBackClaim[] = [];
  #open = false;
  #onQuiet: (() => void) | null = null;

  constructor(options: DelivererOptions) {
    super(options);
    this.#rests = new ResponseDrain(this.clock);
  }

  override start(): void {
    this.#open = true;
    super.start();
  }

  async tick(): Promise<number> {
    const { storage, storageClock } = this.options;
    await storageClock.sync();
    await this.#writeDown();
    const held = this.#held();
    // Each exchange that ends wakes this service.
    if (!this.#open || held.length >= SHARES.slots) return POLL_MS;
    const { claimed, nextAt } = await storage.deliveries.claim({ shares: SHARES, held, holdMs: HOLD_MS });
    for (const each of claimed) this.#begin(each);
    if (claimed.length === 0 && this.#tries.size === 0) this.#onQuiet?.();
    return storageClock.sleepMs(nextAt, POLL_MS);
  }

  /** Exchanges under way, by whether their host was proven for the tenant when they began. */
  get inFlight(): { readonly proven: number; readonly unproven: number } {
    const held = this.#held();
    const proven = held.filter((each) => each.proven).length;
    return { proven, unproven: held.length - proven };
  }

  /**
   * Gives deliveries that are due or under way `graceMs` to end. Then begins no more, and drops exchanges that are still under
   * way: their deliveries are due again when their leases end.
   */
  async drain(graceMs: number): Promise<void> {
    if (!this.#open) return;
    await this.#quiet(graceMs);
    this.#open = false;
    for (const { exchange } of this.#tries.values()) exchange.abort(DROPPED);
    this.#rests.drop();
    await this.stop();
    await this.#writeDown().catch((error) => {
      this.log.warn({ error }, "could not store which webhooks were delivered; some will be delivered again");
    });
  }

  #begin(claimed: ClaimedDelivery): void {
    const { seq, tries: number, dueAt: heldUntil } = claimed.delivery;
    const earlier = this.#tries.get(seq);
    if (earlier !== undefined) {
      // Its lease ended because the clock jumped, or because its outcome could not be stored for long. The exchange is
      // still under way or done: only the number of the try is new.
      earlier.number = number;
      return;
    }
    if (!this.#open) {
      const dueAt = this.options.storageClock.now();
      this.#putBack.push({ seq, tries: number, heldUntil: heldUntil ?? 0, dueAt });
      return;
    }
    const each: Try = { claimed, number, exchange: new AbortController(), verdict: null };
    this.#tries.set(seq, each);
    void this.#exchange(each);
  }

  #held(): HeldDelivery[] {
    return [...this.#tries.values()]
      .filter(({ verdict }) => verdict === null)
      .map(({ claimed: { delivery } }) => ({
        tenant: delivery.tenant,
        host: delivery.host,
        proven: delivery.hostProven,
      }));
  }

  /** Never rejects: an error is the outcome of the try. */
  async #exchange(each: Try): Promise<void> {
    const { exchange } = each;
    const began = this.clock.monotonic();
    const timer = this.clock.setTimer(EXCHANGE_MS, () => exchange.abort(TOO_LATE));
    const outcome = await this.#call(each).catch(failure);
    timer.cancel();
    if (exchange.signal.reason === DROPPED) return;
    this.#end(each, outcome, this.clock.monotonic() - began);
  }

  async #call({ claimed, exchange }: Try): Promise<TryOutcome> {
    const { guard, sign, redactor, version, storageClock } = this.options;
    const now = storageClock.now();
    const { status, retryAfterMs, body } = await fetchAnswer(claimed.delivery.url, {
      method: "POST",
      ...callbackRequest(claimed, { now, sign, version, redactor: redactor() }),
      signal: exchange.signal,
      now,
      guard: guard(),
    });
    this.#rests.read(body, exchange);
    return { kind: "answered", status, retryAfterMs };
  }

  #end(each: Try, outcome: TryOutcome, ms: number): void {
    const now = this.options.storageClock.now();
    const verdict = settleTry(outcome, { tries: each.number, now, random: this.random });
    each.verdict = verdict;
    this.options.onResult?.({ outcome: verdict.status === "pending" ? "retried" : verdict.status, ms });
    this.#logFailure(each, verdict);
    this.wake();
  }

  /** The first and the last failure of a delivery are warnings, so that an operator soon sees why a callback does not arrive. */
  #logFailure({ claimed, number: tries }: Try, { status, error, dueAt }: ReturnType<typeof settleTry>): void {
    if (status === "delivered") return;
    const { delivery } = claimed;
    const fields = { deliveryId: deliveryId(delivery), taskId: delivery.taskId, tries, error };
    if (status === "failed") {
      this.log.warn(fields, "a webhook delivery failed");
      return;
    }
    const retryAt = new Date(dueAt ?? 0).toISOString();
    this.log[tries === 1 ? "warn" : "debug"]({ ...fields, retryAt }, "a callback failed; it is tried again");
  }

  /** Stores outcomes and returned claims. Keeps each in memory until it is stored. */
  async #writeDown(): Promise<void> {
    const { deliveries } = this.options.storage;
    const ended = [...this.#tries.values()].flatMap(({ claimed, number, verdict }) =>
      verdict === null ? [] : [{ seq: claimed.delivery.seq, tries: number, ...verdict }],
    );
    if (ended.length > 0) {
      await deliveries.settle({ tries: ended });
      for (const { seq } of ended) this.#tries.delete(seq);
    }
    const claims = this.#putBack;
    if (claims.length > 0) {
      await deliveries.putBack({ claims });
      this.#putBack = this.#putBack.slice(claims.length);
    }
  }

  async #quiet(graceMs: number): Promise<void> {
    if (graceMs <= 0) return;
    const callbacks = this.#tries.size;
    if (callbacks > 0) {
      this.log.info({ callbacks }, `waiting up to ${Math.ceil(graceMs / 1_000)} s for callbacks under way`);
    }
    const quiet = Promise.withResolvers<void>();
    this.#onQuiet = quiet.resolve;
    this.wake();
    await within({ clock: this.clock, ms: graceMs, work: quiet.promise, onLate: () => undefined });
    this.#onQuiet = null;
  }
}

function failure(error: unknown): TryOutcome {
  const message = error instanceof Error ? error.message : String(error);
  return { kind: "failed", error: message, permanent: error instanceof TargetRefused };
}
