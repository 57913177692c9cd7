import type { Channel } from "./channel.ts";

/** Which of several tabs does what only one should do. */
export interface Leadership {
  /** Calls `lead` once this tab leads; its signal fires when it no longer does. */
  join(lead: (signal: AbortSignal) => Promise<void>): void;
  /** Leads no longer, and does not want to. */
  leave(): void;
}

/** By a lock that the browser hands to the next tab when its holder is gone, however it went. */
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
    // Once the lock is held its own signal does nothing any more: `signal` ends the leader.
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

/** A leader says so this often. */
const BEAT_MS = 1_000;
/** One that has not said so for this long is gone. */
const SILENCE_MS = 3_000;
/** How long others have to object. */
const CLAIM_MS = 250;

/** Where a page has no locks, since it came over plain HTTP from another machine: by heartbeats between the tabs. */
export class HeartbeatLeadership implements Leadership {
  readonly #channel: Channel;
  readonly #id: string;
  #lead: ((signal: AbortSignal) => Promise<void>) | undefined;
  #leading: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #deaf: (() => void) | undefined;
  #isClaiming = false;

  /** Of two that lead or claim at once the one with the smaller id stays. */
  constructor(channel: Channel, id: string) {
    this.#channel = channel;
    this.#id = id;
  }

  join(lead: (signal: AbortSignal) => Promise<void>): void {
    if (this.#lead !== undefined) return;
    this.#lead = lead;
    this.#deaf = this.#channel.listen(({ kind, from }) => this.#hear(kind, from));
    this.#channel.post({ kind: "who", from: this.#id });
    this.#claimAfter(CLAIM_MS);
  }

  leave(): void {
    clearTimeout(this.#timer);
    this.#deaf?.();
    this.#lead = undefined;
    this.#isClaiming = false;
    if (this.#leading === undefined) return;
    this.#stepDown();
    this.#channel.post({ kind: "bye", from: this.#id });
  }

  #hear(kind: string, from: string): void {
    if (from === this.#id) return;
    const isLeading = this.#leading !== undefined;
    if (kind === "beat") {
      if (isLeading && from > this.#id) {
        this.#say("beat");
        return;
      }
      if (isLeading) this.#stepDown();
      this.#isClaiming = false;
      // Not all at once: the first that claims is heard by the others.
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
