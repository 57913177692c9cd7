// Actions in browser tabs. A few lines stand for the browser; PinchTab is a real one.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createRota } from "rota";

const browser = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  console.log(request.headers["x-agent-id"], request.method, request.url, body);
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ success: true }));
}).listen(0, "127.0.0.1");
await new Promise((resolve) => browser.once("listening", resolve));
const { port } = browser.address() as AddressInfo;

const rota = await createRota({
  storage: "sqlite::memory:",
  executors: { action: { type: "tab-action", url: `http://127.0.0.1:${port}` } },
});
await rota.start();

const { taskId } = await rota.tasks.submit({
  agentId: "agent-crawl-01",
  action: "type",
  tabId: "8f9c7d4e",
  ref: "e12",
  params: { text: "Alan Turing" },
});
console.log((await rota.tasks.wait(taskId)).result);

await rota.stop();
browser.closeAllConnections();
browser.close();

// Prints:
// agent-crawl-01 POST /tabs/8f9c7d4e/action {"kind":"type","text":"Alan Turing","ref":"e12"}
// { success: true }
