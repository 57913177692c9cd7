import type { WritAnswer, WritInput, Writs } from "../interface/writs.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";

/** Writs (`/schedule …`) over HTTP. */
export class HttpWrits implements Writs {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  carryOut(input: WritInput, { signal }: CallOptions = {}): Promise<WritAnswer> {
    return this.#connection.ask({ method: "POST", path: "/v1/writs", body: input ?? null, signal });
  }
}
