// An agent that is a program on this machine: it reads the message from stdin, and its output is the result.
import { createRota } from "rota";

const program = `
  const { text } = require("node:stream/consumers");
  text(process.stdin).then((message) => {
    const words = message.split(/\\s+/);
    console.error("counting for", process.env.ROTA_AGENT_ID);
    console.log(JSON.stringify({ words: words.length, longest: words.sort((a, b) => b.length - a.length)[0] }));
  });
`;

const rota = await createRota({
  storage: "sqlite::memory:",
  agents: { counter: { executor: { type: "command", command: [process.execPath, "-e", program] } } },
});
await rota.start();

const { taskId } = await rota.tasks.submit({ agentId: "counter", message: "Find the longest word" });
console.log((await rota.tasks.wait(taskId)).result);

await rota.stop();

// Prints:
// { words: 4, longest: 'longest' }
