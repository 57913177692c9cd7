import { styleText } from "node:util";
import type { DeliveryStatus } from "../../model/delivery.ts";
import type { RunStatus } from "../../model/run.ts";
import type { ScheduleStatus } from "../../model/schedule.ts";
import type { TaskState } from "../../model/task-state.ts";

type Style = Parameters<typeof styleText>[0];

/** Styled on a terminal; plain in a pipe or with NO_COLOR. */
export function styled(style: Style, text: string): string {
  return styleText(style, text);
}

/** The state of a task, delivery, schedule or run. */
export type State = TaskState | DeliveryStatus | ScheduleStatus | RunStatus;

const STATE_STYLES: Readonly<Record<State, Style>> = {
  waiting_dependency: "dim",
  delayed: "dim",
  queued: "yellow",
  assigned: "cyan",
  running: "cyan",
  done: "green",
  failed: "red",
  cancelled: "gray",
  rejected: "magenta",
  pending: "yellow",
  delivered: "green",
  active: "green",
  paused: "yellow",
  completed: "gray",
  succeeded: "green",
  skipped: "gray",
  missed: "magenta",
};

export function styledState(state: State): string {
  return styled(STATE_STYLES[state] ?? "reset", state);
}
