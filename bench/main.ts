import { writeFile } from "node:fs/promises";
import { startPostgres } from "../test/postgres/server.ts";
import { readOrders } from "../test/support/program-options.ts";
import { makeBenchFolder } from "./bench-folder.ts";
import { type Orders, parseCommandLine } from "./command-line.ts";
import { type Figure, isMet } from "./figure.ts";
import type { Setting } from "./job.ts";
import { runInProcess } from "./job-process.ts";
import { JOBS, type JobEntry } from "./jobs/index.ts";
import { describeMachine } from "./machine.ts";
import { formatMachine, formatPart, type PartReport } from "./report.ts";

/** Measures what was asked for and prints it. Progress goes to stderr, the report to stdout. */
async function main(orders: Orders): Promise<void> {
  const jobs = JOBS.filter((job) => isWanted(job, orders));
  const interrupted = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => interrupted.abort(new Error(name)));
  const folder = await makeBenchFolder();
  const postgres = jobs.some(({ needsPostgres }) => needsPostgres) ? await openPostgres() : null;
  try {
    const machine = await describeMachine(postgres?.url ?? null);
    console.log(formatMachine(machine));
    const { sizes, turns, neighbours } = orders;
    const setting = { folder: folder.path, postgresUrl: postgres?.url ?? null, sizes, turns, neighbours };
    const reports = await runJobs(jobs, setting, interrupted.signal);
    if (orders.jsonFile !== null) {
      const parts = reports.map(({ part, figures }) => ({
        part,
        figures: figures.map((figure) => ({ ...figure, met: isMet(figure) })),
      }));
      await writeFile(orders.jsonFile, `${JSON.stringify({ machine, sizes, turns, parts }, null, 2)}\n`);
    }
  } finally {
    await postgres?.stop();
    await folder.remove();
  }
}

function isWanted({ part, needsPostgres }: JobEntry, orders: Orders): boolean {
  if (!orders.parts.includes(part)) return false;
  if (part === "neighbours" || part === "lists")
    return orders.storages.includes(needsPostgres ? "postgres" : "sqlite");
  return orders.postgres || !needsPostgres;
}

/** Each part is printed as soon as all its jobs have ended. */
async function runJobs(
  jobs: readonly JobEntry[],
  setting: Setting,
  stop: AbortSignal,
): Promise<PartReport[]> {
  const reports: PartReport[] = [];
  for (const part of new Set(jobs.map((job) => job.part))) {
    const figures: Figure[] = [];
    const texts: string[] = [];
    for (const { name } of jobs.filter((job) => job.part === part)) {
      console.error(name);
      const found = await runInProcess(name, setting, stop);
      figures.push(...("figures" in found ? found.figures : found));
      if ("text" in found) texts.push(found.text);
    }
    const text = texts.length === 0 ? null : texts.join("\n\n");
    const report: PartReport = { part, figures, text };
    console.log(`\n${text ?? formatPart(report)}`);
    reports.push(report);
  }
  return reports;
}

/** One of our own, unless there is one to use: then it had better wait for the disk, too. */
async function openPostgres(): Promise<{ url: string; stop(): Promise<void> }> {
  const existing = process.env["ROTA_TEST_POSTGRES_URL"];
  if (existing !== undefined && existing !== "") return { url: existing, stop: async () => {} };
  return startPostgres({ durable: true });
}

await main(readOrders(parseCommandLine));
