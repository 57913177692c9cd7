import { DEFAULT_AGENT, type TaskKind } from "../model/task.ts";

/**
 * Tasks that run alone in their process wait in a line of their own, which ordinary claims pass over: `kind` of such a line
 * begins with this. What follows is the kind of its tasks, '' for an agent of which every node can execute all kinds.
 */
export const ALONE = "alone:";
export type AloneKind = `${typeof ALONE}${TaskKind | ""}`;

/** A task that was lost with its process so often runs alone from then on. */
export const ALONE_AFTER_LOSSES = 2;

export function aloneKindOf(agent: string, kind: TaskKind): AloneKind {
  return `${ALONE}${agent === DEFAULT_AGENT ? "" : kind}`;
}

export function isAloneKind(kind: string | null): kind is AloneKind {
  return kind?.startsWith(ALONE) ?? false;
}

/** The kind of tasks that a line holds, whether or not they run alone; '': all kinds. */
export function heldKind(kind: TaskKind | "" | AloneKind): TaskKind | "" {
  return (isAloneKind(kind) ? kind.slice(ALONE.length) : kind) as TaskKind | "";
}

export function lostError(losses: number): string {
  return `lost ${losses} ${losses === 1 ? "time" : "times"}`;
}
