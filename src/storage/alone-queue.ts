import { DEFAULT_AGENT } from "../model/agent.ts";
import type { TaskKind } from "../model/task.ts";

/**
 * Tasks that run alone in their process wait in an agent queue of their own, which ordinary claims skip. The `kind` of such a
 * queue begins with this prefix. After it comes the kind of its tasks, '' if every node can execute all kinds for the agent.
 */
export const ALONE = "alone:";
export type AloneKind = `${typeof ALONE}${TaskKind | ""}`;

/** After this many losses, each with its process, a task runs alone. */
export const ALONE_AFTER_LOSSES = 2;

export function aloneKindOf(agent: string, kind: TaskKind): AloneKind {
  return `${ALONE}${agent === DEFAULT_AGENT ? "" : kind}`;
}

export function isAloneKind(kind: string | null): kind is AloneKind {
  return kind?.startsWith(ALONE) ?? false;
}

/** The kind of tasks in an agent queue, whether or not they run alone; '': all kinds. */
export function heldKind(kind: TaskKind | "" | AloneKind): TaskKind | "" {
  return (isAloneKind(kind) ? kind.slice(ALONE.length) : kind) as TaskKind | "";
}

export function lostError(losses: number): string {
  return `lost ${losses} ${losses === 1 ? "time" : "times"}`;
}
