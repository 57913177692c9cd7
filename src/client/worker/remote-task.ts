import { FALLBACK_LANE } from "../../model/lane.ts";
import { DEFAULT_PRIORITY } from "../../model/priority.ts";
import { DEFAULT_RETRY_POLICY } from "../../model/retry-policy.ts";
import type { Task } from "../../model/task.ts";
import type { ClaimedAttempt } from "./wire.ts";

/**
 * The task of an attempt as handlers get it in the process of Rota. Fields that the server leaves out have their defaults: what
 * they say is for Rota alone.
 */
export function remoteTask({ task, number }: ClaimedAttempt): Task {
  return {
    lane: FALLBACK_LANE,
    priority: DEFAULT_PRIORITY,
    state: "running",
    position: 0,
    createdAt: "",
    retryPolicy: DEFAULT_RETRY_POLICY,
    retryCount: number - 1,
    attempts: [{ number, startedAt: "", endedAt: null, outcome: null, error: null, node: "" }],
    ...task,
  };
}
