/** Short, so that as much is deleted as is inserted, long before the end. */
export const RETENTION_SEC = 20;
/** Agents that are there all the time. */
export const WORKERS = ["worker-0", "worker-1", "worker-2", "worker-3", "worker-4"] as const;

/** The configuration of the server whose agents are at `agentsUrl`. */
export function configFor(agentsUrl: string): object {
  const executor = { type: "http", url: agentsUrl };
  return {
    scheduler: {
      workerCount: 20,
      maxInflight: 20,
      maxPerAgentInflight: 10,
      maxQueueSize: 5_000,
      maxPerAgent: 1_000,
      resultTTLSec: RETENTION_SEC,
    },
    sessions: { debounceMs: 30 },
    retry: { backoffMs: 100, maxBackoffMs: 500 },
    // By kind, for the agents that come and go; by name for those that schedules need.
    executors: { instruction: executor, message: executor, custom: executor },
    agents: Object.fromEntries([...WORKERS, "talker", "ticker"].map((name) => [name, { executor }])),
    webhooks: { allow: ["127.0.0.1"] },
  };
}
