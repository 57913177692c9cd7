import { dependencyResult } from "../../model/dependency-result.ts";
import { DEPENDENCY_BYTES_MAX, type DependencyResult } from "../../model/task.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import type { TurnBudget } from "../../services/turn-budget.ts";
import type { Storage, StoredDependency } from "../../storage/storage.ts";
import { type PatientReadParams, readPatiently } from "./patient-read.ts";

/** Results up to this size are read in the first query, together with the sizes of the others. */
const SMALL_BYTES = 16_384;
/** The others are read in slices of this many bytes: reading a megabyte takes some milliseconds. */
const SLICE_BYTES = 262_144;

/** How much starting tasks read in one turn of the event loop. */
export const DEPENDENCIES_PER_TURN = { pieces: 100, bytes: 524_288, rest: 2 } as const;

export interface ReadDependenciesParams extends Omit<PatientReadParams<unknown>, "read"> {
  readonly storage: Storage;
  readonly record: Pick<TaskRecord, "seq" | "tenant" | "spec">;
  /** Yields to other work between tasks that start together, by tenant. */
  readonly turns: TurnBudget<string>;
}

/** The results of the dependencies of a task, as its executor gets them. */
export interface ReadDependencies {
  readonly results: readonly DependencyResult[];
  /** How many bytes of text they hold. */
  readonly bytes: number;
}

export async function readDependencies(params: ReadDependenciesParams): Promise<ReadDependencies> {
  const { storage, record, turns, ...patience } = params;
  const { seq, spec, tenant } = record;

  function read(ids: readonly string[], bytesMax: number): Promise<StoredDependency[]> {
    const readOnce = () => storage.tasks.dependencyResults({ seq, ids, bytesMax });
    return turns.during(tenant, bytesMax, () => readPatiently({ ...patience, read: readOnce }));
  }

  const stored = await read(spec.dependsOn ?? [], SMALL_BYTES);
  const known = stored.filter(({ result }) => result !== null);
  let bytes = known.reduce((sum, { resultBytes }) => sum + resultBytes, 0);
  const { slices, omitted } = slicesOf(stored.slice(known.length), DEPENDENCY_BYTES_MAX - bytes);
  for (const slice of slices) {
    known.push(...(await read(slice.ids, slice.bytes)));
    bytes += slice.bytes;
  }
  return { results: [...known, ...omitted].map(toDependencyResult), bytes };
}

interface Slice {
  readonly ids: string[];
  bytes: number;
}

/** Slices of the unread results, up to the first result that does not fit into `bytesMax`. */
function slicesOf(
  unread: readonly StoredDependency[],
  bytesMax: number,
): { slices: Slice[]; omitted: readonly StoredDependency[] } {
  const slices: Slice[] = [];
  let left = bytesMax;
  for (const [index, { taskId, resultBytes }] of unread.entries()) {
    left -= resultBytes;
    if (left < 0) return { slices, omitted: unread.slice(index) };
    const last = slices.at(-1);
    if (last !== undefined && last.bytes + resultBytes <= SLICE_BYTES) {
      last.ids.push(taskId);
      last.bytes += resultBytes;
    } else {
      slices.push({ ids: [taskId], bytes: resultBytes });
    }
  }
  return { slices, omitted: [] };
}

function toDependencyResult({ taskId, resultBytes, result: text }: StoredDependency): DependencyResult {
  return text === null ? { taskId, resultBytes, omitted: true } : dependencyResult(taskId, text);
}
