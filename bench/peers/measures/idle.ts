import { setTimeout as sleep } from "node:timers/promises";
import { ServerCpu } from "../server-cpu.ts";
import { type Measure, task } from "./measure.ts";

/** What starting, and the first task, leave to be done is done by then. */
const SETTLE_MS = 3_000;

/** Percent of one core that a started system with nothing to do takes: its process, and with its database's server. */
export const idle: Measure = async ({ queue, url, sizes }) => {
  await queue.start(() => null);
  await queue.add(task(0));
  await sleep(SETTLE_MS);
  const server = await ServerCpu.of(url);
  const [ownBefore, serverBefore] = [process.cpuUsage(), await server.readMs()];
  const begun = performance.now();
  await sleep(sizes.idleSec * 1_000);
  const own = process.cpuUsage(ownBefore);
  const serverMs = (await server.readMs()) - serverBefore;
  const elapsedMs = performance.now() - begun;
  const ownMs = (own.user + own.system) / 1_000;
  return { own: (ownMs / elapsedMs) * 100, all: ((ownMs + serverMs) / elapsedMs) * 100 };
};
