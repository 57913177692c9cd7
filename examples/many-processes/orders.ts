// Three programs on one PostgreSQL, each with its own functions, and a worker besides. This one takes an order, and submits what
// the others do with it: each program starts only the tasks of its own agents.
//
//   export ROTA_STORAGE=postgres://rota@127.0.0.1/rota             # in each terminal, in a clone
//   npm run example examples/many-processes/invoices.ts            # terminal 1
//   npm run example examples/many-processes/mail.ts                # terminal 2
//   npm start -- --config examples/many-processes/rota.config.json # terminal 3
//   npm run rota -- worker --agent labels -- examples/many-processes/label.sh # terminal 4
//   npm run example examples/many-processes/orders.ts              # terminal 5
import { createRota } from "rota";

const rota = await createRota({ storage: process.env["ROTA_STORAGE"] ?? "postgres://rota@127.0.0.1/rota" });
rota.agent("orders", (task) => {
  const { items } = task.payload as { items: number[] };
  return { total: items.reduce((sum, price) => sum + price, 0) };
});
await rota.start();

const { tasks } = await rota.tasks.submitBatch({
  tasks: [
    { key: "order", agentId: "orders", payload: { items: [12, 30] } },
    { key: "invoice", agentId: "invoices", dependsOn: ["order"], payload: {} },
    { key: "label", agentId: "labels", dependsOn: ["order"], message: "Ada Lovelace, London" },
    { key: "mail", agentId: "mail", dependsOn: ["invoice", "label"], message: "ada@example.com" },
  ],
});
const mail = await rota.tasks.wait(tasks.find(({ key }) => key === "mail")?.taskId ?? "");
console.log(mail.state, mail.result);
await rota.stop();

// Prints:
// done sent to ada@example.com with invoice over 42 and label for Ada Lovelace, London
