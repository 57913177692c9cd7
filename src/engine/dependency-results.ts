import { DEPENDENCY_BYTES_MAX, type DependencyResult } from "../model/task.ts";
import type { TaskRecord } from "../model/task-record.ts";
import type { Storage, StoredDependency } from "../storage/storage.ts";
import { type PatientReadParams, readPatiently } from "./patient-read.ts";

export interface ReadDependenciesParams extends Omit<PatientReadParams<unknown>, "read"> {
  readonly storage: Storage;
  readonly record: Pick<TaskRecord, "seq" | "spec">;
}

/** What an executor gets of the results of the tasks that its own depends on. */
export interface ReadDependencies {
  readonly results: readonly DependencyResult[];
  /** How many bytes of text they hold. */
  readonly bytes: number;
}

export async function readDependencies(params: ReadDependenciesParams): Promise<ReadDependencies> {
  const { storage, record, ...patience } = params;
  const { seq, spec } = record;
  const ids = spec.dependsOn ?? [];
  const stored = await readPatiently({
    ...patience,
    read: () => storage.tasks.dependencyResults({ seq, ids, bytesMax: DEPENDENCY_BYTES_MAX }),
  });
  const bytes = stored.reduce((sum, { result, resultBytes }) => sum + (result === null ? 0 : resultBytes), 0);
  return { results: stored.map(toDependencyResult), bytes };
}

/** Parsed JSON takes up to thirteen times as much memory as its text: the text is what is kept. */
function toDependencyResult({ taskId, resultBytes, result: text }: StoredDependency): DependencyResult {
  if (text === null) return { taskId, resultBytes, omitted: true };
  return {
    taskId,
    get result() {
      return JSON.parse(text);
    },
  };
}
