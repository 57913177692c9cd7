import type { Rota } from "../../src/interface/rota.ts";
import { createRota } from "../../src/rota.ts";
import {
  type EmptyStorage,
  type NewStorage,
  postgresStorage,
  sqliteStorage,
  withStorage,
} from "../empty-storage.ts";
import { type Figure, figure, percentile } from "../figure.ts";
import type { Setting } from "../job.ts";
import { AGENTS, AT_ONCE, schedulerOptions } from "../workload.ts";

/** What every list and filter of the dashboard has to stay below. */
const GOAL = { below: 50 };
/** Of the tasks, the first ones have ended. */
const ENDED_SHARE = 0.7;
/** One ended task in so many has failed. */
const FAILED_OF = 20;
const SESSIONS = 500;
const BATCH_TASKS = 50;
const PER_CALL = 1_000;
const CALLS = 15;
const PAGE = 100;
const HOUR_MS = 3_600_000;

export function listsOnSqlite(setting: Setting): Promise<Figure[]> {
  return lists(sqliteStorage(setting), setting, "SQLite");
}

export function listsOnPostgres(setting: Setting): Promise<Figure[]> {
  return lists(postgresStorage(setting), setting, "PostgreSQL");
}

/** How long each list of the dashboard takes with many stored tasks: the 95th percentile of some calls, the first one included. */
function lists(newStorage: NewStorage, { sizes }: Setting, storage: string): Promise<Figure[]> {
  return withStorage(newStorage, async (target) => {
    console.error(`  filling ${storage} with ${sizes.backlog} tasks`);
    const { rota, batchId } = await fill(target, sizes.backlog);
    const figures: Figure[] = [];
    for (const [name, read] of Object.entries(await readsOf(rota, batchId))) {
      const runs: number[] = [];
      for (let call = 0; call < CALLS; call += 1) {
        const begun = performance.now();
        await read();
        runs.push(performance.now() - begun);
      }
      figures.push({ ...figure(`${name}, ${storage}`, "ms", runs, GOAL), value: percentile(runs, 95) });
    }
    await rota.stop();
    return figures;
  });
}

/** Tasks of all kinds, of which most have ended. The returned Rota runs none. */
async function fill(target: EmptyStorage, count: number): Promise<{ rota: Rota; batchId: string }> {
  const endedMin = count * ENDED_SHARE;
  let ended = 0;
  let reached = () => {};
  const enough = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const rota = await createRota({
    storage: target.url,
    scheduler: schedulerOptions({ atOnce: AT_ONCE }),
    executors: {
      custom: () => {
        ended += 1;
        if (ended === endedMin) reached();
        if (ended % FAILED_OF === 0) throw new Error("HTTP 403: the page refuses robots");
        return { ok: true };
      },
    },
  });
  let batchId = "";
  for (let from = 0; from < count; from += PER_CALL) {
    const inputs = Array.from({ length: PER_CALL }, (_, n) => inputOf(from + n));
    await rota.tasks.submitMany(inputs);
    if ((from / PER_CALL) % 10 === 0) {
      ({ batchId } = await rota.tasks.submitBatch({ tasks: inputs.slice(0, BATCH_TASKS) }));
    }
  }
  for (let n = 0; n < SESSIONS; n += 1) await rota.sessions.send(`chat:${n}`, { message: "Hello" });
  await rota.start();
  await enough;
  await rota.stop();
  await target.settle();
  const scheduler = schedulerOptions({ atOnce: AT_ONCE });
  return { rota: await createRota({ storage: target.url, scheduler }), batchId };
}

function inputOf(n: number) {
  return {
    agentId: `agent-${n % AGENTS}`,
    lane: n % 3 === 0 ? "main" : "tasks",
    priority: (["normal", "normal", "high", "low"] as const)[n % 4] ?? "normal",
    payload: { n, text: "Compare the prices of twelve suppliers" },
    metadata: { project: `project-${n % 7}` },
    retryPolicy: { maxRetries: 0 },
  };
}

