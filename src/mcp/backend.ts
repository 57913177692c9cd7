import type { TenantApi } from "../interface/rota.ts";
import type { RotaError } from "../model/errors.ts";
import type { Role } from "../model/role.ts";
import type { Task } from "../model/task.ts";

/** The part of Rota that tools use: the same in this process and over HTTP. */
export type McpRota = Pick<TenantApi, "tasks" | "sessions" | "schedules" | "runs" | "agents">;

/** Who calls. */
export interface McpCaller {
  readonly role: Role;
  /** The only agent that it may act for; null: any. */
  readonly agentId: string | null;
  /** Its API key; null: none is required. */
  readonly keyId: string | null;
}

/** What a connection of an MCP client has behind it: a Rota in this process, or one over HTTP. */
export interface McpBackend {
  readonly caller: McpCaller;
  /** Signs what a client keeps between the rounds of a question. Every node that may get the next round must have the same. */
  readonly secret: Uint8Array;
  /** Rota for the caller. `client`: the name and version that the client gave of itself; null: none. */
  rota(client: string | null): McpRota;
  /** Returns the task once it has ended, or as it is after `seconds`. */
  wait(taskId: string, options: { readonly seconds: number; readonly signal: AbortSignal }): Promise<Task>;
  /** The time, in milliseconds since 1970. */
  now(): number;
  /** How long ended tasks are kept, in milliseconds; null: not known. */
  retentionMs(): Promise<number | null>;
  /** Called once for each change that was made, with the name and version of the client. */
  changed(change: McpChange, client: string | null): void;
  /** Called for each call that was refused. */
  refused(error: RotaError): void;
  /** Called with an error that is not Rota's. Returns the sentence for the client. */
  failed(error: unknown): string;
}

export interface McpChange {
  /** The tool, and for `change` what it did: `change cancel`. */
  readonly tool: string;
  /** The id or name of what was changed. */
  readonly subject: string;
  /** Whether a caller chose that name, such as the key of a session. */
  readonly isChosen: boolean;
}
