import type { LaneInfo, LaneInput, LaneList, Lanes } from "../interface/lanes.ts";
import { invalidField } from "../model/input/field-checks.ts";
import { LANE_NAME_FORM } from "../model/lane.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";

/** Lanes over HTTP. */
export class HttpLanes implements Lanes {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  list({ signal }: CallOptions = {}): Promise<LaneList> {
    return this.#connection.ask({ path: "/v1/lanes", signal });
  }

  async put(name: string, input: LaneInput, { signal }: CallOptions = {}): Promise<LaneInfo> {
    return this.#connection.ask({
      method: "PUT",
      path: lanePath(name),
      body: input ?? null,
      signal,
      // Idempotent: sending the same settings again changes nothing.
      repeatable: true,
    });
  }

  async clear(name: string, { signal }: CallOptions = {}): Promise<{ readonly cancelled: number }> {
    return this.#connection.ask({ method: "POST", path: `${lanePath(name)}/clear`, signal });
  }
}

/** An empty name would be the path of the list. In a URL `.` and `..` are relative steps, even when encoded. */
function lanePath(name: string): string {
  if (name === "" || name === "." || name === "..") {
    throw invalidField("name", `the name of a lane is ${LANE_NAME_FORM}; this is "${name}"`);
  }
  return `/v1/lanes/${encodeURIComponent(name)}`;
}
