import type {
  AgentChanges,
  AgentInfo,
  AgentInput,
  AgentList,
  AgentPageInput,
  Agents,
} from "../interface/agents.ts";
import { invalidField } from "../model/input/field-checks.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";

/** The catalogue of agents over HTTP. */
export class HttpAgents implements Agents {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  create(input: AgentInput, { signal }: CallOptions = {}): Promise<AgentInfo> {
    return this.#connection.ask({ method: "POST", path: "/v1/agents", body: input ?? null, signal });
  }

  list(page: AgentPageInput = {}, { signal }: CallOptions = {}): Promise<AgentList> {
    return this.#connection.ask({ path: "/v1/agents", query: { ...page }, signal });
  }

  async get(id: string, { signal }: CallOptions = {}): Promise<AgentInfo> {
    return this.#connection.ask({ path: agentPath(id), signal });
  }

  async update(id: string, changes: AgentChanges, { signal }: CallOptions = {}): Promise<AgentInfo> {
    return this.#connection.ask({
      method: "PATCH",
      path: agentPath(id),
      body: changes ?? null,
      signal,
      // Idempotent: sending the same changes again changes nothing.
      repeatable: true,
    });
  }

  async delete(id: string, { signal }: CallOptions = {}): Promise<{ readonly deleted: true }> {
    return this.#connection.ask({
      method: "DELETE",
      path: agentPath(id),
      signal,
      repeatable: true,
      whenDone: ({ code }) => (code === "not_found" ? { deleted: true } : undefined),
    });
  }
}

/** An empty id would be the path of the list. In a URL `.` and `..` are relative steps, even when encoded. */
function agentPath(id: string): string {
  if (id === "" || id === "." || id === "..") {
    throw invalidField("id", `\`id\` must name an agent, and "${id}" cannot be named in a URL`);
  }
  return `/v1/agents/${encodeURIComponent(id)}`;
}
