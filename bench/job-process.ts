import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Figure } from "./figure.ts";
import type { Findings, Setting } from "./job.ts";
import { JOBS } from "./jobs/index.ts";

interface Orders {
  readonly job: string;
  readonly setting: Setting;
}

/** Runs a job in a process of its own. Node's own options, such as `--cpu-prof`, reach it. */
export async function runInProcess(
  job: string,
  setting: Setting,
  stop: AbortSignal,
): Promise<Figure[] | Findings> {
  const orders: Orders = { job, setting };
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(orders)], {
    serialization: "advanced",
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    signal: stop,
  });
  let figures: Figure[] | Findings | null = null;
  child.on("message", (message) => {
    figures = message as Figure[] | Findings;
  });
  child.on("error", () => {});
  const [code, signal] = await once(child, "close");
  stop.throwIfAborted();
  if (figures === null) throw new Error(`"${job}" ended without figures (${signal ?? code})`);
  return figures;
}

/** The other side: does what it was started for and hands the figures back. */
async function obey(text: string): Promise<void> {
  const { job, setting } = JSON.parse(text) as Orders;
  const entry = JOBS.find(({ name }) => name === job);
  if (entry === undefined) throw new Error(`there is no job "${job}"`);
  const figures = await entry.run(setting);
  process.send?.(figures, () => process.disconnect());
}

if (import.meta.main && process.argv[2] !== undefined) await obey(process.argv[2]);
