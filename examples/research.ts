// Research that fans out: four questions, two at a time, and a report once all of them are answered.
import { createRota } from "rota";

const rota = await createRota({ storage: "sqlite::memory:" });

let running = 0;
let most = 0;
rota.agent("researcher", async (task) => {
  running += 1;
  most = Math.max(most, running);
  // An agent reads, asks a model, or uses a browser.
  await new Promise((resolve) => setTimeout(resolve, 20));
  running -= 1;
  return `${task.instruction} Many things.`;
});
rota.agent("writer", async (task) => (task.dependencies ?? []).map(({ result }) => result).join("\n"));
await rota.start();

const questions = ["bees", "ants", "wasps", "moths"];
const { batchId, taskIds } = await rota.tasks.submitBatch({
  agentId: "researcher",
  parallelism: 2,
  tasks: [
    ...questions.map((question) => ({ key: question, instruction: `What do ${question} eat?` })),
    { agentId: "writer", instruction: "Write a report", dependsOn: questions },
  ],
});

for await (const event of rota.events({ after: 0, batchId })) {
  if (event.type === "batch.completed") {
    console.log("all have ended:", event.counts);
    break;
  }
}
const report = await rota.tasks.get(taskIds.at(-1) ?? "");
console.log(report.result);
console.log("at once:", most);

await rota.stop();

// Prints:
// all have ended: { done: 5 }
// What do bees eat? Many things.
// What do ants eat? Many things.
// What do wasps eat? Many things.
// What do moths eat? Many things.
// at once: 2
