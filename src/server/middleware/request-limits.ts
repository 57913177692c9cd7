import type { Clock } from "../../model/clock.ts";
import { DEFAULT_RATE_LIMIT, RateLimit, type RateLimitOptions } from "./rate-limit.ts";

/** The buckets that a request is charged to. */
export interface ChargedTo {
  /** The bucket of the API key, or of the worker or agent that uses it. */
  readonly key: string;
  readonly tenant: string;
}

export interface RequestLimitsOptions extends RateLimitOptions {
  /** What all keys of a tenant may use together once a second enabled tenant exists. */
  readonly ofTenant: RateLimitOptions;
}

export const DEFAULT_REQUEST_LIMITS: RequestLimitsOptions = {
  ...DEFAULT_RATE_LIMIT,
  ofTenant: { perSecond: 1_000, burst: 2_000, maxExpensive: 8 },
};

interface RequestLimitsParts {
  readonly clock: Clock;
  /** A tenant that has the installation to itself has no limit but those of its keys. */
  readonly hasSecondTenant: () => boolean;
  readonly onRefused: () => void;
}

/** The rate limit of each key, and that of each tenant: more keys do not give a tenant a larger part of the process. */
export class RequestLimits {
  readonly #keys: RateLimit;
  readonly #tenants: RateLimit;
  readonly #hasSecondTenant: () => boolean;

  constructor({ ofTenant, ...ofKey }: RequestLimitsOptions, parts: RequestLimitsParts) {
    const { clock, hasSecondTenant, onRefused } = parts;
    this.#keys = new RateLimit(ofKey, clock, onRefused);
    this.#tenants = new RateLimit(ofTenant, clock, onRefused, "tenant");
    this.#hasSecondTenant = hasSecondTenant;
  }

  /** Takes `units` out of both buckets, or out of neither. Throws `rate_limited`. */
  take({ key, tenant }: ChargedTo, units = 1, cost = units): void {
    this.#keys.take(key, units, cost);
    if (!this.#hasSecondTenant()) return;
    try {
      this.#tenants.take(tenant, units, cost);
    } catch (error) {
      this.#keys.settle(key, -units);
      throw error;
    }
  }

  /** Charges the difference between the real cost and what was taken; see `RateLimit.settle`. */
  settle({ key, tenant }: ChargedTo, units: number): void {
    this.#keys.settle(key, units);
    if (this.#hasSecondTenant()) this.#tenants.settle(tenant, units);
  }

  /** For work that is not urgent and is charged afterwards; see `RateLimit.whenSpare`. */
  async whenSpare({ key, tenant }: ChargedTo, gone: AbortSignal): Promise<void> {
    await this.#keys.whenSpare(key, gone);
    if (this.#hasSecondTenant()) await this.#tenants.whenSpare(tenant, gone);
  }

  /** Returns the function to call when the request is over. Throws `rate_limited` when too many are in flight. */
  enter({ key, tenant }: ChargedTo): () => void {
    const leaveKey = this.#keys.enter(key);
    if (!this.#hasSecondTenant()) return leaveKey;
    try {
      const leaveTenant = this.#tenants.enter(tenant);
      return () => {
        leaveTenant();
        leaveKey();
      };
    } catch (error) {
      leaveKey();
      throw error;
    }
  }
}
