import type { FastifyRequest } from "fastify";
import type { LocalAudit, NewAuditRecord } from "../../interface/audit.ts";
import type { Clock, Timer } from "../../model/clock.ts";
import { DEFAULT_TENANT } from "../../model/tenant.ts";
import { addressOf } from "../address.ts";
import { routeOf } from "./audit.ts";

/** The refusals that are recorded: no valid key, a role that may not, and over a limit. */
const STATUSES = [401, 403, 429] as const;

const WINDOW_MS = 60_000;
/**
 * The most entries in one window: for a key (or an address without one), for a tenant, and for the node. Others are only counted.
 */
const ENTRIES_MAX = { source: 5, tenant: 20, all: 60 } as const;
/** Sources whose further refusals are counted by themselves in one window. */
const COUNTED_MAX = 60;

export interface RefusalsOptions {
  readonly audit: LocalAudit;
  readonly clock: Clock;
  /** Counts each refusal for the metrics. `access`: the permission that the route needs; `none`: there is no such route. */
  readonly onRefused: (refusal: {
    readonly tenantId: string;
    readonly status: number;
    readonly access: string;
  }) => void;
}

type Refusal = Pick<NewAuditRecord, "keyId" | "address"> & {
  readonly tenantId: string;
  readonly status: number;
};

/**
 * Records refused requests: the metrics count all, and the audit log has the first few of each minute, by key or address, and
 * the number of the others. So the log grows slowly, even under attack.
 */
export class Refusals {
  readonly #options: RefusalsOptions;
  #window: Timer | null = null;
  /** Entries of this window, by what bounds them. */
  readonly #entries = new Map<string, number>();
  readonly #more = new Map<string, { readonly refusal: Refusal; count: number }>();

  constructor(options: RefusalsOptions) {
    this.#options = options;
  }

  record(request: FastifyRequest, status: number): void {
    if (!(STATUSES as readonly number[]).includes(status)) return;
    const { audit, clock, onRefused } = this.#options;
    const { caller } = request.callerContext ?? {};
    const tenantId = caller?.tenant ?? DEFAULT_TENANT;
    const access = request.routeOptions.config.access ?? "none";
    onRefused({ tenantId, status, access });
    this.#window ??= clock.setTimer(WINDOW_MS, () => this.flush());
    const keyId = caller?.keyId ?? null;
    const refusal = { tenantId, keyId, address: addressOf(request), status };
    if (this.#mayEnter(refusal)) audit.record({ ...refusal, route: routeOf(request) });
    else this.#count(refusal);
  }

  /** Records how many refusals have no entry of their own, and starts a new window. */
  flush(): void {
    this.#window?.cancel();
    this.#window = null;
    this.#entries.clear();
    const more = [...this.#more.values()];
    this.#more.clear();
    for (const { refusal, count } of more) this.#options.audit.record({ ...refusal, route: "*", count });
  }

  #mayEnter({ tenantId, keyId, address, status }: Refusal): boolean {
    const bounds = [
      [`source ${status} ${keyId ?? address}`, ENTRIES_MAX.source],
      [`tenant ${tenantId}`, ENTRIES_MAX.tenant],
      ["all", ENTRIES_MAX.all],
    ] as const;
    if (bounds.some(([name, max]) => (this.#entries.get(name) ?? 0) >= max)) return false;
    for (const [name] of bounds) this.#entries.set(name, (this.#entries.get(name) ?? 0) + 1);
    return true;
  }

  /** Further sources are counted together, by status, in the log of the default tenant. */
  #count(refusal: Refusal): void {
    const { status, keyId, address } = refusal;
    const source = `${status} ${keyId ?? address}`;
    const isOwn = this.#more.has(source) || this.#more.size < COUNTED_MAX;
    const counted: Refusal = isOwn ? refusal : { tenantId: DEFAULT_TENANT, keyId: null, status };
    const name = isOwn ? source : `${status} others`;
    const more = this.#more.get(name) ?? { refusal: counted, count: 0 };
    more.count += 1;
    this.#more.set(name, more);
  }
}
