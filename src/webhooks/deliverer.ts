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
 * Exchanges under way at once, and who gets how many. A tenant that is alone gets 12: it may hold three times what is free, so
 * that the next tenant always finds room, and several end up with as much each. Of these, hosts that are new or fail get four,
 * one each, and all tenants together half of all: whoever names hosts that hang, however many, slows down nobody whose hosts
 * answer.
 */
const SHARES: DeliveryShares = {
  slots: 16,
  tenantFactor: 3,
  unprovenSlots: 8,
  unprovenFactor: 1,
  perHost: 4,
  perUnprovenHost: 1,
};
/** How long one exchange may take, from looking up the name to the status of the answer. */
const EXCHANGE_MS = 10_000;
/** How long a claim keeps others away: longer than an exchange and what is written before and after it. */
const HOLD_MS = 30_000;
/** The net under every wake-up, and for what other nodes left behind. */
const POLL_MS = 30_000;

const TOO_LATE = new Error(`no answer within ${EXCHANGE_MS / 1_000} s`);
const DROPPED = new Error("dropped: the node was stopping");

export interface DeliveryResult {
  /** `retried`: it failed and will be tried again. */
  readonly outcome: "delivered" | "failed" | "retried";
  /** How long the exchange took. */
  readonly ms: number;
}

export interface DelivererOptions extends ServiceOptions {
  readonly storage: Pick<Storage, "deliveries">;
  readonly storageClock: StorageClock;
  /** What may be called, by the configuration as it is now. */
  readonly guard: () => TargetGuard;
  /** Signs the requests for a tenant; null: they are not signed. */
  readonly sign: CallbackParams["sign"];
  /** Masks secrets in the body, by the current configuration. */
  readonly redactor: () => Redactor;
  readonly version: string;
  /** Told of each try. */
  readonly onResult?: (result: DeliveryResult) => void;
}

/** A delivery that was claimed, until its outcome is stored. */
interface Try {
  readonly claimed: ClaimedDelivery;
  /** The number it was last handed out with. */
  number: number;
  readonly exchange: AbortController;
  /** Null while the exchange goes on. */
  verdict: ReturnType<typeof settleTry> | null;
}

/**
 * Makes the callbacks that tasks asked for. The storage keeps the queue, and hands out only what may be sent at once: nothing
 * waits in here that would be lost with the process.
 */
export class Deliverer extends Service {
  readonly name = "deliverer";
  readonly #options: DelivererOptions;
  readonly #rests: ResponseDrain;
  /** By the number of the delivery. */
  readonly #tries = new Map<number, Try>();
  #putBack: PutBackClaim[] = [];
  #open = false;
  #onQuiet: (() => void) | null = null;

  constructor(options: DelivererOptions) {
    super(options);
    this.#options = options;
    this.#rests = new ResponseDrain(this.clock);
  }

  override start(): void {
    this.#open = true;
    super.start();
  }

  async tick(): Promise<number> {
    const { storage, storageClock } = this.#options;
    await storageClock.sync();
    await this.#writeDown();
    const held = this.#held();
    // Every exchange that ends wakes it.
    if (!this.#open || held.length >= SHARES.slots) return POLL_MS;
    const { claimed, nextAt } = await storage.deliveries.claim({ shares: SHARES, held, holdMs: HOLD_MS });
    for (const each of claimed) this.#begin(each);
    if (claimed.length === 0 && this.#tries.size === 0) this.#onQuiet?.();
    return this.#untilDue(nextAt);
  }

  /** Exchanges under way, by whether their host was proven for the tenant when they began. */
  get inFlight(): { readonly proven: number; readonly unproven: number } {
    const held = this.#held();
    const proven = held.filter((each) => each.proven).length;
    return { proven, unproven: held.length - proven };
  }

  /**
   * Gives what is due, and what is under way, `graceMs` to be over. Then nothing more begins, and what is still under way
   * is dropped: it is due again after its hold.
   */
  async drain(graceMs: number): Promise<void> {
    if (!this.#open) return;
    await this.#quiet(graceMs);
    this.#open = false;
    for (const { exchange } of this.#tries.values()) exchange.abort(DROPPED);
    this.#rests.drop();
    await this.stop();
    await this.#writeDown().catch((error) => {
      this.log.warn({ error }, "could not write down which callbacks were made; some will be made again");
    });
  }

  #begin(claimed: ClaimedDelivery): void {
    const { seq, tries: number, dueAt: heldUntil } = claimed.delivery;
    const earlier = this.#tries.get(seq);
    if (earlier !== undefined) {
      // Its hold ran out because the clock jumped, or because its end could not be written down for long. It is still
      // on its way or done, and only has a new number.
      earlier.number = number;
      return;
    }
    if (!this.#open) {
      const dueAt = this.#options.storageClock.now();
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

  /** Never rejects: whatever goes wrong is how the try ended. */
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
    const { guard, sign, redactor, version, storageClock } = this.#options;
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
    const now = this.#options.storageClock.now();
    const verdict = settleTry(outcome, { tries: each.number, now, random: this.random });
    each.verdict = verdict;
    this.#options.onResult?.({ outcome: verdict.status === "pending" ? "retried" : verdict.status, ms });
    this.#logFailure(each, verdict);
    this.wake();
  }

  /** The first failure and the last of a delivery are warnings: whoever waits for a callback finds out soon why it does not come. */
  #logFailure({ claimed, number: tries }: Try, { status, error, dueAt }: ReturnType<typeof settleTry>): void {
    if (status === "delivered") return;
    const { delivery } = claimed;
    const fields = { deliveryId: deliveryId(delivery), taskId: delivery.taskId, tries, error };
    if (status === "failed") {
      this.log.warn(fields, "a callback could not be made");
      return;
    }
    const retryAt = new Date(dueAt ?? 0).toISOString();
    this.log[tries === 1 ? "warn" : "debug"]({ ...fields, retryAt }, "a callback failed; it is tried again");
  }

  /** Nothing is forgotten before it is stored. */
  async #writeDown(): Promise<void> {
    const { deliveries } = this.#options.storage;
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

  #untilDue(dueAt: number | null): number {
    if (dueAt === null) return POLL_MS;
    // At least a millisecond: a moment that is due but yields nothing, because the clocks differ by a hair, must not
    // keep the process busy.
    return Math.min(Math.max(dueAt - this.#options.storageClock.now(), 1), POLL_MS);
  }

  async #quiet(graceMs: number): Promise<void> {
    if (graceMs <= 0) return;
    const callbacks = this.#tries.size;
    if (callbacks > 0) {
      this.log.info({ callbacks }, `waiting up to ${Math.ceil(graceMs / 1_000)} s for callbacks under way`);
    }
    await new Promise<void>((resolve) => {
      const timer = this.clock.setTimer(graceMs, resolve);
      this.#onQuiet = () => {
        timer.cancel();
        resolve();
      };
      this.wake();
    });
    this.#onQuiet = null;
  }
}

function failure(error: unknown): TryOutcome {
  const message = error instanceof Error ? error.message : String(error);
  return { kind: "failed", error: message, permanent: error instanceof TargetRefused };
}
