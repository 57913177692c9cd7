import type { FullQueue } from "./task-storage.ts";

/** The `error` of a rejected task, by the queue that was full. */
export function rejectionError(full: FullQueue): string {
  return `rejected: ${full} queue full`;
}
