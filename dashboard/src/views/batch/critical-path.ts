import type { Batch, TaskRow } from "../../../../src/client/index.ts";

/** Times of a task, in milliseconds since 1970. */
interface Times {
  /** Undefined: it has not started. */
  readonly startedAt: number | undefined;
  /** When it ended, or now. */
  readonly until: number;
  readonly hasEnded: boolean;
}

export interface CriticalPath {
  /** From the first task to the last. */
  readonly ids: readonly string[];
  /** How much of it was execution, and how much waiting, in milliseconds. */
  readonly runMs: number;
  readonly waitMs: number;
}

/**
 * The chain of dependencies that decided when the batch ended, or that it waits for now: from the task that ended last, back to
 * the dependency that ended last, and so on. Shortening any other task would not have ended the batch earlier.
 */
export function criticalPath(
  { edges, createdAt }: Pick<Batch, "edges" | "createdAt">,
  rows: readonly TaskRow[],
  now: number,
): CriticalPath {
  const times = new Map(rows.map((row) => [row.taskId, timesOf(row, now)]));
  const before = new Map<string, string[]>();
  const isBeforeAnother = new Set<string>();
  for (const { from, to } of edges) {
    before.set(to, [...(before.get(to) ?? []), from]);
    if (endedBefore(times.get(from), times.get(to))) isBeforeAnother.add(from);
  }
  const ids: string[] = [];
  const ends = [...times.keys()].filter((id) => !isBeforeAnother.has(id));
  for (let id = latest(ends, times); id !== undefined && !ids.includes(id); ) {
    ids.unshift(id);
    id = latest(before.get(id) ?? [], times);
  }
  const steps = ids.flatMap((id) => times.get(id) ?? []);
  const runMs = steps.reduce(
    (sum, { startedAt, until }) => sum + (startedAt === undefined ? 0 : until - startedAt),
    0,
  );
  const allMs = (steps.at(-1)?.until ?? 0) - Date.parse(createdAt);
  return { ids, runMs, waitMs: steps.length === 0 ? 0 : Math.max(0, allMs - runMs) };
}

function timesOf({ startedAt, completedAt }: TaskRow, now: number): Times {
  return {
    startedAt: startedAt === undefined ? undefined : Date.parse(startedAt),
    until: completedAt === undefined ? now : Date.parse(completedAt),
    hasEnded: completedAt !== undefined,
  };
}

/** Short tasks can end in the millisecond in which the tasks they depend on end. */
function endedBefore(dependency: Times | undefined, dependant: Times | undefined): boolean {
  if (dependency === undefined || dependant === undefined) return false;
  return dependency.hasEnded && dependency.until <= dependant.until;
}

/** The task that ended last. Of those that have not ended: one that runs, or that started first. */
function latest(ids: readonly string[], times: ReadonlyMap<string, Times>): string | undefined {
  const known = ids.flatMap((id) => {
    const each = times.get(id);
    return each === undefined ? [] : [{ id, ...each }];
  });
  const [first] = known.sort(
    (one, other) =>
      other.until - one.until ||
      (one.startedAt ?? Number.POSITIVE_INFINITY) - (other.startedAt ?? Number.POSITIVE_INFINITY) ||
      (one.id < other.id ? -1 : 1),
  );
  return first?.id;
}
