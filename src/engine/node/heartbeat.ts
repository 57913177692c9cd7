import type { Timer } from "../../model/clock.ts";
import { LEASE_MS } from "../../model/node.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import type { Held, Storage } from "../../storage/storage.ts";

const RENEW_EVERY_MS = 5_000;

export interface HeartbeatOptions extends ServiceOptions {
  readonly storage: Storage;
  /** The membership to renew. */
  readonly node: () => string;
  /** The attempts that run right now. */
  readonly tokens: () => readonly number[];
  /** Called with the attempts that this node runs according to the storage. */
  readonly onHeld: (held: readonly Held[]) => void;
  /** Called with attempts that lost their lease while the node kept its own. */
  readonly onFenced: (tokens: readonly number[]) => void;
  /** Called when the node's lease is lost, or may be. It must abort all attempts before it returns. */
  readonly onLost: (reason: string) => void;
}

interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

/**
 * Renews the lease of this node. Without a renewal for a whole lease, by either clock, other nodes may have taken over its
 * tasks already: this node aborts them at once, before it asks the storage. Two clocks, since the monotonic one may stop
 * while a machine sleeps and the wall clock does not.
 */
export class Heartbeat extends Service<HeartbeatOptions> {
  readonly name = "heartbeat";
  #renewed: Moment;
  #alarm: Timer | null = null;
  #beats = false;
  #lost = false;

  constructor(options: HeartbeatOptions) {
    super(options);
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
    // A renewal that hangs must not block the stop. Its response no longer matters.
    void super.stop();
  }

  /** Now, by both clocks. */
  moment(): Moment {
    return { monotonic: this.clock.monotonic(), wall: this.clock.now() };
  }

  /** A new membership is registered; `sent` is from before the registration. */
  reset(sent: Moment): void {
    this.#lost = false;
    this.#renew(sent);
  }

  /** Whether this node still has its lease. */
  get holds(): boolean {
    return !this.#lost;
  }

  async tick(): Promise<number> {
    this.#checkLease();
    if (this.#lost) return RENEW_EVERY_MS;
    const sent = this.moment();
    const node = this.options.node();
    const running = this.options.tokens();
    const { alive, held } = await this.options.storage.nodes.heartbeat({ node });
    // While the response was on its way, the lease may have been lost and a new membership begun. A node that stops
    // removes its own membership: that does not mean that another node declared it dead.
    if (node !== this.options.node() || this.#lost || !this.#beats) return RENEW_EVERY_MS;
    if (!alive) {
      this.#lose("another node declared this one dead");
      return RENEW_EVERY_MS;
    }
    this.#checkLease();
    if (this.#lost) return RENEW_EVERY_MS;
    this.#renew(sent);
    const stillHeld = new Set(held.map(({ token }) => token));
    this.options.onFenced(running.filter((token) => !stillHeld.has(token)));
    this.options.onHeld(held);
    return RENEW_EVERY_MS;
  }

  /** The lease counts from before the renewal was sent. Other nodes see the renewal later, so they wait longer. */
  #renew(sent: Moment): void {
    this.#renewed = sent;
    if (this.#beats) this.#watch();
  }

  /** A timer may fire slightly early. It is then set again: while a renewal hangs, nothing else checks the lease. */
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
    this.options.onLost(reason);
  }
}
