import type { FullQueue } from "./task-storage.ts";

/** What a rejected task's `error` says, by the queue that was full. */
export function rejectionError(full: FullQueue): string {
  return `rejected: ${full} queue full`;
}

/** The same the other way round. */
export function fullQueueOf(error: string | null): FullQueue {
  const queues: readonly FullQueue[] = ["server", "global"];
  return queues.find((full) => error === rejectionError(full)) ?? "agent";
}
