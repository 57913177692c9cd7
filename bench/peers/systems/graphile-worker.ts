import { connect } from "../../postgres/database.ts";
import {
  EQUAL,
  type OpenParams,
  optionOf,
  type Queue,
  type System,
  type Task,
  type Tuning,
} from "../queue.ts";
import { load } from "./package-of.ts";
import { untilNoRow } from "./until-no-row.ts";

const TASK = "bench";

export const graphileWorker: System = {
  name: "graphile-worker",
  storage: "postgres",
  package: "graphile-worker",
  durability:
    "every answer to who adds waits for the disk; an end is written after the next job has been started, and jobs wait in memory, locked",
  lacks:
    "fairness between agents, limits, sessions that run several at once, results and the past (an ended job is deleted), an event log",
  goals: { drain: EQUAL, latency: EQUAL, others: EQUAL },
  // What its page on performance measures with, at our number at once; and with fewer connections, for few cores.
  tunings: [tuning(500, 52), tuning(500, 12), tuning(100, 12), tuning(2_000, 12)],
  open: openGraphileWorker,
};

function tuning(localQueueSize: number, maxPoolSize: number): Tuning {
  const concurrentJobs = 50;
  return { atOnce: concurrentJobs, pollMs: 0, options: { concurrentJobs, localQueueSize, maxPoolSize } };
}

async function openGraphileWorker({ url, tuning }: OpenParams): Promise<Queue> {
  const { Logger, makeWorkerUtils, run } = await load<GraphileWorker>("graphile-worker");
  const preset = {
    worker: {
      connectionString: url,
      concurrentJobs: optionOf(tuning, "concurrentJobs"),
      maxPoolSize: optionOf(tuning, "maxPoolSize"),
      localQueue: { size: optionOf(tuning, "localQueueSize") },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
      logger: new Logger(() => () => {}),
    },
  };
  const utils = await makeWorkerUtils({ preset });
  await utils.migrate();
  let runner: Runner | null = null;
  return {
    add: async (task) => {
      await utils.addJob(TASK, task);
    },
    addMany: async (tasks) => {
      await utils.addJobs(tasks.map((payload) => ({ identifier: TASK, payload })));
    },
    start: async (handler) => {
      const taskList = { [TASK]: (payload: Task) => handler(payload) };
      runner = await run({ preset, taskList, noHandleSignals: true });
    },
    drained: async () => {
      const client = await connect(url);
      await untilNoRow(client, "select from graphile_worker._private_jobs");
      await client.end();
    },
    stop: async () => {
      await runner?.stop();
      await utils.release();
    },
  };
}

interface GraphileWorker {
  readonly Logger: new (factory: () => () => void) => object;
  readonly makeWorkerUtils: (options: object) => Promise<WorkerUtils>;
  readonly run: (options: object) => Promise<Runner>;
}

interface WorkerUtils {
  migrate(): Promise<void>;
  addJob(identifier: string, payload: Task): Promise<unknown>;
  addJobs(jobs: readonly { identifier: string; payload: Task }[]): Promise<unknown>;
  release(): Promise<void>;
}

interface Runner {
  stop(): Promise<void>;
}
