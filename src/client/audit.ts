import type { Audit, AuditFilter, AuditPage } from "../interface/audit.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";

/** The audit log over HTTP. */
export class HttpAudit implements Audit {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  list(filter: AuditFilter = {}, { signal }: CallOptions = {}): Promise<AuditPage> {
    return this.#connection.ask({ path: "/v1/audit", query: { ...filter }, signal });
  }
}
