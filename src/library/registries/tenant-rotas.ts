import { checkTenantId } from "../../model/input/tenant-input.ts";
import { TenantRota, type TenantRotaParts } from "../tenant-rota.ts";

/** How many are kept: making one anew costs some microseconds and loses nothing. */
const KEPT_MAX = 1_000;

/** What each tenant can do in this process, made when it is first asked for. */
export class TenantRotas {
  readonly #parts: TenantRotaParts;
  /** The one that was asked for last is the last. */
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
