import type { LocalTenant } from "../interface/rota.ts";
import type { Caller } from "../model/role.ts";
import type { Permission } from "../tenants/permissions.ts";
import type { Charge, DeclaredWork } from "./middleware/charge-requests.ts";

/** Who is asking, and what they see of Rota: their tenant's work, or that of their agent alone. */
export interface Visitor {
  readonly caller: Caller;
  readonly rota: LocalTenant;
  /** What they came with; null: nobody was asked for a key. */
  readonly key: string | null;
}

declare module "fastify" {
  interface FastifyRequest {
    visitor: Visitor;
    /** The visitor's. There is no other for a route to take by mistake. */
    readonly rota: LocalTenant;
    /** What the request was about, as far as it is known. */
    subject: string | null | undefined;
    /** What its key is charged for it; null: no key was asked for. */
    charge: Charge | null;
  }

  interface FastifyContextConfig {
    /** What the route lets whoever asks do. Every route says so, or the server does not start. */
    access?: Permission;
    /** Whether it takes a `limit` and answers a page of rows. */
    paged?: boolean;
    /** How much work the body or the query of a request asks for. */
    declares?: (body: unknown, query: unknown) => DeclaredWork;
  }
}
