import type { TenantAccess } from "../../interface/rota.ts";
import { agentKey, checkAgentId } from "../../model/agent.ts";
import { checkTenantId } from "../../model/input/tenant-input.ts";
import { OF_LIBRARY, type Provenance, provenanceKey } from "../../model/provenance.ts";
import type { Scope } from "../../model/scope.ts";
import { TenantRota, type TenantRotaParts } from "../tenant-rota.ts";

/** How many are cached: making one again takes some microseconds and loses nothing. */
const KEPT_MAX = 1_000;

/** A cache of the API objects of tenants and agents in this process; each is made on first use. */
export class TenantRotas {
  readonly #parts: TenantRotaParts;
  /** In order of use, the last used one last. */
  readonly #kept = new Map<string, TenantRota>();

  constructor(parts: TenantRotaParts) {
    this.#parts = parts;
  }

  /** Throws `invalid_field` for what cannot be the id of a tenant or an agent. */
  of(id: string, access: TenantAccess = {}): TenantRota {
    const { agentId, provenance = OF_LIBRARY, bounds, besideBounds, delegates } = access;
    const tenant = checkTenantId(id);
    const scope: Scope =
      agentId === undefined
        ? { tenant }
        : { tenant, agent: checkAgentId(agentId), ...(delegates && { delegates }) };
    // No agent has an empty id: that is the key of the whole tenant.
    const key = agentKey({ tenant, agent: scope.agent ?? "" }) + callerKey(provenance, access);
    const known = this.#kept.get(key);
    if (known !== undefined) this.#kept.delete(key);
    const rota = known ?? new TenantRota(scope, { provenance, bounds, besideBounds }, this.#parts);
    this.#kept.set(key, rota);
    if (this.#kept.size > KEPT_MAX) this.#kept.delete(this.#kept.keys().next().value as string);
    return rota;
  }
}

/** Differs for callers that make things in another name, or under other bounds. */
function callerKey(provenance: Provenance, { bounds, besideBounds, delegates }: TenantAccess): string {
  const own = provenanceKey(provenance);
  const more = [bounds, besideBounds, delegates];
  return more.every((each) => each === undefined) ? own : own + JSON.stringify(more);
}
