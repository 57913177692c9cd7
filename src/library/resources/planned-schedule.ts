import type { ScheduleDryRun } from "../../interface/schedules.ts";
import type { Redactor } from "../../model/redactor.ts";
import type { NewSchedule } from "../../storage/storage.ts";
import { toScheduledTask } from "./schedule-view.ts";

/** A schedule as it would be shown if it was stored now. */
export function plannedSchedule(
  { tenant, definition, status, nextFireAt, provenance }: NewSchedule,
  redactor: Redactor,
): ScheduleDryRun["scheduled_task"] {
  const { anchorAt } = definition;
  const { id: _id, ...planned } = toScheduledTask(
    {
      ...definition,
      tenant,
      id: 0,
      status,
      revision: 0,
      createdAt: anchorAt,
      updatedAt: anchorAt,
      nextFireAt,
      lastDueAt: null,
      lastRunAt: null,
      lastRunId: null,
      runCount: 0,
      lastStatus: null,
      lastError: null,
      consecutiveFailures: 0,
      pausedReason: null,
      openRuns: 0,
      held: false,
      provenance: provenance ?? null,
    },
    redactor,
  );
  return planned;
}
