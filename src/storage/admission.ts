/** What a rejected task's `error` says, by the queue that was full. */
export function rejectionError(full: "global" | "agent"): string {
  return full === "global" ? "rejected: global queue full" : "rejected: agent queue full";
}
