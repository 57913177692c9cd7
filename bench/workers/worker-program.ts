/** Workers whose handlers count and wait as long as the setup says, in a process of their own. */
import { setTimeout as sleep } from "node:timers/promises";
import { RotaWorker } from "../../src/client/index.ts";
import { silentLog } from "../../src/model/log.ts";
import { AGENTS } from "../workload.ts";

export interface WorkerSetup {
  readonly url: string;
  readonly workers: number;
  /** Of each. */
  readonly slots: number;
  /** How long each handler takes; 0: it returns at once. */
  readonly taskMs: number;
}

export interface WorkerWord {
  readonly say: "start" | "cost" | "leave";
}

export type WorkerAnswer =
  | { readonly said: "ready" }
  /** They are registered and ask for tasks. */
  | { readonly said: "started" }
  /** So far: processor time of the process. */
  | { readonly said: "cost"; readonly cpuMs: number }
  /** How many handlers were called so far, and when the first was, by the clock of the machine. */
  | { readonly said: "ran"; readonly tasks: number; readonly firstAt: number };

/** Each report takes some of the time that is measured. */
const REPORT_EVERY_MS = 20;

const { url, workers, slots, taskMs }: WorkerSetup = JSON.parse(process.argv[2] ?? "{}");
let tasks = 0;
let firstAt = 0;
const handler = () => {
  if (tasks === 0) firstAt = performance.timeOrigin + performance.now();
  tasks += 1;
  return taskMs === 0 ? null : sleep(taskMs, null);
};
const agents = Array.from({ length: AGENTS }, (_, n) => `agent-${n}`);
const all = Array.from(
  { length: workers },
  (_, n) => new RotaWorker({ url, agents, handler, slots, name: `bench-${n}`, log: silentLog }),
);

let reported = 0;
const reporting = setInterval(() => {
  if (tasks === reported) return;
  reported = tasks;
  send({ said: "ran", tasks, firstAt });
}, REPORT_EVERY_MS);

process.on("message", async ({ say }: WorkerWord) => {
  if (say === "start") {
    await Promise.all(all.map((worker) => worker.start()));
    return send({ said: "started" });
  }
  if (say === "cost") {
    const { user, system } = process.cpuUsage();
    return send({ said: "cost", cpuMs: (user + system) / 1_000 });
  }
  clearInterval(reporting);
  await Promise.all(all.map((worker) => worker.stop()));
  process.disconnect();
});
send({ said: "ready" });

function send(answer: WorkerAnswer): void {
  process.send?.(answer);
}
