import type { Metric, Series } from "./text-format.ts";

const REFUSALS = ["rate", "quota"] as const;
/** Why a request was refused: the rate limit of its key, or a quota of its tenant. */
export type Refusal = (typeof REFUSALS)[number];

/** Shown until the first refusal. */
const NONE_YET: readonly Series[] = ["401", "403", "429"].map((status) => ({
  labels: { status, access: "none" },
  value: 0,
}));

/** The requests that this process refused. */
export class RequestMetrics {
  readonly #refused: Record<Refusal, number> = { rate: 0, quota: 0 };
  /** By tenant, then by labels. There are few statuses and permissions. */
  readonly #denied = new Map<string, Map<string, { readonly labels: Series["labels"]; value: number }>>();

  refused(reason: Refusal): void {
    this.#refused[reason] += 1;
  }

  denied({ tenantId, status, access }: { tenantId: string; status: number; access: string }): void {
    const ofTenant = this.#denied.get(tenantId) ?? new Map();
    this.#denied.set(tenantId, ofTenant);
    const name = `${status} ${access}`;
    const series = ofTenant.get(name) ?? { labels: { status: String(status), access }, value: 0 };
    ofTenant.set(name, series);
    series.value += 1;
  }

  /** Drops the counts of a deleted tenant. */
  forget(tenant: string): void {
    this.#denied.delete(tenant);
  }

  metrics(tenant: string): Metric[] {
    const denied = [...(this.#denied.get(tenant)?.values() ?? [])];
    return [
      {
        name: "rota_requests_refused_total",
        help: "Requests that this process refused because of what they cost: the rate of their key, or what their tenant stores.",
        type: "counter",
        series: REFUSALS.map((reason) => ({ labels: { reason }, value: this.#refused[reason] })),
      },
      {
        name: "rota_requests_denied_total",
        help: "Requests that this process refused with 401, 403 or 429, by the permission that the route needs. Requests without a valid key count for the tenant default.",
        type: "counter",
        series: [
          ...denied,
          ...NONE_YET.filter(({ labels }) => !denied.some((each) => isSame(each.labels, labels))),
        ],
      },
    ];
  }
}

function isSame(one: Series["labels"], other: Series["labels"]): boolean {
  return one["status"] === other["status"] && one["access"] === other["access"];
}
