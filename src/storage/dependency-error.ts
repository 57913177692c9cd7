import type { TerminalState } from "../model/task-state.ts";

/** What the `error` of a task says that was cancelled because something it depends on was not done. */
export function dependencyError(cause: string, state: Exclude<TerminalState, "done">): string {
  return `dependency ${cause} ${state}`;
}

/** The task that such an error names; null for any other error. */
export function namedDependency(error: string | null): string | null {
  return /^dependency (\S+) (?:failed|cancelled|rejected)$/.exec(error ?? "")?.[1] ?? null;
}

/**
 * Why dependants of a task come back. It takes the place of the error in a release row, so that a graph of any size comes
 * back in the same durable slices in which it was cancelled.
 */
export interface ComeBack {
  /** The task that the caller retried. */
  readonly retried: string;
  /** What the error of the row's task named before it came back; null: nothing. */
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
 * Whether a cancelled dependant of `parent` was cancelled because of what comes back. A cancellation is passed on with the
 * error it began with; a task submitted later is cancelled with an error that names its direct dependency.
 */
export function isNamedBy(error: string | null, parent: string, { retried, named }: ComeBack): boolean {
  const cause = namedDependency(error);
  return cause !== null && (cause === parent || cause === retried || cause === named);
}