/** Everything that the dashboard reads in lists, by what it shows. */
async function readsOf(rota: Rota, batchId: string): Promise<Record<string, () => Promise<unknown>>> {
  const { tasks } = rota;
  type Filter = Parameters<typeof tasks.listRows>[0];
  const rows = (filter: Filter) => () => tasks.listRows({ limit: PAGE, ...filter });
  const waiting = ["queued", "delayed", "waiting_dependency"] as const;
  const { tasks: some } = await tasks.listRows({ limit: 1, order: "oldest" });
  const [first] = some;
  if (first === undefined) throw new Error("there are no tasks");
  const from = new Date(Date.now() - HOUR_MS).toISOString();
  const to = new Date(Date.parse(first.createdAt) + 5_000).toISOString();
  const deep = await tasks.listRows({ limit: 1_000, state: "done" });
  const series = (hours: number, step: 60 | 3600) => () =>
    rota.statsSeries({
      metrics: ["submitted", "done", "failed", "waitMs", "runMs"],
      by: "none",
      step,
      from: new Date(Date.now() - hours * HOUR_MS),
    });
  return {
    "tasks, newest": rows({}),
    "tasks, oldest": rows({ order: "oldest" }),
    "tasks, ended last": rows({ order: "completed" }),
    "tasks, whole, for groups": () => tasks.list({ limit: PAGE }),
    "tasks, waiting": rows({ state: waiting }),
    "tasks, waiting, oldest": rows({ state: waiting, order: "oldest" }),
    "tasks, running": rows({ state: ["running", "assigned"] }),
    "tasks, failed": rows({ state: "failed" }),
    "tasks, failed, ended last": rows({ state: "failed", order: "completed" }),
    "tasks, done": rows({ state: "done" }),
    "tasks, done, page 11": rows({ state: "done", cursor: deep.nextCursor ?? "" }),
    "tasks, cancelled or rejected (none)": rows({ state: ["cancelled", "rejected"] }),
    "tasks, of an agent": rows({ agentId: "agent-7" }),
    "tasks, of an agent, failed": rows({ agentId: "agent-7", state: "failed" }),
    "tasks, of an agent that has none": rows({ agentId: "absent" }),
    "tasks, of a lane": rows({ lane: "main" }),
    "tasks, of a lane, waiting, oldest": rows({ lane: "main", state: waiting, order: "oldest" }),
    "tasks, of a lane without any": rows({ lane: "team" }),
    "tasks, of a lane without any, done": rows({ lane: "team", state: "done" }),
    "tasks, of a lane without any, ended last": rows({ lane: "team", order: "completed" }),
    "tasks, of a priority": rows({ priority: "high" }),
    "tasks, of a priority without any": rows({ priority: "critical" }),
    "tasks, of a priority, failed": rows({ priority: "low", state: "failed" }),
    "tasks, of an agent, of a priority without any": rows({ agentId: "agent-7", priority: "critical" }),
    "tasks, of a session": rows({ sessionKey: "chat:7" }),
    "tasks, of a batch": rows({ batchId }),
    "tasks, of a schedule without any": rows({ scheduleId: 1 }),
    "tasks, of the last hour": rows({ from }),
    "tasks, of a time range": rows({ from, to }),
    "tasks, failed in the last hour": rows({ state: "failed", from, order: "completed" }),
    "tasks, of an agent, lane, priority and time": rows({
      agentId: "agent-7",
      lane: "main",
      priority: "high",
      from,
    }),
    "tasks, by an id": rows({ q: first.taskId }),
    "tasks, by the beginning of an id": rows({ q: first.taskId.slice(0, 12) }),
    "counts of the states": () => tasks.counts(),
    "why work waits": () => rota.waiting(),
    "numbers of the scheduler": () => rota.stats(),
    "history of an hour": series(1, 60),
    "history of 7 days": series(168, 3_600),
    lanes: () => rota.lanes.list(),
    "events, newest": () => rota.eventPage({ limit: PAGE }),
    "events, failed": () => rota.eventPage({ limit: PAGE, type: "task.failed" }),
    "events, of a task": () => rota.eventPage({ limit: PAGE, taskId: first.taskId }),
    sessions: () => rota.sessions.list({}),
    "next due times": () => rota.schedules.upcoming({ limit: 6, per_schedule: 1 }),
    "webhook deliveries": () => rota.webhooks.deliveries({}),
  };
}
