/** One node of several, in a process of its own, on the given storage. Reports what it did after draining. */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { openRota } from "../workload.ts";

export interface NodeSetup {
  /** How many there are. */
  readonly nodes: number;
  /** Its slots; left out: as many as elsewhere. */
  readonly atOnce?: number;
  /** How long a task takes; left out: no time. */
  readonly taskMs?: number;
}

export interface Word {
  readonly say: "start" | "measure" | "drain" | "leave";
}

export type Answer =
  | { readonly said: "ready" }
  /** Tasks started so far. */
  | { readonly said: "started"; readonly tasks: number }
  | { readonly said: "drained"; readonly roundTrips: number; readonly cpuMs: number };

const REPORT_EVERY_MS = 10;

let roundTrips = 0;
const query = pg.Client.prototype.query;
// Everything that is asked of the server goes through here, by whichever connection.
pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
  roundTrips += 1;
  return Reflect.apply(query, this, args);
} as typeof query;

let tasks = 0;
const [url = "", setup = "{}"] = process.argv.slice(2);
const { nodes, atOnce, taskMs }: NodeSetup = JSON.parse(setup);
const handler = () => {
  tasks += 1;
  return taskMs === undefined ? null : sleep(taskMs);
};
const rota = await openRota(url, { handler, nodes, ...(atOnce === undefined ? {} : { atOnce }) });

let reported = 0;
const reporting = setInterval(() => {
  if (tasks === reported) return;
  reported = tasks;
  send({ said: "started", tasks });
}, REPORT_EVERY_MS);

let cpuAtStart = process.cpuUsage();
process.on("message", async ({ say }: Word) => {
  switch (say) {
    case "start":
      return rota.start();
    case "measure":
      roundTrips = 0;
      cpuAtStart = process.cpuUsage();
      return;
    case "drain": {
      await rota.drain();
      const { user, system } = process.cpuUsage(cpuAtStart);
      return send({ said: "drained", roundTrips, cpuMs: (user + system) / 1_000 });
    }
    case "leave":
      clearInterval(reporting);
      await rota.stop();
      process.disconnect();
  }
});
send({ said: "ready" });

function send(answer: Answer): void {
  process.send?.(answer);
}
