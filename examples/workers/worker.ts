// A worker of RotaWorker: runs the tasks of the agent `shout` in this process, wherever the server is. Its handlers are the
// functions that `rota.agent(…)` takes.
//
// In a clone, with ROTA_KEY if the server has keys:
//
//   ROTA_URL=http://127.0.0.1:7682 npm run example examples/workers/worker.ts
import { PermanentError, RotaWorker } from "rota/client";

const { ROTA_URL: url = "http://127.0.0.1:7682", ROTA_KEY: key } = process.env;

const worker = new RotaWorker({
  url,
  ...(key === undefined ? {} : { key }),
  slots: 4,
  log: console,
  agents: {
    shout: async (task, { progress, log }) => {
      if (task.message === undefined) throw new PermanentError("there is no message to shout");
      progress({ step: "shouting" });
      log.info({}, `shouting ${task.message.length} characters`);
      return task.message.toUpperCase();
    },
  },
});

for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void worker.stop());
await worker.start();
console.log(`worker ${worker.workerId} waits for tasks of shout`);
await worker.run();
