import { styleText } from "node:util";
import type { DeliveryStatus } from "../model/delivery.ts";
import type { TaskState } from "../model/task-state.ts";

type Style = Parameters<typeof styleText>[0];

/** Styled where a terminal shows it; in a pipe, or with NO_COLOR, as it is. */
export function styled(style: Style, text: string): string {
  return styleText(style, text);
}

const STATE_STYLES: Readonly<Record<TaskState | DeliveryStatus, Style>> = {
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
};

export function styledState(state: TaskState | DeliveryStatus): string {
  return styled(STATE_STYLES[state] ?? "reset", state);
}
