// A long task reports its progress, and stops when it is cancelled.
import { createRota } from "rota";

const rota = await createRota({ storage: "sqlite::memory:" });

rota.agent("crawler", async (task, { progress, signal }) => {
  progress({ page: 1 });
  // Hand the signal to whatever takes long: a fetch, a model, a child process.
  await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  return task.payload;
});
await rota.start();

const events = rota.events();
const { taskId } = await rota.tasks.submit({ agentId: "crawler", payload: { site: "example.org" } });

for await (const event of events) {
  console.log(event.type, event.state, event.progress ?? "");
  if (event.type === "task.progress") await rota.tasks.cancel(taskId);
  if (event.type === "task.cancelled") break;
}

await rota.stop();

// Prints:
// task.created queued
// task.started running
// task.progress running { page: 1 }
// task.cancelled cancelled
