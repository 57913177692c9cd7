import { measureDrain } from "../drain.ts";
import { type EmptyStorage, type NewStorage, postgresStorage, sqliteStorage } from "../empty-storage.ts";
import { type Figure, figure, percentile, shareOf } from "../figure.ts";
import type { Counter } from "../idle-cost.ts";
import { inTurns } from "../in-turns.ts";
import type { Setting } from "../job.ts";
import { countTransactions } from "../postgres/count-transactions.ts";
import {
  measureIdleWorkers,
  measurePickUp,
  measureWorkersDrain,
  type WorkersDrain,
} from "../workers/measure-workers.ts";

const BUSY = { workers: 50, slots: 4 } as const;
const IDLE = { workers: 200, slots: 5 } as const;
/** Tasks that take as long as a short call of a browser or a model: for the share of the slots that workers keep busy. */
const TASK_MS = 100;
/** A backlog for this many seconds of all slots. */
const BUSY_SEC = 8;
/** Some work comes once a minute: a shorter measurement, also a quick one, counts it by chance with or without workers. */
const IDLE_SEC = 60;
/** At most one a second. The figure is rounded to tenths. */
const ADDED_GOAL = { below: 1.05 } as const;

export function workersOnSqlite(setting: Setting): Promise<Figure[]> {
  return workers(sqliteStorage(setting), setting, {
    storage: "SQLite",
    pickUpBelowMs: 3,
    counted: "statements",
    counter: null,
  });
}

export function workersOnPostgres(setting: Setting): Promise<Figure[]> {
  return workers(postgresStorage(setting), setting, {
    storage: "PostgreSQL",
    pickUpBelowMs: 6,
    counted: "transactions",
    counter: ({ url }) => countTransactions(url, setting.postgresUrl ?? ""),
  });
}

interface Names {
  readonly storage: string;
  readonly pickUpBelowMs: number;
  readonly counted: string;
  /** Null: the server counts its own statements. */
  readonly counter: ((target: EmptyStorage) => Promise<Counter>) | null;
}

/** What workers cost beside functions of the process of Rota: all over HTTP, each side in processes of its own. */
async function workers(
  newStorage: NewStorage,
  { turns, sizes }: Setting,
  { storage, pickUpBelowMs, counted, counter }: Names,
): Promise<Figure[]> {
  const pickUps: number[][] = [];
  for (let turn = 1; turn <= turns; turn++) {
    const samples = await measurePickUp(newStorage, { samples: sizes.samples });
    pickUps.push(samples);
    console.error(`  turn ${turn}: pick-up, ${storage} p50 ${percentile(samples, 50).toFixed(2)} ms`);
  }
  const pickUpAt = (percent: number) => pickUps.map((samples) => percentile(samples, percent));
  const slots = BUSY.workers * BUSY.slots;
  const drains: WorkersDrain[] = [];
  const rates = await inTurns(turns, {
    functions: () => measureDrain(newStorage, { tasks: sizes.drain, atOnce: slots }),
    workers: async () => {
      const drain = await measureWorkersDrain(newStorage, { tasks: sizes.drain, ...BUSY });
      drains.push(drain);
      return drain.rate;
    },
  });
  const taskSlots = (slots * 1_000) / TASK_MS;
  const shares: number[] = [];
  for (let turn = 1; turn <= turns; turn++) {
    const tasks = taskSlots * BUSY_SEC;
    const { rate } = await measureWorkersDrain(newStorage, { tasks, ...BUSY, taskMs: TASK_MS });
    shares.push(rate / taskSlots);
    console.error(`  turn ${turn}: tasks of ${TASK_MS} ms, ${Math.round(rate)}/s of ${taskSlots}`);
  }
  const cpu = (of: (drain: WorkersDrain) => number) => drains.map((drain) => Math.round(of(drain)));
  const idle = await measureIdleWorkers(newStorage, {
    ...IDLE,
    seconds: IDLE_SEC,
    counter,
  });
  const name = `${BUSY.workers} workers × ${BUSY.slots} slots`;
  const idleName = `${IDLE.workers} workers × ${IDLE.slots} slots idle`;
  return [
    figure(`submit to handler of a worker, ${storage}, p50`, "ms", pickUpAt(50), { below: pickUpBelowMs }),
    figure(`submit to handler of a worker, ${storage}, p99`, "ms", pickUpAt(99)),
    figure(`drain by functions, ${slots} at once, ${storage}`, "tasks/s", rates.functions),
    figure(`drain by ${name}, ${storage}`, "tasks/s", rates.workers),
    shareOf(`drain by workers / by functions, ${storage}`, {
      of: rates.workers,
      against: rates.functions,
      goal: { atLeast: 0.6 },
    }),
    figure(`slots that ${name} keep busy, tasks of ${TASK_MS} ms, ${storage}`, "share", shares),
    figure(
      `CPU of the server for a task, ${storage}`,
      "µs",
      cpu((drain) => drain.serverCpu),
    ),
    figure(
      `CPU of the workers for a task, ${storage}`,
      "µs",
      cpu((drain) => drain.workersCpu),
    ),
    ...(storage === "SQLite"
      ? []
      : [
          figure(
            `CPU of ${storage} for a task`,
            "µs",
            cpu((drain) => drain.databaseCpu),
          ),
        ]),
    figure(`CPU of the server, ${idleName}, ${storage}`, "percent", [idle.cpuPercent], { below: 1 }),
    figure(`${counted} in a second, ${idleName}, ${storage}`, "count", [
      Math.round(idle.perSecond * 10) / 10,
    ]),
    figure(
      `${counted} in a second that the workers add, ${idleName}, ${storage}`,
      "count",
      [Math.round(idle.addedPerSecond * 10) / 10],
      ADDED_GOAL,
    ),
  ];
}
