import Sqlite from "better-sqlite3";
import {
  EQUAL,
  type Handler,
  type OpenParams,
  optionOf,
  type Queue,
  type System,
  type Task,
} from "../queue.ts";
import { load } from "./package-of.ts";

const TYPE = "bench";
const silent = { error: console.error, warn() {}, info() {}, debug() {} };

/** As it opens the file itself. */
export const plainjobNormal: System = {
  name: "plainjob, NORMAL",
  storage: "sqlite",
  package: "plainjob",
  durability: "SQLite, synchronous NORMAL: what was accepted since the last checkpoint can be lost",
  lacks: "fairness between agents, sessions, priorities, limits, retries, results, an event log",
  // It does not wait for the disk at all, which is another thing than the others do.
  goals: { drain: null, latency: null, others: null },
  // A worker runs one job at a time, and looks for one by itself when there was none.
  tunings: [{ atOnce: 50, pollMs: 10, options: { workers: 50, pollIntervall: 10 } }],
  open: (params) => openPlainjob(params, "normal"),
};

/** As safe as the others are. */
export const plainjobFull: System = {
  ...plainjobNormal,
  name: "plainjob, FULL",
  durability: "SQLite, synchronous FULL: every answer waits for the disk",
  goals: { drain: EQUAL, latency: EQUAL, others: EQUAL },
  open: (params) => openPlainjob(params, "full"),
};

async function openPlainjob({ url, tuning }: OpenParams, synchronous: "normal" | "full"): Promise<Queue> {
  const { better, defineQueue, defineWorker } = await load<Plainjob>("plainjob");
  const db = new Sqlite(url.replace(/^sqlite:/, ""));
  const queue = defineQueue({ connection: better(db), logger: silent });
  db.pragma(`synchronous = ${synchronous}`);
  let workers: PlainWorker[] = [];
  let running: Promise<unknown> = Promise.resolve();
  return {
    add: async (task) => {
      queue.add(TYPE, task);
    },
    addMany: async (tasks) => {
      queue.addMany(TYPE, tasks);
    },
    start: async (handler: Handler) => {
      const run = async ({ data }: { data: string }) => {
        await handler(JSON.parse(data) as Task);
      };
      const options = { queue, pollIntervall: optionOf(tuning, "pollIntervall"), logger: silent };
      workers = Array.from({ length: optionOf(tuning, "workers") }, () => defineWorker(TYPE, run, options));
      running = Promise.all(workers.map((worker) => worker.start()));
    },
    drained: async () => {
      // It writes an end in the turn in which the handler resolves.
      while (queue.countJobs({ type: TYPE, status: PROCESSING }) > 0) await nextTurn();
    },
    stop: async () => {
      await Promise.all(workers.map((worker) => worker.stop()));
      await running;
      queue.close();
    },
  };
}

const PROCESSING = 1;

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

interface Plainjob {
  readonly better: (db: Sqlite.Database) => object;
  readonly defineQueue: (options: object) => PlainQueue;
  readonly defineWorker: (
    type: string,
    run: (job: { data: string }) => Promise<void>,
    options: object,
  ) => PlainWorker;
}

interface PlainQueue {
  add(type: string, data: Task): unknown;
  addMany(type: string, data: readonly Task[]): unknown;
  countJobs(filter: { type: string; status: number }): number;
  close(): void;
}

interface PlainWorker {
  start(): Promise<void>;
  stop(): Promise<void>;
}
