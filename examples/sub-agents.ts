// An agent that calls other agents: they run in another lane, so that it can wait for them without taking their slots.
import { createRota } from "rota";

// One slot in `main`, and the lead holds it: in the same lane its helpers would wait for it for ever.
const rota = await createRota({ storage: "sqlite::memory:", lanes: { main: 1, subagent: 3 } });

rota.agent("reader", { lane: "subagent" }, async (task) => `${task.instruction}: two pages`);
rota.agent("writer", { lane: "subagent" }, async (task) =>
  (task.dependencies ?? []).map(({ result }) => result).join(", "),
);
rota.agent("lead", async (task, { submit, signal }) => {
  // What a handler submits with its context is below its own task: cancelling that with `{ tree: true }` cancels all of it.
  const read = (topic: string) => submit({ agentId: "reader", instruction: topic });
  const readers = await Promise.all(["bees", "ants", "wasps"].map(read));
  // Starts when all of them are done, and gets their results.
  const dependsOn = readers.map(({ taskId }) => taskId);
  const writer = await submit({ agentId: "writer", instruction: "Sum it up", dependsOn });
  const summary = await rota.tasks.wait(writer.taskId, { signal });
  return `${task.message} ${summary.result}`;
});
await rota.start();

const { taskId } = await rota.tasks.submit({ message: "On insects:", agentId: "lead" });
console.log((await rota.tasks.wait(taskId)).result);
const { tasks } = await rota.tasks.list({ rootTaskId: taskId });
console.log(tasks.map(({ agentId }) => agentId).join(" "));

await rota.stop();

// Prints:
// On insects: bees: two pages, ants: two pages, wasps: two pages
// writer reader reader reader
