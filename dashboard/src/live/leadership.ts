import type { Channel } from "./channel.ts";

/** Elects the one of several tabs that reads the stream. */
export interface Leadership {
  /** Calls `lead` once this tab leads. Its signal fires when the tab no longer leads. */
  join(lead: (signal: AbortSignal) => Promise<void>): void;
  /** Stops leading, and stops trying to. */
  leave(): void;
}

/** By a lock. The browser gives it to the next tab when its holder is gone for any reason. */
export class LockLeadership implements Leadership {
  readonly #locks: LockManager;
  readonly #name: string;
  #leaving: AbortController | undefined;

  constructor(locks: LockManager, name: string) {
    this.#locks = locks;
    this.#name = name;
  }

  join(lead: (signal: AbortSignal) => Promise<void>): void {
    if (this.#leaving !== undefined) return;
    this.#leaving = new AbortController();
    const { signal } = this.#leaving;
    // Once the lock is held, the signal of the request has no effect any more: `lead` must end by `signal`.
    this.#locks
      .request(this.#name, { signal }, () => lead(signal))
      .catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
  }

  leave(): void {
    this.#leaving?.abort();
    this.#leaving = undefined;
  }
}

/** How often a leader sends a heartbeat. */
const BEAT_MS = 1_000;
/** A leader without a heartbeat for this long is gone. */
const SILENCE_MS = 3_000;
/** How long other tabs have to object to a claim. */
const CLAIM_MS = 250;

/** By heartbeats between the tabs. Used where the browser has no locks: for pages over plain HTTP from another machine. */
export class HeartbeatLeadership implements Leadership {
  readonly #channel: Channel;
  readonly #id: string;
  #lead: ((signal: AbortSignal) => Promise<void>) | undefined;
  #leading: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stopListening: (() => void) | undefined;
  #isClaiming = false;

  /** If two tabs lead or claim at the same time, the smaller id wins. */
  constructor(channel: Channel, id: string) {
    this.#channel = channel;
    this.#id = id;
  }

  join(lead: (signal: AbortSignal) => Promise<void>): void {
    if (this.#lead !== undefined) return;
    this.#lead = lead;
    this.#stopListening = this.#channel.listen(({ kind, from }) => this.#receive(kind, from));
    this.#channel.post({ kind: "who", from: this.#id });
    this.#claimAfter(CLAIM_MS);
  }

  leave(): void {
    clearTimeout(this.#timer);
    this.#stopListening?.();
    this.#lead = undefined;
    this.#isClaiming = false;
    if (this.#leading === undefined) return;
    this.#stepDown();
    this.#channel.post({ kind: "bye", from: this.#id });
  }

  /** The tab may be closed: another one need not wait until the heartbeats are missed. If it stays, it goes on. */
  mayEnd(): void {
    if (this.#leading !== undefined) this.#channel.post({ kind: "bye", from: this.#id });
  }

  #receive(kind: string, from: string): void {
    if (from === this.#id) return;
    const isLeading = this.#leading !== undefined;
    if (kind === "beat") {
      if (isLeading && from > this.#id) {
        this.#say("beat");
        return;
      }
      if (isLeading) this.#stepDown();
      this.#isClaiming = false;
      // A random delay, so that one tab claims first and the others receive its claim.
      this.#claimAfter(SILENCE_MS + Math.random() * CLAIM_MS * 2);
    } else if (kind === "bye" && !isLeading) {
      this.#claimAfter(Math.random() * CLAIM_MS);
    } else if ((kind === "who" || kind === "claim") && isLeading) {
      this.#say("beat");
    } else if (kind === "claim" && this.#isClaiming && from < this.#id) {
      this.#isClaiming = false;
      this.#claimAfter(SILENCE_MS);
    }
  }

  #claimAfter(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isClaiming = true;
      this.#say("claim");
      this.#timer = setTimeout(() => this.#begin(), CLAIM_MS);
    }, ms);
  }

  #begin(): void {
    this.#isClaiming = false;
    this.#leading = new AbortController();
    const { signal } = this.#leading;
    this.#beat();
    void this.#lead?.(signal);
  }

  #beat(): void {
    this.#say("beat");
    this.#timer = setTimeout(() => this.#beat(), BEAT_MS);
  }

  #stepDown(): void {
    this.#leading?.abort();
    this.#leading = undefined;
  }

  #say(kind: "beat" | "claim"): void {
    this.#channel.post({ kind, from: this.#id });
  }
}
