import { Command } from "commander";
import type { StatsSeriesQuery } from "../../model/input/stats-series-input.ts";
import type { SchedulerStats } from "../../model/scheduler-stats.ts";
import { numberFlag, pastMomentFlag } from "../flags/flag-values.ts";
import { given } from "../flags/given.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { oneLine } from "../terminal/display-text.ts";
import { lineWidth, print, printJson } from "../terminal/print.ts";
import { UsageError } from "../terminal/usage-error.ts";
import { seriesLines } from "../views/series-table.ts";
import { sheetLines } from "../views/sheet.ts";
import { tableLines } from "../views/table.ts";
import { shownMoment, shownSpan } from "../views/times.ts";

interface StatsFlags extends ServerFlags {
  readonly series?: string | true;
  readonly by?: string;
  readonly from?: string;
  readonly to?: string;
  readonly step?: string;
}

/** `rota stats`: how many tasks wait, run and have ended; with `--series`, over time. */
export function statsCommand(): Command {
  const command = new Command("stats")
    .description("Show how many tasks wait, run and are done; with --series, over time.")
    .option(
      "--series [metrics]",
      "show it over time: submitted,started,done,failed,cancelled,tokens,waitMs,runMs",
    )
    .option("--by <what>", "with --series: a line for each lane or agent")
    .option(
      "--from <time>",
      "with --series: since 2030-01-31T09:00:00Z, or a span back from now: 2h (default: 60 steps)",
    )
    .option("--to <time>", "with --series: until (default: now)")
    .option("--step <seconds>", "with --series: 60, 3600 or 86400 (default: 60)");
  return withServerOptions(command).action(async (flags: StatsFlags) => {
    const client = openClient(flags);
    if (flags.series !== undefined) return printSeries(flags);
    const lone = (["by", "from", "to", "step"] as const).find((name) => flags[name] !== undefined);
    if (lone !== undefined) throw new UsageError(`--${lone} needs --series`);
    if (flags.json) return printJson(await client.stats());
    const [stats, { startedAt }] = await Promise.all([client.stats(), client.health()]);
    const shown = { width: lineWidth(), startedAt, now: Date.now() };
    for (const line of statsLines(stats, shown)) print(line);
  });
}

async function printSeries(flags: StatsFlags): Promise<void> {
  const { series, by, from, to, step } = flags;
  const now = Date.now();
  const query = given({
    metrics: typeof series === "string" ? series.split(",") : undefined,
    by,
    from: from === undefined ? undefined : pastMomentFlag("--from", from, now),
    to: to === undefined ? undefined : pastMomentFlag("--to", to, now),
    step: step === undefined ? undefined : numberFlag(step),
  });
  const answer = await openClient(flags).statsSeries(query as StatsSeriesQuery);
  if (flags.json) return printJson(answer);
  for (const line of seriesLines(answer, lineWidth())) print(line);
}

interface StatsLinesParams {
  readonly width?: number | undefined;
  /** When the process started to count. */
  readonly startedAt: string;
  readonly now: number;
}

/** The queue is that of the whole tenant. The counts of ended tasks are those of the process since it started. */
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
      ["running", `${queue.totalInflight} (${bound(config.maxInflight)} in the lane tasks)`],
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

/** 0: there is none. */
function bound(maxInflight: number): string {
  return maxInflight === 0 ? "no limit over all nodes" : `up to ${maxInflight}`;
}
