import { Histogram } from "./histogram.ts";
import type { Labels, Metric } from "./text-format.ts";

/** Counts of this process for the tasks of one agent in one lane. */
export class TaskSeries {
  submitted = 0;
  rejected = 0;
  started = 0;
  completed = 0;
  failed = 0;
  cancelled = 0;
  expired = 0;
  retried = 0;
  preempted = 0;
  readonly wait = new Histogram();
  readonly run = new Histogram();
}

type Counter = Exclude<keyof TaskSeries, "wait" | "run">;

const COUNTERS: Readonly<Record<Counter, string>> = {
  submitted: "Tasks that this process accepted.",
  rejected: "Tasks that this process rejected because the queue was full.",
  started: "Attempts that this process started.",
  completed: "Tasks that are done.",
  failed: "Tasks that failed for good, expired ones and those of lost nodes included.",
  cancelled: "Cancelled tasks, except those whose dependency was not done.",
  expired: "Tasks that passed their deadline before they started.",
  retried: "Attempts that failed or were lost and after which there will be another.",
  preempted: "Attempts that this process stopped so that a critical task could start; the tasks run again.",
};

const DURATIONS = {
  wait: "How long tasks waited: from when a task could start to its start.",
  run: "How long attempts ran, whatever their outcome.",
} as const;

export interface LabelledSeries {
  readonly labels: Labels;
  readonly series: TaskSeries;
}

/** Counters and durations of tasks, by agent and lane. */
export function taskMetrics(all: readonly LabelledSeries[]): Metric[] {
  const pick = (what: keyof TaskSeries) => all.map(({ labels, series }) => ({ labels, value: series[what] }));
  return [
    ...Object.entries(COUNTERS).map(
      ([what, help]): Metric => ({
        name: `rota_tasks_${what}_total`,
        help,
        type: "counter",
        series: pick(what as Counter),
      }),
    ),
    ...Object.entries(DURATIONS).map(
      ([what, help]): Metric => ({
        name: `rota_task_${what}_seconds`,
        help,
        type: "histogram",
        series: pick(what as keyof typeof DURATIONS),
      }),
    ),
  ];
}
