import type { TerminalState } from "../model/task-state.ts";

/** The `error` of a task that was cancelled because a dependency ended without being done. */
export function dependencyError(cause: string, state: Exclude<TerminalState, "done">): string {
  return `dependency ${cause} ${state}`;
}

/** The task that such an error names; null for any other error. */
export function namedDependency(error: string | null): string | null {
  return /^dependency (\S+) (?:failed|cancelled|rejected)$/.exec(error ?? "")?.[1] ?? null;
}

/**
 * Why dependants of a task are queued again. A release row holds it instead of an error, so that a graph of any size is brought
 * back in durable slices, as it was cancelled.
 */
export interface ComeBack {
  /** The task that the caller retried. */
  readonly retried: string;
  /** The task that the error of the row's task named before that task was queued again; null: none. */
  readonly named: string | null;
}

const COME_BACK = /^retried (\S+)(?: (\S+))?$/;

export function comeBackText({ retried, named }: ComeBack): string {
  return named === null ? `retried ${retried}` : `retried ${retried} ${named}`;
}

/** Null when the row is about an end. */
export function parseComeBack(text: string | null): ComeBack | null {
  const found = COME_BACK.exec(text ?? "");
  return found?.[1] === undefined ? null : { retried: found[1], named: found[2] ?? null };
}

/**
 * Whether a dependant of `parent` was cancelled because of a task that is now queued again. A cancellation is passed on with
 * the error it began with; a task submitted later is cancelled with an error that names its direct dependency.
 */
export function isNamedBy(error: string | null, parent: string, { retried, named }: ComeBack): boolean {
  const cause = namedDependency(error);
  return cause !== null && (cause === parent || cause === retried || cause === named);
}
