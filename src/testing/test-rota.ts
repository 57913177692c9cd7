import type { RotaOptions } from "../interface/options.ts";
import type { Rota } from "../interface/rota.ts";
import { createRota } from "../rota.ts";
import { ManualClock } from "./manual-clock.ts";

/**
 * A Rota in memory whose clock moves only when the test moves it.
 *
 * @example
 * const { rota, clock } = await createTestRota();
 * rota.agent("slow", () => new Promise(() => {}));
 * await rota.start();
 * const { taskId } = await rota.tasks.submit({ agentId: "slow", payload: 1, timeout: 5_000 });
 * await clock.advance(5_000);
 * console.log((await rota.tasks.get(taskId)).error); // timed out after 5000 ms
 */
export async function createTestRota(
  options: Omit<RotaOptions, "storage" | "clock"> & { clock?: ManualClock } = {},
): Promise<{ rota: Rota; clock: ManualClock }> {
  const clock = options.clock ?? new ManualClock();
  const rota = await createRota({ random: () => 0.5, ...options, storage: "sqlite::memory:", clock });
  return { rota, clock };
}
