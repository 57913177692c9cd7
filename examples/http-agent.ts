// An agent that is a web service, in any language: Rota posts each task to it, and its response is the result.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createRota, type Task } from "rota";

const program = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  const task = JSON.parse(body) as Task;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ words: task.instruction?.split(" ").length }));
}).listen(0, "127.0.0.1");
await new Promise((resolve) => program.once("listening", resolve));
const { port } = program.address() as AddressInfo;

const rota = await createRota({
  storage: "sqlite::memory:",
  agents: { counter: { executor: { type: "http", url: `http://127.0.0.1:${port}/` }, maxInflight: 2 } },
});
await rota.start();

const { taskId } = await rota.tasks.submit({ agentId: "counter", instruction: "Count these four words" });
console.log((await rota.tasks.wait(taskId)).result);

await rota.stop();
program.closeAllConnections();
program.close();

// Prints:
// { words: 4 }
