import { createRota } from "../../../src/rota.ts";
import { RETRIED, schedulerOptions } from "../../workload.ts";
import type { OpenParams, Queue, System, Task } from "../queue.ts";

const TUNINGS = [50, 200, 1_000].map((atOnce) => ({ atOnce, pollMs: 0, options: { workerCount: atOnce } }));

export const rotaOnSqlite: System = {
  name: "Rota on SQLite",
  storage: "sqlite",
  package: null,
  durability: "every answer waits for the disk",
  lacks: null,
  goals: { drain: null, latency: null, others: null },
  tunings: TUNINGS,
  open: openRota,
};

export const rotaOnPostgres: System = {
  ...rotaOnSqlite,
  name: "Rota on PostgreSQL",
  storage: "postgres",
};

async function openRota({ url, tuning }: OpenParams): Promise<Queue> {
  let handler: (task: Task) => unknown = () => null;
  const rota = await createRota({
    storage: url,
    scheduler: schedulerOptions(tuning),
    executors: { custom: ({ payload }) => handler(payload as Task) as never },
  });
  const input = (task: Task) => ({ agentId: task.agentId, payload: task, retryPolicy: RETRIED });
  return {
    add: async (task) => {
      await rota.tasks.submit(input(task));
    },
    addMany: async (tasks) => {
      await rota.tasks.submitMany(tasks.map(input));
    },
    start: async (given) => {
      handler = given;
      await rota.start();
    },
    drained: () => rota.drain(),
    stop: () => rota.stop(),
  };
}
