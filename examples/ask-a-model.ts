// An agent that is a model behind an OpenAI-compatible API. A few lines stand for the model.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createRota } from "rota";

const words = ["The", " capital", " of", " France", " is", " Paris", "."];

const api = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  const { model, messages } = JSON.parse(body);
  console.log(request.method, request.url, request.headers.authorization, model);
  for (const { role, content } of messages) console.log(`${role}: ${content}`);
  response.setHeader("content-type", "text/event-stream");
  const send = (part: object) => response.write(`data: ${JSON.stringify(part)}\n\n`);
  for (const content of words) send({ model, choices: [{ index: 0, delta: { content } }] });
  send({ model, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  send({ model, choices: [], usage: { prompt_tokens: 24, completion_tokens: words.length } });
  response.end("data: [DONE]\n\n");
}).listen(0, "127.0.0.1");
await new Promise((resolve) => api.once("listening", resolve));
const { port } = api.address() as AddressInfo;

// A real key is set where Rota is started: OPENAI_API_KEY=sk-… npm start
process.env["EXAMPLE_API_KEY"] = "sk-example";
const rota = await createRota({
  storage: "sqlite::memory:",
  agents: {
    geographer: {
      executor: {
        type: "openai",
        baseUrl: `http://127.0.0.1:${port}/v1`,
        model: "example-model",
        apiKeyEnv: "EXAMPLE_API_KEY",
        system: "Answer in one sentence.",
      },
    },
  },
});
await rota.start();

const { taskId } = await rota.tasks.submit({ agentId: "geographer", message: "The capital of France?" });
console.log((await rota.tasks.wait(taskId)).result);

await rota.stop();
api.closeAllConnections();
api.close();

// Prints:
// POST /v1/chat/completions Bearer sk-example example-model
// system: Answer in one sentence.
// user: The capital of France?
// {
//   text: 'The capital of France is Paris.',
//   finishReason: 'stop',
//   model: 'example-model',
//   usage: { inputTokens: 24, outputTokens: 7 }
// }
