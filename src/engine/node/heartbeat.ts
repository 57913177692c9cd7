import type { Timer } from "../../model/clock.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import type { Held, Storage } from "../../storage/storage.ts";

/** How long a node's work is safe from rescue after a renewal. */
export const LEASE_MS = 15_000;
const RENEW_EVERY_MS = 5_000;

export interface HeartbeatOptions extends ServiceOptions {
  readonly storage: Storage;
  /** The membership to renew. */
  readonly node: () => string;
  /** The attempts that run right now. */
  readonly tokens: () => readonly number[];
  /** What the storage says this node runs. */
  readonly onHeld: (held: readonly Held[]) => void;
  /** These attempts lost their lease, one by one. */
  readonly onFenced: (tokens: readonly number[]) => void;
  /** The lease is lost, or may be: everything must be aborted before this returns. */
  readonly onLost: (reason: string) => void;
}

interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

/**
 * Renews the lease of what this node runs. When a renewal is missed for a whole lease, by either clock (the monotonic
 * one stands still while a machine sleeps, the wall clock does not), others may have taken the work over already:
 * this node lets go of it first and asks questions later.
 */
export class Heartbeat extends Service {
  readonly name = "heartbeat";
  readonly #options: HeartbeatOptions;
  #renewed: Moment;
  #alarm: Timer | null = null;
  #beats = false;
  #lost = false;

  constructor(options: HeartbeatOptions) {
    super(options);
    this.#options = options;
    this.#renewed = this.moment();
  }

  override start(): void {
    this.#beats = true;
    this.#watch();
    super.start();
  }

  override async stop(): Promise<void> {
    this.#beats = false;
    this.#alarm?.cancel();
    this.#alarm = null;
    // A renewal that hangs must not hang the stop; its answer no longer matters.
    void super.stop();
  }

  /** Now, by both clocks. */
  moment(): Moment {
    return { monotonic: this.clock.monotonic(), wall: this.clock.now() };
  }

  /** A new membership is known to the others; `sent` is from before it was registered. */
  reset(sent: Moment): void {
    this.#lost = false;
    this.#renew(sent);
  }

  /** Whether the lease can still be counted on. */
  get holds(): boolean {
    return !this.#lost;
  }

  async tick(): Promise<number> {
    this.#checkLease();
    if (this.#lost) return RENEW_EVERY_MS;
    const sent = this.moment();
    const node = this.#options.node();
    const running = this.#options.tokens();
    const { alive, held } = await this.#options.storage.nodes.heartbeat({ node });
    // The lease may have been lost, and a new membership begun, while the answer was on its way. Who stops signs off
    // itself, and must not take that for the word of another node.
    if (node !== this.#options.node() || this.#lost || !this.#beats) return RENEW_EVERY_MS;
    if (!alive) {
      this.#lose("another node declared this one dead");
      return RENEW_EVERY_MS;
    }
    this.#checkLease();
    if (this.#lost) return RENEW_EVERY_MS;
    this.#renew(sent);
    const stillHeld = new Set(held.map(({ token }) => token));
    this.#options.onFenced(running.filter((token) => !stillHeld.has(token)));
    this.#options.onHeld(held);
    return RENEW_EVERY_MS;
  }

  /** Counted from before the renewal was sent: whoever watches sees it later, and so waits longer. */
  #renew(sent: Moment): void {
    this.#renewed = sent;
    if (this.#beats) this.#watch();
  }

  /** A timer may fire a little early: then it is set again, since a renewal that hangs leaves nobody else to look. */
  #watch(): void {
    this.#alarm?.cancel();
    const leftMs = this.#renewed.monotonic + LEASE_MS - this.clock.monotonic();
    this.#alarm = this.clock.setTimer(Math.max(leftMs, 1), () => {
      this.#checkLease();
      if (!this.#lost) this.#watch();
    });
  }

  #checkLease(): void {
    if (this.#lost) return;
    const { monotonic, wall } = this.moment();
    const missedMs = Math.max(monotonic - this.#renewed.monotonic, wall - this.#renewed.wall);
    if (missedMs >= LEASE_MS) this.#lose(`its lease was not renewed for ${Math.round(missedMs)} ms`);
  }

  #lose(reason: string): void {
    this.#lost = true;
    this.#alarm?.cancel();
    this.#options.onLost(reason);
  }
}
