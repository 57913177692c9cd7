/** A worker whose handler writes a line when it begins, sleeps as the payload says, and returns its own name. */
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { RotaWorker } from "rota/client";

const [url = "", name = "", file = ""] = process.argv.slice(2);
const worker = new RotaWorker({
  url,
  name,
  slots: 4,
  leaseMs: 5_000,
  heartbeatMs: 500,
  agents: {
    slow: async (task, { signal }) => {
      appendFileSync(file, `${task.taskId} ${task.attempts.at(-1)?.number} ${name}\n`);
      await sleep(Number(task.payload), undefined, { signal });
      return name;
    },
  },
});
process.once("SIGTERM", () => void worker.stop());
await worker.run();
