import { dependencyResult } from "../../model/dependency-result.ts";
import { DEPENDENCY_BYTES_MAX, type DependencyResult } from "../../model/task.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import { TurnBudget } from "../../services/turn-budget.ts";
import type { Storage, StoredDependency } from "../../storage/storage.ts";
import { type PatientReadParams, readPatiently } from "./patient-read.ts";

/** Results up to this size are read in the first query, together with the sizes of the others. */
const SMALL_BYTES = 16_384;
/** The others are read in slices of this many bytes: reading a megabyte takes some milliseconds. */
const SLICE_BYTES = 262_144;

/** How much starting tasks read in one turn of the event loop. */
const READ_PER_TURN = { pieces: 100, bytes: 524_288 } as const;

export interface DependencyReaderOptions extends Omit<PatientReadParams<unknown>, "read" | "signal"> {
  readonly storage: Storage;
}

/** The results of the dependencies of a task, as its executor gets them. */
export interface ReadDependencies {
  readonly results: readonly DependencyResult[];
  /** How many bytes of text they hold. */
  readonly bytes: number;
}

/** Reads the results of a task's dependencies. Yields to other work between tasks that start together, by tenant. */
export class DependencyReader {
  readonly #options: DependencyReaderOptions;
  /** For first queries. They are small, and run side by side. */
  readonly #small = new TurnBudget<string>(READ_PER_TURN);
  /** For slices: a few at a time with pauses, since they would take all connections of a database and most of the event loop. */
  readonly #large = new TurnBudget<string>({ ...READ_PER_TURN, rest: 2 });

  constructor(options: DependencyReaderOptions) {
    this.#options = options;
  }

  async read(
    { seq, spec, tenant }: Pick<TaskRecord, "seq" | "tenant" | "spec">,
    signal: AbortSignal,
  ): Promise<ReadDependencies> {
    const { storage, ...patience } = this.#options;
    const read = (ids: readonly string[], bytesMax: number): Promise<StoredDependency[]> => {
      const readOnce = () => storage.tasks.dependencyResults({ seq, ids, bytesMax });
      return readPatiently({ ...patience, signal, read: readOnce });
    };
    if (this.#small.isOver) await this.#small.next(tenant);
    const reading = read(spec.dependsOn ?? [], SMALL_BYTES);
    this.#small.used(SMALL_BYTES);
    const stored = await reading;
    const known = stored.filter(({ result }) => result !== null);
    let bytes = known.reduce((sum, { resultBytes }) => sum + resultBytes, 0);
    const { slices, omitted } = slicesOf(stored.slice(known.length), DEPENDENCY_BYTES_MAX - bytes);
    for (const slice of slices) {
      known.push(...(await this.#large.during(tenant, slice.bytes, () => read(slice.ids, slice.bytes))));
      bytes += slice.bytes;
    }
    if (slices.length > 0) {
      // The executor serializes and sends them: that is as much work again, in another turn of the event loop.
      await this.#large.next(tenant);
      this.#large.used(bytes);
    }
    return { results: [...known, ...omitted].map(toDependencyResult), bytes };
  }
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
