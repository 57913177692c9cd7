// An agent that calls other agents: they run in another lane, so that it can wait for them without taking their slots.
import { createRota } from "rota";

// One slot in `main`, and the lead holds it: in the same lane its helpers would wait for it for ever.
const rota = await createRota({ storage: "sqlite::memory:", lanes: { main: 1, subagent: 3 } });

rota.agent("reader", { lane: "subagent" }, async (task) => `${task.instruction}: two pages`);
rota.agent("writer", { lane: "subagent" }, async (task) =>
  (task.dependencies ?? []).map(({ result }) => result).join(", "),
);
rota.agent("lead", async (task, { signal }) => {
  const topics = ["bees", "ants", "wasps"];
  const { batchId, taskIds } = await rota.tasks.submitBatch({
    agentId: "reader",
    tasks: [
      ...topics.map((topic) => ({ key: topic, instruction: topic })),
      // Starts when all of them are done, and gets their results.
      { agentId: "writer", instruction: "Sum it up", dependsOn: topics },
    ],
  });
  // Cancelling the lead cancels its helpers.
  signal.addEventListener("abort", () => void rota.tasks.cancelBatch(batchId).catch(() => {}));
  const summary = await rota.tasks.wait(taskIds.at(-1) ?? "", { signal });
  return `${task.message} ${summary.result}`;
});
await rota.start();

const { result } = await rota.sessions.ask("user:42", { message: "On insects:", agentId: "lead" });
console.log(result); // On insects: bees: two pages, ants: two pages, wasps: two pages

await rota.stop();
