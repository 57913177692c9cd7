import { agentKey, checkAgentId } from "../../model/agent.ts";
import { checkTenantId } from "../../model/input/tenant-input.ts";
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
  of(id: string, agentId?: string): TenantRota {
    const tenant = checkTenantId(id);
    const scope = agentId === undefined ? { tenant } : { tenant, agent: checkAgentId(agentId) };
    // No agent has an empty id: that is the key of the whole tenant.
    const key = agentKey({ tenant, agent: scope.agent ?? "" });
    const known = this.#kept.get(key);
    if (known !== undefined) this.#kept.delete(key);
    const rota = known ?? new TenantRota(scope, this.#parts);
    this.#kept.set(key, rota);
    if (this.#kept.size > KEPT_MAX) this.#kept.delete(this.#kept.keys().next().value as string);
    return rota;
  }
}
