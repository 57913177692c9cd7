import type { Run, RunFilter, RunPage, Runs } from "../interface/schedules.ts";
import { RotaError } from "../model/errors.ts";
import { isSerialId } from "../model/serial-id.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";

/** Runs over HTTP. */
export class HttpRuns implements Runs {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  list(filter: RunFilter = {}, { signal }: CallOptions = {}): Promise<RunPage> {
    return this.#connection.ask({ path: "/v1/runs", query: { ...filter }, signal });
  }

  async get(id: number, { signal }: CallOptions = {}): Promise<Run> {
    const answer = await this.#connection.ask<{ run: Run }>({ path: runPath(id), signal });
    return answer.run;
  }
}

/** A text that cannot be an id might lead to another route, so no request is sent. */
function runPath(id: number): string {
  if (!isSerialId(id)) throw new RotaError("not_found", "run not found");
  return `/v1/runs/${id}`;
}
