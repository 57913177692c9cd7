import type { DependencyResult } from "../model/task.ts";
import type { Storage } from "../storage/storage.ts";
import { type PatientReadParams, readPatiently } from "./patient-read.ts";

export interface DependencyResultsParams extends Omit<PatientReadParams<unknown>, "read"> {
  readonly storage: Storage;
  readonly seq: number;
}

/** Reads what the tasks resulted in that one depends on. */
export function readDependencyResults(params: DependencyResultsParams): Promise<DependencyResult[]> {
  const { storage, seq, ...patience } = params;
  return readPatiently({ ...patience, read: () => storage.tasks.dependencyResults({ seq }) });
}
