import { type NewStorage, withStorage } from "./empty-storage.ts";
import { openRota, perSecond, taskInputs } from "./workload.ts";

/** Tasks a second that one caller submits by `submitMany`, one call after the other, nothing being run meanwhile. */
export function measureSubmitMany(
  newStorage: NewStorage,
  { tasks, perCall }: { tasks: number; perCall: number },
): Promise<number> {
  return withStorage(newStorage, async (target) => {
    const rota = await openRota(target.url, {});
    const inputs = taskInputs(tasks);
    const calls = Array.from({ length: Math.ceil(tasks / perCall) }, (_, call) =>
      inputs.slice(call * perCall, (call + 1) * perCall),
    );
    const begun = performance.now();
    for (const call of calls) await rota.tasks.submitMany(call);
    const elapsedMs = performance.now() - begun;
    await rota.stop();
    return perSecond(tasks, elapsedMs);
  });
}
