// One slot, held by a long task that is preemptible: a critical task takes the slot, then the long task runs again.
import { createRota } from "rota";

const rota = await createRota({ storage: "sqlite::memory:", scheduler: { workerCount: 1 } });

rota.agent("worker", async (task, { signal }) => {
  console.log("begins to", task.payload);
  if (task.attempts.length > 1 || task.priority === 0) return;
  // The first time it takes for ever: until a critical task needs the slot.
  await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
});
await rota.start();

const archive = await rota.tasks.submit({
  agentId: "worker",
  payload: "sort the archive",
  priority: "low",
  preemptible: true,
});
while ((await rota.tasks.get(archive.taskId)).state !== "running") await new Promise(setImmediate);
await rota.tasks.submit({ agentId: "worker", payload: "put out the fire", priority: "critical" });

const { state, retryCount, attempts } = await rota.tasks.wait(archive.taskId);
console.log(state, retryCount);
for (const { number, outcome } of attempts) console.log(number, outcome);

await rota.stop();

// Prints:
// begins to sort the archive
// begins to put out the fire
// begins to sort the archive
// done 0
// 1 preempted
// 2 done
