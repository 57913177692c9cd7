// A chat agent gets an instruction and streams its progress. A few lines stand for the agent.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createRota } from "rota";

const agent = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  const { message, provider, isScheduledTask } = JSON.parse(body);
  console.log(request.method, request.url, { message, provider, isScheduledTask });
  response.setHeader("content-type", "text/event-stream");
  const events = [
    {
      type: "tool-input-available",
      toolCallId: "call_1",
      toolName: "navigate",
      input: { url: "example.com" },
    },
    { type: "tool-output-available", toolCallId: "call_1", output: "ok" },
    { type: "text-delta", id: "text_1", delta: "Example " },
    { type: "text-delta", id: "text_1", delta: "Domain" },
    { type: "finish", finishReason: "stop" },
  ];
  for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
  response.end("data: [DONE]\n\n");
}).listen(0, "127.0.0.1");
await new Promise((resolve) => agent.once("listening", resolve));
const { port } = agent.address() as AddressInfo;

const rota = await createRota({
  storage: "sqlite::memory:",
  executors: { instruction: { type: "chat", url: `http://127.0.0.1:${port}` } },
});
await rota.start();

const { taskId } = await rota.tasks.submit({
  instruction: "Go to example.com and read the title",
  llmConfig: { provider: "openai" },
});
console.log((await rota.tasks.wait(taskId)).result);

await rota.stop();
agent.closeAllConnections();
agent.close();

// Prints:
// POST /chat {
//   message: 'Go to example.com and read the title',
//   provider: 'openai',
//   isScheduledTask: true
// }
// {
//   text: 'Example Domain',
//   finishReason: 'stop',
//   toolCalls: [
//     {
//       toolCallId: 'call_1',
//       toolName: 'navigate',
//       input: [Object],
//       output: 'ok'
//     }
//   ],
//   usage: null
// }
