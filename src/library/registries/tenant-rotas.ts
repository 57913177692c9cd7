import { checkTenantId } from "../../model/input/tenant-input.ts";
import { TenantRota, type TenantRotaParts } from "../tenant-rota.ts";

/** How many are cached: making one again takes some microseconds and loses nothing. */
const KEPT_MAX = 1_000;

/** A cache of the API objects of tenants in this process; each is made on first use. */
export class TenantRotas {
  readonly #parts: TenantRotaParts;
  /** In order of use, the last used one last. */
  readonly #kept = new Map<string, TenantRota>();

  constructor(parts: TenantRotaParts) {
    this.#parts = parts;
  }

  /** Throws `invalid_field` for what cannot be the id of a tenant. */
  of(id: string): TenantRota {
    const known = this.#kept.get(id);
    if (known !== undefined) this.#kept.delete(id);
    const rota = known ?? new TenantRota(checkTenantId(id), this.#parts);
    this.#kept.set(id, rota);
    if (this.#kept.size > KEPT_MAX) this.#kept.delete(this.#kept.keys().next().value as string);
    return rota;
  }
}
