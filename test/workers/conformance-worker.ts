import { appendFileSync } from "node:fs";
import { isAbsolute } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Executor, RotaWorker } from "rota/client";

/** Does what docs/worker-conformance.md asks of a handler. */
const handler: Executor = async ({ message = "" }, { signal }) => {
  const [word, first = "", second = ""] = message.split(" ");
  switch (word) {
    case "echo":
      return message.slice("echo ".length);
    case "append":
      return appendFileSync(first, "ran\n");
    case "sleep":
      await sleep(Number(first), undefined, { signal });
      return isAbsolute(second) ? appendFileSync(second, "slept\n") : "slept";
    case "fail":
      throw new Error(message.slice("fail ".length));
    case "big":
      return "x".repeat(Number(first));
    default:
      throw new Error(`unknown word ${word}`);
  }
};

const { ROTA_URL: url = "", ROTA_KEY: key = "", ROTA_AGENTS: agents = "" } = process.env;
const worker = new RotaWorker({ url, key, agents: agents.split(","), slots: 3, handler, log: console });
process.once("SIGTERM", () => void worker.stop());
await worker.run();
