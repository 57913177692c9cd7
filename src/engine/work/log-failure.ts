import type { Settlement } from "../../model/outcome.ts";
import { DEFAULT_TENANT } from "../../model/tenant.ts";
import type { Attempt } from "./attempt.ts";

/** Logs a failed attempt, so that an operator sees in the log of the server that agents do not work. */
export function logFailure(attempt: Attempt, settlement: Settlement): void {
  if (settlement.to === "done" || settlement.to === "queued") return;
  const { tenant } = attempt.record;
  const owner = tenant === DEFAULT_TENANT ? {} : { tenant };
  const { error } = settlement;
  if (settlement.to === "delayed") {
    const retryAt = new Date(settlement.runAt).toISOString();
    attempt.nodeLog.warn({ ...owner, error, retryAt }, "an attempt failed; the task is tried again");
  } else {
    attempt.nodeLog.warn({ ...owner, error }, "an attempt failed, and with it the task");
  }
}
