import type { Bulk, BulkInput, BulkPreview, Bulks, StartedBulk } from "../interface/bulks.ts";
import { RotaError } from "../model/errors.ts";
import { looksLikeTaskId } from "../model/task-id.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";

/** Bulk actions over HTTP. */
export class HttpBulks implements Bulks {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  preview(input: BulkInput, { signal }: CallOptions = {}): Promise<BulkPreview> {
    const body = { ...input, dryRun: true };
    return this.#connection.ask({ method: "POST", path: "/v1/tasks/bulk", body, signal, repeatable: true });
  }

  start(input: BulkInput, { signal }: CallOptions = {}): Promise<StartedBulk> {
    return this.#connection.ask({ method: "POST", path: "/v1/tasks/bulk", body: input ?? null, signal });
  }

  async get(bulkId: string, { signal }: CallOptions = {}): Promise<Bulk> {
    return this.#connection.ask({ path: bulkPath(bulkId), signal });
  }

  async abort(bulkId: string, { signal }: CallOptions = {}): Promise<Bulk> {
    const path = `${bulkPath(bulkId)}/abort`;
    return this.#connection.ask({ method: "POST", path, signal, repeatable: true });
  }
}

/** A text that cannot be an id might lead to another route, so no request is sent. */
function bulkPath(bulkId: string): string {
  if (!looksLikeTaskId(bulkId)) throw new RotaError("not_found", "bulk action not found");
  return `/v1/bulk/${bulkId}`;
}
