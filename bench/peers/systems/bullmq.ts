import {
  EQUAL,
  type Handler,
  type OpenParams,
  optionOf,
  type Queue,
  type System,
  type Task,
  type Tuning,
} from "../queue.ts";
import { load } from "./package-of.ts";

const QUEUE = "bench";

/** As its guide to production advises: an append-only file that is forced to the disk every second. */
export const bullmqEverySecond: System = {
  name: "BullMQ, everysec",
  storage: "redis everysec",
  package: "bullmq",
  durability:
    "Redis, appendonly yes, appendfsync everysec: what was accepted within the last second can be lost",
  lacks: "fairness between agents (in its paid edition), sessions, limits per agent, an event log that lasts",
  // Its answers do not wait for the disk: that it takes tasks in more quickly is no wonder.
  goals: { drain: 1.5, latency: EQUAL, others: null },
  tunings: [tuning(1, 50), tuning(2, 25), tuning(1, 200), tuning(4, 100)],
  open: openBullmq,
};

/** As safe as the others are. */
export const bullmqAlways: System = {
  ...bullmqEverySecond,
  name: "BullMQ, always",
  storage: "redis always",
  durability: "Redis, appendonly yes, appendfsync always: every answer waits for the disk",
  goals: { drain: 1.5, latency: EQUAL, others: EQUAL },
};

function tuning(workers: number, concurrency: number): Tuning {
  return { atOnce: workers * concurrency, pollMs: 0, options: { workers, concurrency } };
}

async function openBullmq({ url, tuning }: OpenParams): Promise<Queue> {
  const { Queue: BullQueue, Worker } = await load<Bullmq>("bullmq");
  const { hostname, port } = new URL(url);
  // Without the last, its workers refuse to start: they must not give up while Redis is away.
  const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null };
  const queue = new BullQueue(QUEUE, {
    connection,
    // Ended jobs are removed, as it advises: kept, they would fill the memory.
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  });
  await queue.waitUntilReady();
  let workers: BullWorker[] = [];
  let [started, completed] = [0, 0];
  let onCompleted = () => {};
  return {
    add: async (task) => {
      await queue.add("task", task);
    },
    addMany: async (tasks) => {
      await queue.addBulk(tasks.map((data) => ({ name: "task", data })));
    },
    start: async (handler: Handler) => {
      const run = async ({ data }: { data: Task }) => {
        started += 1;
        await handler(data);
      };
      const concurrency = optionOf(tuning, "concurrency");
      workers = Array.from(
        { length: optionOf(tuning, "workers") },
        () => new Worker(QUEUE, run, { connection, concurrency }),
      );
      for (const worker of workers) {
        worker.on("completed", () => {
          completed += 1;
          if (completed === started) onCompleted();
        });
        worker.on("error", (error) => console.error(error));
      }
      await Promise.all(workers.map((worker) => worker.waitUntilReady()));
    },
    drained: async () => {
      if (completed === started) return;
      await new Promise<void>((resolve) => {
        onCompleted = resolve;
      });
    },
    stop: async () => {
      await Promise.all(workers.map((worker) => worker.close()));
      await queue.close();
    },
  };
}

interface Bullmq {
  readonly Queue: new (name: string, options: object) => BullQueue;
  readonly Worker: new (
    name: string,
    run: (job: { data: Task }) => Promise<void>,
    options: object,
  ) => BullWorker;
}

interface BullQueue {
  waitUntilReady(): Promise<unknown>;
  add(name: string, data: Task): Promise<unknown>;
  addBulk(jobs: readonly { name: string; data: Task }[]): Promise<unknown>;
  close(): Promise<void>;
}

interface BullWorker {
  on(event: "completed", listener: () => void): void;
  on(event: "error", listener: (error: Error) => void): void;
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
}
