import { isTerminal, type TaskState } from "../../../src/model/task-state.ts";
import type { History } from "../history.ts";
import { replay } from "./replay.ts";

/** Each batch is reported as complete once, when the last of its tasks has ended. */
export function batches({ events }: History): string[] {
  const findings: string[] = [];
  const members = new Map<string, Set<string>>();
  const completed = new Set<string>();
  for (const { event, states } of replay(events)) {
    const { batchId, taskId, type, seq } = event;
    if (batchId === undefined) continue;
    const batch = members.get(batchId) ?? new Set();
    members.set(batchId, batch);
    if (type !== "batch.completed") {
      if (completed.has(batchId) && !batch.has(taskId))
        findings.push(`batch ${batchId} was complete when ${taskId} was added to it (event ${seq})`);
      batch.add(taskId);
      continue;
    }
    if (completed.has(batchId))
      findings.push(`batch ${batchId} was reported as complete twice (event ${seq})`);
    completed.add(batchId);
    for (const id of batch) {
      const state: TaskState = states.get(id) ?? "queued";
      if (!isTerminal(state))
        findings.push(`batch ${batchId} was reported as complete while ${id} was ${state} (event ${seq})`);
    }
  }
  for (const batchId of members.keys())
    if (!completed.has(batchId)) findings.push(`batch ${batchId} was never reported as complete`);
  return findings;
}
