import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { MEASURES, type MeasureName } from "./measures/index.ts";
import type { Values } from "./measures/measure.ts";
import type { Tuning } from "./queue.ts";
import type { PeerSizes } from "./sizes.ts";
import { findSystem } from "./systems/index.ts";

export interface RunOrders {
  readonly system: string;
  readonly measure: MeasureName;
  readonly url: string;
  readonly tuning: Tuning;
  readonly sizes: PeerSizes;
  readonly count?: number;
}

type Answer = { readonly values: Values } | { readonly failure: string };

/** Some take their time; what takes longer hangs. */
const RUN_MS_MAX = 10 * 60_000;
/** After the figures are there, stopping is a courtesy. */
const STOP_MS_MAX = 10_000;

/** Takes one measurement in a process of its own, so that none inherits another's memory, compiled code or faults. */
export async function runMeasure(orders: RunOrders): Promise<Values> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(orders)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), RUN_MS_MAX);
  let answer: Answer = { failure: "it ended without figures" };
  child.on("message", (message) => {
    answer = message as Answer;
  });
  const [, signal] = await once(child, "close");
  clearTimeout(timer);
  return valuesOf(answer, signal);
}

function valuesOf(answer: Answer, signal: unknown): Values {
  if ("values" in answer) return answer.values;
  throw new Error(signal === "SIGKILL" ? "it did not end in time" : answer.failure);
}

/** The other side. */
async function obey(orders: RunOrders): Promise<void> {
  // The parent process has gone.
  process.once("disconnect", () => process.exit(1));
  const { url, tuning, sizes, count = 0 } = orders;
  const queue = await findSystem(orders.system).open({ url, tuning });
  const values = await MEASURES[orders.measure]({ queue, url, tuning, sizes, count });
  await Promise.race([queue.stop(), sleep(STOP_MS_MAX)]);
  await answerWith({ values });
}

async function answerWith(answer: Answer): Promise<void> {
  await new Promise((resolve) => process.send?.(answer, resolve));
  process.exit(0);
}

if (import.meta.main && process.argv[2] !== undefined) {
  try {
    await obey(JSON.parse(process.argv[2]) as RunOrders);
  } catch (error) {
    await answerWith({ failure: error instanceof Error ? error.message : String(error) });
  }
}
