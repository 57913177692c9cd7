import type {
  DeletedWorker,
  WorkerInfo,
  WorkerList,
  WorkerPageInput,
  Workers,
} from "../interface/workers.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";

/** Workers over HTTP, as people see and stop them. */
export class HttpWorkers implements Workers {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  list(page: WorkerPageInput = {}, { signal }: CallOptions = {}): Promise<WorkerList> {
    return this.#connection.ask({ path: "/v1/workers", query: { ...page }, signal });
  }

  get(id: string, { signal }: CallOptions = {}): Promise<WorkerInfo> {
    return this.#connection.ask({ path: `/v1/workers/${encodeURIComponent(id)}`, signal });
  }

  drain(id: string, { signal }: CallOptions = {}): Promise<WorkerInfo> {
    return this.#connection.ask({
      method: "POST",
      path: `/v1/workers/${encodeURIComponent(id)}/drain`,
      signal,
    });
  }

  delete(id: string, { signal }: CallOptions = {}): Promise<DeletedWorker> {
    return this.#connection.ask({
      method: "DELETE",
      path: `/v1/workers/${encodeURIComponent(id)}`,
      signal,
    });
  }
}
