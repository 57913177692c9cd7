import { createRota } from "rota";

const rota = await createRota({ storage: "sqlite:quick-start.db" });
rota.agent("greeter", async (task) => `Hello, ${task.message}!`);
await rota.start();

const { taskId } = await rota.tasks.submit({ agentId: "greeter", message: "world" });
const task = await rota.tasks.wait(taskId);
console.log(task.state, task.result); // done Hello, world!

await rota.stop();
