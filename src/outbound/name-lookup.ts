import { lookup as dnsLookup } from "node:dns/promises";
import { within } from "../clock/within.ts";
import type { Clock } from "../model/clock.ts";

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Every address a name has; rejects when it has none. */
export type Lookup = (name: string) => Promise<readonly ResolvedAddress[]>;

/** Resolves names as the operating system does, including /etc/hosts. */
export const systemLookup: Lookup = (name) => dnsLookup(name, { all: true });

/** How long a caller waits at most. */
const WAIT_MS = 1_000;
/** How long a result is reused: a burst of submissions causes one lookup. */
const KEEP_MS = 10_000;
/** Names in the cache. The oldest is evicted first. */
const NAMES_MAX = 1_000;
/** Lookups under way at once. The operating system resolves a few names at a time: more would delay all other lookups. */
const UNDER_WAY_MAX = 16;

export interface HurriedLookupOptions {
  readonly lookup: Lookup;
  readonly clock: Clock;
}

interface Remembered {
  readonly addresses: Promise<readonly ResolvedAddress[] | null>;
  /** By the monotonic clock. */
  readonly until: number;
}

/** Resolves names for callers that cannot wait long: within `WAIT_MS`, or not at all. */
export class HurriedLookup {
  readonly #lookup: Lookup;
  readonly #clock: Clock;
  readonly #names = new Map<string, Remembered>();
  #underWay = 0;

  constructor({ lookup, clock }: HurriedLookupOptions) {
    this.#lookup = lookup;
    this.#clock = clock;
  }

  /** Null: the lookup took too long or failed, or too many are under way. */
  async addresses(name: string): Promise<readonly ResolvedAddress[] | null> {
    const known = this.#names.get(name);
    const fresh = known !== undefined && this.#clock.monotonic() < known.until;
    const addresses = fresh ? known.addresses : this.#ask(name);
    if (addresses === null) return null;
    return within({ clock: this.#clock, ms: WAIT_MS, work: addresses, onLate: () => null });
  }

  #ask(name: string): Remembered["addresses"] | null {
    if (this.#underWay >= UNDER_WAY_MAX) return null;
    this.#underWay += 1;
    const addresses = this.#lookup(name)
      .catch(() => null)
      .finally(() => {
        this.#underWay -= 1;
      });
    // Deleted first, so that it is the newest again.
    this.#names.delete(name);
    this.#names.set(name, { addresses, until: this.#clock.monotonic() + KEEP_MS });
    for (const oldest of this.#names.keys()) {
      if (this.#names.size <= NAMES_MAX) break;
      this.#names.delete(oldest);
    }
    return addresses;
  }
}
