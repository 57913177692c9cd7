import { setTimeout as sleep } from "node:timers/promises";
import { CpuCost } from "../cpu-cost.ts";
import { type Measure, task } from "./measure.ts";

/** What starting, and the first task, leave to be done is done by then. */
const SETTLE_MS = 3_000;

/** Percent of one core that a started system with nothing to do takes: its process, and with its database's server. */
export const idle: Measure = async ({ queue, url, sizes }) => {
  await queue.start(() => null);
  await queue.add(task(0));
  await sleep(SETTLE_MS);
  const cpu = await CpuCost.of(url);
  const begun = performance.now();
  await sleep(sizes.idleSec * 1_000);
  const elapsedMs = performance.now() - begun;
  const { ownMs, serverMs } = await cpu.read();
  return { own: (ownMs / elapsedMs) * 100, all: ((ownMs + serverMs) / elapsedMs) * 100 };
};
