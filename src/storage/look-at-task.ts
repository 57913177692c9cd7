import type { TaskRecord } from "../model/task-record.ts";
import type { TaskReads, TaskStatus } from "./task-reads.ts";

/** Tasks up to this size, which are nearly all, are read at once. */
const SMALL_BYTES = 16_384;

/**
 * A task by one read if it is small; else its status, so that the caller decides whether and when the rest is read. Null: there is
 * none.
 */
export async function lookAtTask(
  tasks: TaskReads,
  name: { readonly tenant: string; readonly id: string },
): Promise<TaskRecord | TaskStatus | null> {
  return (await tasks.get({ ...name, bytesMax: SMALL_BYTES })) ?? (await tasks.status(name));
}

/** Whether only the status of the task was read. */
export function isStatus(found: TaskRecord | TaskStatus): found is TaskStatus {
  return "bytes" in found;
}
