import { extendText } from "./text/json-text.ts";

/** How a request came in. */
export const VIAS = ["http", "mcp", "cli", "library", "writ", "schedule", "worker", "dashboard"] as const;
export type Via = (typeof VIAS)[number];

/** What a client may call itself. What comes by a writ or a schedule, Rota makes itself. */
export const CLIENT_VIAS = ["http", "mcp", "cli", "worker", "dashboard"] as const satisfies readonly Via[];
export type ClientVia = (typeof CLIENT_VIAS)[number];

/** Who made a task, a schedule or an entry of the audit log. */
export interface CreatedBy {
  /** The API key; null: none was required, or the program that embeds Rota made it. */
  readonly keyId: string | null;
  /** The agent on whose behalf it was made; null: a caller that is not bound to one agent. */
  readonly agentId: string | null;
  readonly via: Via;
  /** The name and version that the client claims to have, for instance `claude-code/2.1`. Left out: it named none. */
  readonly client?: string;
}

/** The task in whose attempt something is made. */
export interface EnclosingTask {
  readonly taskId: string;
  /** The first task of its tree; its own id if it has no parent. */
  readonly rootTaskId: string;
  /** 0: it has no parent. */
  readonly depth: number;
}

/** Where something comes from. */
export interface Provenance {
  readonly createdBy: CreatedBy;
  /** Null: it was not made within a task. */
  readonly within: EnclosingTask | null;
  /**
   * The agents that its maker may submit tasks to. What a task makes with its token never goes beyond what the maker of the task
   * may do. Left out: all agents of the tenant.
   */
  readonly reach?: readonly string[];
}

/** The most characters of `client` that are stored. */
const CLIENT_LENGTH_MAX = 100;

/** Calls of the program that embeds Rota. */
export const OF_LIBRARY: Provenance = {
  createdBy: { keyId: null, agentId: null, via: "library" },
  within: null,
};

/** A name that a client claims to have, in a form that is safe to store and show; undefined: there is nothing to show. */
export function clientName(claimed: string | undefined): string | undefined {
  const shown = claimed
    ?.toWellFormed()
    .replaceAll(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, "")
    .trim()
    .slice(0, CLIENT_LENGTH_MAX);
  return shown === "" ? undefined : shown;
}

/** The task as the parent of what its attempts make. `within`: its own parent. */
export function enclosing(id: string, { within }: { readonly within?: EnclosingTask }): EnclosingTask {
  if (within === undefined) return { taskId: id, rootTaskId: id, depth: 0 };
  return { taskId: id, rootTaskId: within.rootTaskId, depth: within.depth + 1 };
}

/** A new task with its provenance. */
export function withProvenance<New extends { readonly spec: object }>(
  task: New,
  { createdBy, within, reach }: Provenance,
): New {
  const more = {
    createdBy,
    ...(within === null ? {} : { within }),
    ...(reach === undefined ? {} : { reach }),
  };
  const spec = { ...task.spec, ...more };
  extendText(spec, task.spec, more);
  return { ...task, spec };
}

/** A text that is equal for equal provenances: the key of a cache. */
export function provenanceKey({ createdBy, within, reach }: Provenance): string {
  const { keyId, agentId, via, client } = createdBy;
  return JSON.stringify([keyId, agentId, via, client, within?.taskId, within?.depth, reach]);
}
