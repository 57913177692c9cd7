import { Command } from "commander";
import type { SchedulerStats } from "../model/scheduler-stats.ts";
import { oneLine } from "./display-text.ts";
import { lineWidth, print, printJson } from "./print.ts";
import { openClient, type ServerFlags, withServerOptions } from "./server-options.ts";
import { sheetLines } from "./sheet.ts";
import { tableLines } from "./table.ts";
import { shownMoment, shownSpan } from "./times.ts";

/** `rota stats`: how much waits, runs and was done. */
export function statsCommand(): Command {
  const command = new Command("stats").description("Show how much waits, runs and was done.");
  return withServerOptions(command).action(async (flags: ServerFlags) => {
    const client = openClient(flags);
    if (flags.json) return printJson(await client.stats());
    const [stats, { startedAt }] = await Promise.all([client.stats(), client.health()]);
    const shown = { width: lineWidth(), startedAt, now: Date.now() };
    for (const line of statsLines(stats, shown)) print(line);
  });
}

interface StatsLinesParams {
  readonly width?: number | undefined;
  /** From when on the process counts. */
  readonly startedAt: string;
  readonly now: number;
}

/** The queue is the whole tenant's, what was done is that process's since it started. */
export function statsLines(
  { queue, metrics, config }: SchedulerStats,
  { width, startedAt, now }: StatsLinesParams,
): string[] {
  const agents = new Set([...Object.keys(queue.agentCounts), ...Object.keys(metrics.agents)]);
  const rows = [...agents].sort().map((agent) => {
    const done = metrics.agents[agent];
    const counts = [
      queue.agentCounts[agent],
      done?.submitted,
      done?.completed,
      done?.failed,
      done?.cancelled,
      done?.rejected,
    ];
    return [oneLine(agent), ...counts.map((count) => String(count ?? 0))];
  });
  const numbers = ["QUEUED", "SUBMITTED", "DONE", "FAILED", "CANCELLED", "REJECTED"];
  return [
    ...sheetLines([
      ["queued", `${queue.totalQueued} of ${config.maxQueueSize}`],
      ["running", `${queue.totalInflight} (up to ${config.maxInflight} in the lane tasks)`],
      ["counted", `by this process since ${shownMoment(startedAt, now)}:`],
      ["submitted", String(metrics.tasksSubmitted)],
      ["done", String(metrics.tasksCompleted)],
      ["failed", `${metrics.tasksFailed}, ${metrics.tasksExpired} of them too late to start`],
      ["cancelled", String(metrics.tasksCancelled)],
      ["rejected", String(metrics.tasksRejected)],
      ["started", `${metrics.dispatchCount}, after ${shownSpan(metrics.avgDispatchLatencyMs)} on average`],
      ["strategy", config.strategy],
    ]),
    ...(rows.length === 0
      ? []
      : [
          "",
          ...tableLines(
            [
              { title: "AGENT", shrinksTo: 8 },
              ...numbers.map((title) => ({ title, align: "right" as const })),
            ],
            rows,
            { width },
          ),
        ]),
  ];
}
