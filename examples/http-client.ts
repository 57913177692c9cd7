// A program that calls a Rota server over HTTP. Start the server first: npm start
import { RotaClient, RotaError } from "rota/client";

const rota = new RotaClient({ url: "http://127.0.0.1:7682" });

// Follow what happens while it happens; a lost connection is made again, and nothing is missed.
const events = rota.events({ agentId: "index" });
const batch = await rota.tasks.submitBatch({ tasks: [{ message: "one" }, { message: "two" }] });

let ended = 0;
for await (const event of events) {
  if (event.batchId !== batch.batchId || event.type !== "task.completed") continue;
  ended += 1;
  if (ended === batch.count) break;
}

const tasks = await Promise.all(batch.taskIds.map((taskId) => rota.tasks.wait(taskId)));
console.log(tasks.map(({ state, result }) => [state, result]));

try {
  await rota.tasks.cancel(tasks[0]?.taskId ?? "");
} catch (error) {
  if (error instanceof RotaError) console.log(error.code, error.message);
}

// Prints:
// [ [ 'done', 'one' ], [ 'done', 'two' ] ]
// conflict task is already done
