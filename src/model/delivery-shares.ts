/** How many deliveries go on at once, and who gets how many of them. */
export interface DeliveryShares {
  /** All together. */
  readonly slots: number;
  /** A tenant gets another slot while it holds less than this many times the slots that are free. */
  readonly tenantFactor: number;
  /** Of the slots: those that hosts which are not proven share. */
  readonly unprovenSlots: number;
  /** As `tenantFactor`, for the slots of hosts that are not proven. */
  readonly unprovenFactor: number;
  /** To one host of a tenant. */
  readonly perHost: number;
  /** To one host of a tenant that is not proven. */
  readonly perUnprovenHost: number;
}

/**
 * A host is proven for a tenant once a delivery of that tenant reached it, until so many in a row failed. It starts as if
 * they had: what is new is treated like what fails.
 */
export const FAILURES_MAX = 3;

/** Proven hosts of a tenant that are remembered while nothing is pending for them: those that were served last. */
export const IDLE_HOSTS_MAX = 500;

/** A delivery that goes on. */
export interface HeldDelivery {
  readonly tenant: string;
  readonly host: string;
  /** Whether the host was proven when it was claimed. */
  readonly proven: boolean;
}

/** Counts the deliveries that go on, and says who may have another. */
export class DeliveryCount {
  readonly #shares: DeliveryShares;
  readonly #held: HeldDelivery[];

  constructor(shares: DeliveryShares, held: readonly HeldDelivery[]) {
    this.#shares = shares;
    this.#held = [...held];
  }

  add(delivery: HeldDelivery): void {
    this.#held.push(delivery);
  }

  /** Whether no tenant may have another one to hosts of this kind. */
  isOver({ proven }: { proven: boolean }): boolean {
    return this.#free <= 0 || (!proven && this.#unprovenFree <= 0);
  }

  /** Tenants that may not have another one to hosts of this kind: all of them hold some. */
  fullTenants({ proven }: { proven: boolean }): Set<string> {
    const tenants = [...new Set(this.#held.map(({ tenant }) => tenant))];
    return new Set(tenants.filter((tenant) => this.#isTenantFull(tenant, proven)));
  }

  /** Hosts of a tenant that may not have another one while they are of this kind: all of them hold some. */
  fullHosts({ tenant, proven }: { tenant: string; proven: boolean }): Set<string> {
    const max = proven ? this.#shares.perHost : this.#shares.perUnprovenHost;
    const hosts = this.#held.filter((each) => each.tenant === tenant).map(({ host }) => host);
    return new Set(hosts.filter((host) => hosts.filter((other) => other === host).length >= max));
  }

  #isTenantFull(tenant: string, proven: boolean): boolean {
    const own = this.#held.filter((each) => each.tenant === tenant);
    if (own.length >= this.#shares.tenantFactor * this.#free) return true;
    const unproven = own.filter((each) => !each.proven);
    return !proven && unproven.length >= this.#shares.unprovenFactor * this.#unprovenFree;
  }

  get #free(): number {
    return this.#shares.slots - this.#held.length;
  }

  get #unprovenFree(): number {
    return this.#shares.unprovenSlots - this.#held.filter(({ proven }) => !proven).length;
  }
}
