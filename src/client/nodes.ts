import type { NodeList, Nodes } from "../interface/nodes.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";

/** Nodes over HTTP. */
export class HttpNodes implements Nodes {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  list({ signal }: CallOptions = {}): Promise<NodeList> {
    return this.#connection.ask({ path: "/v1/nodes", signal });
  }
}
