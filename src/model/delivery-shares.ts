/** How many deliveries run at once, and how tenants and hosts share the slots. */
export interface DeliveryShares {
  /** All slots. */
  readonly slots: number;
  /** A tenant gets another slot while it holds fewer slots than this factor times the free ones. */
  readonly tenantFactor: number;
  /** How many of the slots all unproven hosts share. */
  readonly unprovenSlots: number;
  /** As `tenantFactor`, for the slots of unproven hosts. */
  readonly unprovenFactor: number;
  /** The most deliveries to one host of a tenant. */
  readonly perHost: number;
  /** The same for an unproven host. */
  readonly perUnprovenHost: number;
}

/**
 * A host is proven for a tenant once a delivery of that tenant reached it, until this many in a row have failed. A new host is
 * treated like one that fails.
 */
export const FAILURES_MAX = 3;

/** How many proven hosts of a tenant are remembered without a pending delivery: the last used ones. */
export const IDLE_HOSTS_MAX = 500;

/** A delivery that is being sent. */
export interface HeldDelivery {
  readonly tenant: string;
  readonly host: string;
  /** Whether the host was proven when it was claimed. */
  readonly proven: boolean;
}

/** Counts the deliveries that are being sent, and decides which tenants and hosts may have another. */
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

  /** Whether no tenant may have another delivery to hosts of this kind. */
  isOver({ proven }: { proven: boolean }): boolean {
    return this.#free <= 0 || (!proven && this.#unprovenFree <= 0);
  }

  /** Tenants that may not have another delivery to hosts of this kind. Each of them holds slots. */
  fullTenants({ proven }: { proven: boolean }): Set<string> {
    const tenants = [...new Set(this.#held.map(({ tenant }) => tenant))];
    return new Set(tenants.filter((tenant) => this.#isTenantFull(tenant, proven)));
  }

  /** Hosts of a tenant that may not have another delivery, if they are of this kind. Each of them holds slots. */
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
