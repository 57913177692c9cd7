import { createRota } from "rota";

const rota = await createRota({ storage: process.env["ROTA_STORAGE"] ?? "postgres://rota@127.0.0.1/rota" });
rota.agent("invoices", (task) => {
  const { total } = task.dependencies?.[0]?.result as { total: number };
  return `invoice over ${total}`;
});
await rota.start();
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void rota.stop());
