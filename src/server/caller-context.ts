import type { LocalTenant, TenantAccess } from "../interface/rota.ts";
import type { Provenance } from "../model/provenance.ts";
import type { Caller, Role } from "../model/role.ts";
import type { Permission } from "../tenants/permissions.ts";
import type { Charge, DeclaredWork } from "./middleware/charge-requests.ts";

/** The caller of a request, and the part of Rota that they see: their tenant, or their agent in it. */
export interface CallerContext {
  readonly caller: Caller;
  readonly rota: LocalTenant;
  readonly provenance: Provenance;
  /** What `rota` was made with: the agent, the bounds and the provenance of the caller. */
  readonly access: TenantAccess;
  /** The key of the caller; null: the server has no keys. */
  readonly key: string | null;
  /** What the caller may do at most. That of `caller`, or less with an API key beside a task token. */
  readonly role: Role;
}

declare module "fastify" {
  interface FastifyRequest {
    callerContext: CallerContext;
    /** That of the caller. Routes have no other that they could take by mistake. */
    readonly rota: LocalTenant;
    /** The id or name that the request is about, as far as it is known. */
    subject: string | null | undefined;
    /** Whether a web page of an origin in `server.cors.origins` sent the request. */
    isListedOrigin: boolean;
    /** What the key is charged for the request; null: the server has no keys. */
    charge: Charge | null;
    /** The worker of the attempt that the request names, once it is known that the caller may act for it. */
    attemptWorker: string | null;
  }

  interface FastifyContextConfig {
    /** The permission that a caller needs. The server does not start if a route has none. */
    access?: Permission;
    /** Whether it takes a `limit` and returns a page of rows. */
    paged?: boolean;
    /** How much work the body or the query of a request asks for. */
    declares?: (body: unknown, query: unknown) => DeclaredWork;
  }
}
