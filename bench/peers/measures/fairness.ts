import { setTimeout as sleep } from "node:timers/promises";
import { percentile } from "../../figure.ts";
import type { Task } from "../queue.ts";
import { type Measure, PER_CALL } from "./measure.ts";

const BIG = "big";

/** Milliseconds that tasks of agents with few wait from the first start on, behind one agent that came first with many. */
export const fairness: Measure = async ({ queue, sizes }) => {
  const { big, smallAgents, each, taskMs } = sizes.fairness;
  const small = smallAgents * each;
  await addAll(queue.addMany, { count: big, agentOf: () => BIG });
  await addAll(queue.addMany, { count: small, agentOf: (n) => `small-${n % smallAgents}` });

  let begun: number | null = null;
  const waits: number[] = [];
  await new Promise<void>((resolve, reject) => {
    const handler = async ({ agentId }: Task) => {
      const now = performance.now();
      begun ??= now;
      if (agentId !== BIG && waits.push(now - begun) === small) resolve();
      await sleep(taskMs);
    };
    queue.start(handler).catch(reject);
  });
  return { p50: percentile(waits, 50), last: percentile(waits, 100) };
};

async function addAll(
  addMany: (tasks: readonly Task[]) => Promise<void>,
  { count, agentOf }: { count: number; agentOf: (n: number) => string },
): Promise<void> {
  const tasks = Array.from({ length: count }, (_, n) => ({ agentId: agentOf(n), n }));
  for (let from = 0; from < count; from += PER_CALL) await addMany(tasks.slice(from, from + PER_CALL));
}
