import type { EventType } from "../../../src/model/event.ts";
import type { Counted, History } from "../history.ts";

/** The events behind each number of the statistics over time. */
const COUNTED: Readonly<Record<keyof Counted["counts"], EventType>> = {
  submitted: "task.created",
  started: "task.started",
  done: "task.completed",
  failed: "task.failed",
  cancelled: "task.cancelled",
};

/** The metrics that `counted` looks at. */
export const COUNTED_METRICS = Object.keys(COUNTED) as (keyof typeof COUNTED)[];

/** How often each of them is in a log. */
function countLog(events: History["events"]): Counted["counts"] {
  const count = (wanted: EventType) => events.filter(({ type }) => type === wanted).length;
  return {
    submitted: count(COUNTED.submitted),
    started: count(COUNTED.started),
    done: count(COUNTED.done),
    failed: count(COUNTED.failed),
    cancelled: count(COUNTED.cancelled),
  };
}

/** Every event of the log is in the statistics over time, once. */
export function counted({ events, counted: all = [] }: Pick<History, "events" | "counted">): string[] {
  return all.flatMap(({ tenantId, counts }) => {
    const happened = countLog(events.filter((event) => event.tenantId === tenantId));
    return COUNTED_METRICS.filter((metric) => counts[metric] !== happened[metric]).map(
      (metric) => `${tenantId}: ${counts[metric]} are counted as ${metric}, and ${happened[metric]} were`,
    );
  });
}
