import type { CreatedKey, KeyInput, KeyList, KeyOwner, Keys } from "../interface/keys.ts";
import { invalidField } from "../model/input/field-checks.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";

/** Keys over HTTP. */
export class HttpKeys implements Keys {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  create(input: KeyInput, { signal }: CallOptions = {}): Promise<CreatedKey> {
    return this.#connection.ask({ method: "POST", path: "/v1/keys", body: input ?? null, signal });
  }

  list(owner: KeyOwner = {}, { signal }: CallOptions = {}): Promise<KeyList> {
    return this.#connection.ask({ path: "/v1/keys", query: { ...owner }, signal });
  }

  async delete(
    id: string,
    owner: KeyOwner = {},
    { signal }: CallOptions = {},
  ): Promise<{ readonly deleted: true }> {
    return this.#connection.ask({
      method: "DELETE",
      path: keyPath(id),
      query: { ...owner },
      signal,
      repeatable: true,
      whenDone: ({ code }) => (code === "not_found" ? { deleted: true } : undefined),
    });
  }
}

/** An empty id would be the path of the list. In a URL `.` and `..` are relative steps, even when encoded. */
function keyPath(id: string): string {
  if (id === "" || id === "." || id === "..") {
    throw invalidField("id", `\`id\` must name a key, and "${id}" cannot be named in a URL`);
  }
  return `/v1/keys/${encodeURIComponent(id)}`;
}
