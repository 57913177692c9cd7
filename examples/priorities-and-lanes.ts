// One slot, three tasks: the critical one goes first, and a task in another lane does not wait for them.
import { createRota } from "rota";

const rota = await createRota({
  storage: "sqlite::memory:",
  scheduler: { workerCount: 1 },
  lanes: { chat: 5 },
});
rota.agent("worker", async (task) => console.log("did", task.payload));

await rota.tasks.submit({ agentId: "worker", payload: "the weekly report", priority: "low" });
await rota.tasks.submit({ agentId: "worker", payload: "the mail" });
await rota.tasks.submit({ agentId: "worker", payload: "the fire", priority: "critical" });
const chat = await rota.tasks.submit({ message: "hello", lane: "chat" });

// Nothing runs before this; what was submitted has been waiting, durably.
await rota.start();
await rota.tasks.wait(chat.taskId);
for (const { taskId } of (await rota.tasks.list({ agentId: "worker" })).tasks) await rota.tasks.wait(taskId);
await rota.stop();

// Prints:
// did the fire
// did the mail
// did the weekly report
