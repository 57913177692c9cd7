import type {
  RotatedWebhookSecret,
  Tenant,
  TenantChanges,
  TenantInput,
  TenantList,
  Tenants,
} from "../interface/tenants.ts";
import { invalidField } from "../model/input/field-checks.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";

/** Tenants over HTTP. */
export class HttpTenants implements Tenants {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  create(input: TenantInput, { signal }: CallOptions = {}): Promise<Tenant> {
    return this.#connection.ask({ method: "POST", path: "/v1/tenants", body: input ?? null, signal });
  }

  list({ signal }: CallOptions = {}): Promise<TenantList> {
    return this.#connection.ask({ path: "/v1/tenants", signal });
  }

  async get(id: string, { signal }: CallOptions = {}): Promise<Tenant> {
    return this.#connection.ask({ path: tenantPath(id), signal });
  }

  async update(id: string, changes: TenantChanges, { signal }: CallOptions = {}): Promise<Tenant> {
    return this.#connection.ask({
      method: "PATCH",
      path: tenantPath(id),
      body: changes ?? null,
      signal,
      // Idempotent: sending the same changes again changes nothing.
      repeatable: true,
    });
  }

  async disable(id: string, { signal }: CallOptions = {}): Promise<Tenant> {
    return this.#connection.ask({
      method: "POST",
      path: `${tenantPath(id)}/disable`,
      signal,
      repeatable: true,
    });
  }

  async enable(id: string, { signal }: CallOptions = {}): Promise<Tenant> {
    return this.#connection.ask({
      method: "POST",
      path: `${tenantPath(id)}/enable`,
      signal,
      repeatable: true,
    });
  }

  async delete(id: string, { signal }: CallOptions = {}): Promise<{ readonly deleted: true }> {
    return this.#connection.ask({
      method: "DELETE",
      path: tenantPath(id),
      signal,
      repeatable: true,
      whenDone: ({ code }) => (code === "not_found" ? { deleted: true } : undefined),
    });
  }

  async rotateWebhookSecret(id: string, { signal }: CallOptions = {}): Promise<RotatedWebhookSecret> {
    return this.#connection.ask({ method: "POST", path: `${tenantPath(id)}/webhook-secret`, signal });
  }
}

/** An empty id would be the path of the list. In a URL `.` and `..` are relative steps, even when encoded. */
function tenantPath(id: string): string {
  if (id === "" || id === "." || id === "..") {
    throw invalidField("id", `\`id\` must name a tenant, and "${id}" cannot be named in a URL`);
  }
  return `/v1/tenants/${encodeURIComponent(id)}`;
}
