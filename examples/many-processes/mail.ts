import { createRota } from "rota";

const rota = await createRota({ storage: process.env["ROTA_STORAGE"] ?? "postgres://rota@127.0.0.1/rota" });
rota.agent("mail", (task) => {
  const attached = task.dependencies?.map(({ result }) => result).join(" and ");
  return `sent to ${task.message} with ${attached}`;
});
await rota.start();
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void rota.stop());
