import type { LocalTenant, Rota } from "../../src/interface/rota.ts";
import type { Run } from "../../src/interface/schedules.ts";
import type { Delivery } from "../../src/model/delivery.ts";
import type { RotaEvent } from "../../src/model/event.ts";
import type { Task } from "../../src/model/task.ts";
import { DEFAULT_TENANT } from "../../src/model/tenant.ts";
import type { RunRecord, Storage } from "../../src/storage/storage.ts";
import type { History } from "../chaos/history.ts";

/** What a process says at the end, when nothing moves any more. */
export async function readHistory(
  rota: LocalTenant,
): Promise<Pick<History, "events" | "tasks" | "runs" | "schedules">> {
  const schedules = (await rota.schedules.list()).schedules.map(({ id }) => id);
  const events = await readLog(rota);
  return { events, tasks: await readTasks(rota), schedules, runs: await readRuns(rota) };
}

/** The end of the log is found by a task that is submitted for that. */
async function readLog(rota: LocalTenant): Promise<RotaEvent[]> {
  const { taskId } = await rota.tasks.submit({ payload: "the last of this log" });
  await rota.tasks.wait(taskId);
  const events: RotaEvent[] = [];
  for await (const event of rota.events({ after: 0 })) {
    events.push(event);
    if (event.taskId === taskId && event.type === "task.completed") break;
  }
  return events;
}

async function readTasks(rota: LocalTenant): Promise<Map<string, Task>> {
  const tasks = new Map<string, Task>();
  for (let cursor: { cursor?: string } = {}; ; ) {
    const page = await rota.tasks.list({ limit: 1_000, ...cursor });
    for (const task of page.tasks) tasks.set(task.taskId, task);
    if (page.nextCursor === null) return tasks;
    cursor = { cursor: page.nextCursor };
  }
}

export async function readDeliveries(rota: Rota): Promise<Delivery[]> {
  const deliveries: Delivery[] = [];
  for (let cursor: { cursor?: string } = {}; ; ) {
    const page = await rota.webhooks.deliveries({ limit: 1_000, ...cursor });
    deliveries.push(...page.deliveries);
    if (page.nextCursor === null) return deliveries;
    cursor = { cursor: page.nextCursor };
  }
}

/** The runs with their moments to the millisecond, which are shown in seconds. */
export async function readRunRecords(storage: Storage): Promise<RunRecord[]> {
  const { runs } = await storage.schedules.listRuns({ tenant: DEFAULT_TENANT, limit: 100_000 });
  return runs;
}

async function readRuns(rota: LocalTenant): Promise<Run[]> {
  const runs: Run[] = [];
  for (let cursor: { cursor?: string } = {}; ; ) {
    const page = await rota.runs.list(cursor);
    runs.push(...page.runs);
    if (page.next_cursor === null) return runs;
    cursor = { cursor: page.next_cursor };
  }
}
