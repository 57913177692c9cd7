import type { DependencyResultsParams, StoredDependency } from "../../storage.ts";
import { findTask, type OracleState } from "../state.ts";

export function dependencyResults(
  state: OracleState,
  { seq, ids, bytesMax }: DependencyResultsParams,
): StoredDependency[] {
  const task = state.tasks.find((candidate) => candidate.seq === seq);
  let left = bytesMax;
  return ids.flatMap((id) => {
    const parent = task?.dependsOn.includes(id) ? findTask(state, { tenant: task.tenant, id }) : undefined;
    if (parent?.state !== "done") return [];
    const result = JSON.stringify(parent.result);
    const resultBytes = Buffer.byteLength(result);
    left = resultBytes <= left ? left - resultBytes : -1;
    return { taskId: id, resultBytes, result: left < 0 ? null : result };
  });
}
