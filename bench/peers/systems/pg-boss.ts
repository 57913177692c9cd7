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

const QUEUE = "bench";

export const pgBoss: System = {
  name: "pg-boss",
  storage: "postgres",
  package: "pg-boss",
  durability: "every answer waits for the disk",
  lacks:
    "fairness between agents (limits per group only), sessions that run several at once, limits across queues; a batch ends as one, all of it or none",
  goals: { drain: 1.5, latency: EQUAL, others: EQUAL },
  tunings: [tuning(1, 50), tuning(2, 25), tuning(5, 10), tuning(1, 500), tuning(2, 1_000)],
  open: openPgBoss,
};

/** It starts the next batch of a worker when all of the one before have ended. */
function tuning(localConcurrency: number, batchSize: number): Tuning {
  return { atOnce: localConcurrency * batchSize, pollMs: 0, options: { localConcurrency, batchSize } };
}

async function openPgBoss({ url, tuning }: OpenParams): Promise<Queue> {
  const { PgBoss } = await load<PgBossPackage>("pg-boss");
  const boss = new PgBoss({ connectionString: url, useListenNotify: true });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  // A table of its own, and workers that are notified of new jobs instead of polling.
  await boss.createQueue(QUEUE, { partition: true, notify: true });
  return {
    add: async (task) => {
      await boss.send(QUEUE, task);
    },
    addMany: async (tasks) => {
      await boss.insert(
        QUEUE,
        tasks.map((data) => ({ data })),
      );
    },
    start: async (handler) => {
      const options = {
        localConcurrency: optionOf(tuning, "localConcurrency"),
        batchSize: optionOf(tuning, "batchSize"),
        // The shortest that it takes; and none at all while batches come back full.
        pollingIntervalSeconds: 0.5,
        notifyPollingIntervalSeconds: 0.5,
        burstWhenBatchFull: true,
      };
      await boss.work(QUEUE, options, (jobs) => Promise.all(jobs.map(({ data }) => handler(data))));
    },
    drained: async () => {
      const client = await connect(url);
      await untilNoRow(client, `select from pgboss.job where name = '${QUEUE}' and state < 'completed'`);
      await client.end();
    },
    stop: () => boss.stop({ graceful: true, timeout: 5_000 }),
  };
}

interface PgBossPackage {
  readonly PgBoss: new (options: object) => Boss;
}

interface Boss {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  createQueue(name: string, options: object): Promise<void>;
  send(name: string, data: Task): Promise<unknown>;
  insert(name: string, jobs: readonly { data: Task }[]): Promise<unknown>;
  work(
    name: string,
    options: object,
    handler: (jobs: readonly { data: Task }[]) => Promise<unknown>,
  ): Promise<unknown>;
  stop(options: object): Promise<void>;
}
