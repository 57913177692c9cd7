// A task that fails is retried; one that throws a PermanentError is not.
import { createRota, PermanentError } from "rota";

const rota = await createRota({ storage: "sqlite::memory:" });

let calls = 0;
rota.agent("flaky", async () => {
  calls += 1;
  if (calls < 3) throw new Error("the line is busy");
  return `reached at call ${calls}`;
});
rota.agent("strict", async () => {
  throw new PermanentError("there is no such number");
});
await rota.start();

const retryPolicy = { maxRetries: 5, backoffMs: 10 };
const flaky = await rota.tasks.submit({ agentId: "flaky", payload: {}, retryPolicy });
const strict = await rota.tasks.submit({ agentId: "strict", payload: {}, retryPolicy });

const reached = await rota.tasks.wait(flaky.taskId);
console.log(reached.state, reached.result, reached.retryCount); // done reached at call 3 2
for (const { number, outcome, error } of reached.attempts) console.log(number, outcome, error);

const refused = await rota.tasks.wait(strict.taskId);
console.log(refused.state, refused.error, refused.retryCount); // failed there is no such number 0

await rota.stop();

// Prints:
// done reached at call 3 2
// 1 failed the line is busy
// 2 failed the line is busy
// 3 done null
// failed there is no such number 0
