import { createRota } from "rota";

const rota = await createRota({ storage: process.env["ROTA_STORAGE"] ?? "postgres://rota@127.0.0.1/rota" });
rota.agent("invoices", (task) => {
  const order = task.dependencies?.[0]?.result as { total: number } | undefined;
  return `invoice over ${order?.total}`;
});
await rota.start();
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void rota.stop());
