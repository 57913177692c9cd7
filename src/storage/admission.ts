import type { FullQueue } from "./task-storage.ts";

/** The `error` of a rejected task, by the queue that was full. */
export function rejectionError(full: FullQueue): string {
  return `rejected: ${full} queue full`;
}

/** The reverse: the queue that was full, from the `error`. */
export function fullQueueOf(error: string | null): FullQueue {
  const queues: readonly FullQueue[] = ["server", "global"];
  return queues.find((full) => error === rejectionError(full)) ?? "agent";
}
