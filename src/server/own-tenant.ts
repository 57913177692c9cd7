import type { KeyInfo, Keys } from "../interface/keys.ts";
import { RotaError } from "../model/errors.ts";
import { isObject } from "../model/input/field-checks.ts";
import { keyTenantNotFound } from "../model/input/key-input.ts";
import type { Caller } from "../model/role.ts";

/** For routes with the permission `manage`: an `admin` manages any tenant, a `tenant-admin` its own. Throws `not_found`. */
export function checkOwnTenant(caller: Caller, id: unknown): void {
  if (!isManagedBy(caller, id)) throw new RotaError("not_found", "tenant not found");
}

function isManagedBy({ role, tenant }: Caller, id: unknown): boolean {
  return role === "admin" || id === tenant;
}

/** The keys that a caller manages: all of them, or those of its own tenant but for `admin` keys. */
export function managedKeys(keys: Keys, caller: Caller): Keys {
  if (caller.role === "admin") return keys;
  const isManaged = ({ role }: KeyInfo) => role !== "admin";
  const checkTenant = (id: unknown) => {
    if (id !== undefined && !isManagedBy(caller, id)) throw keyTenantNotFound();
  };
  return {
    async create(input) {
      if (isObject(input)) checkTenant(input["tenantId"]);
      if (isObject(input) && input["role"] === "admin") {
        throw new RotaError(
          "forbidden",
          `\`role\`: a \`${caller.role}\` key cannot create \`admin\` keys: write another role, like "operator"`,
        );
      }
      return keys.create(input);
    },
    async list(owner = {}) {
      checkTenant(owner.tenantId);
      const managed = (await keys.list(owner)).keys.filter(isManaged);
      return { keys: managed, count: managed.length };
    },
    async delete(id, owner = {}) {
      checkTenant(owner.tenantId);
      const found = (await keys.list(owner)).keys.find((key) => key.id === id);
      if (found !== undefined && !isManaged(found)) throw new RotaError("not_found", "key not found");
      return keys.delete(id, owner);
    },
  };
}
