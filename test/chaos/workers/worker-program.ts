/** A worker of a chaos run: each task is a call of the agents' program, as the executor `http` makes it. */
import { RotaWorker } from "../../../src/client/index.ts";
import { keepAliveClock } from "../../../src/clock/keep-alive-clock.ts";
import { httpExecutor } from "../../../src/executors/http.ts";
import { REMOTE_AGENT, WORKER_SLOTS } from "../settings.ts";

const [url = "", key = "", name = "", programUrl = ""] = process.argv.slice(2);
const call = httpExecutor({ url: programUrl, headers: {}, clock: keepAliveClock, guard: undefined });

const worker = new RotaWorker({
  url,
  key,
  name,
  slots: WORKER_SLOTS,
  agents: {
    [REMOTE_AGENT]: (task, context) => {
      const [...attempts] = task.attempts;
      const last = attempts.pop();
      // The program records which worker the attempt was granted to.
      const granted = { number: 1, startedAt: "", endedAt: null, outcome: null, error: null, ...last };
      return call({ ...task, attempts: [...attempts, { ...granted, node: worker.workerId ?? "" }] }, context);
    },
  },
  log: console,
});
await worker.run();
