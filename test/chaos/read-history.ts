import { setTimeout as delay } from "node:timers/promises";
import { RotaClient } from "../../src/client/index.ts";
import type { Bulk } from "../../src/interface/bulks.ts";
import type { Run } from "../../src/interface/schedules.ts";
import type { Delivery } from "../../src/model/delivery.ts";
import type { RotaEvent } from "../../src/model/event.ts";
import type { Task } from "../../src/model/task.ts";
import { counted as countedWrong } from "./checks/counted.ts";
import type { Counted, History } from "./history.ts";
import { readCounted } from "./read-counted.ts";
import type { Tenancy } from "./tenancy.ts";

/** After this everything must have been counted; another node that did may have to be given up first. */
const COUNTED_MS = 60_000;
const LOOK_MS = 100;

type Shown = Pick<History, "events" | "tasks" | "runs" | "schedules" | "deliveries">;

/** What a node says at the end, when nothing moves any more: what each tenant is shown, together. */
export async function readHistory(
  url: string,
  tenancies: readonly Tenancy[],
): Promise<Shown & Pick<History, "views" | "bulks" | "counted">> {
  const shown: Shown[] = [];
  const bulks: Bulk[] = [];
  for (const { key, ledger } of tenancies) {
    const rota = new RotaClient({ url, key });
    shown.push(await readTenant(rota));
    for (const id of ledger.bulkIds) bulks.push(await rota.bulks.get(id));
  }
  const counted: Counted[] = [];
  for (const [index, { id, key }] of tenancies.entries())
    counted.push(await readAllCounted(new RotaClient({ url, key }), id, shown[index]?.events ?? []));
  return {
    bulks,
    counted,
    // Numbers are given over all tenants, in the order in which things happened.
    events: shown.flatMap(({ events }) => events).toSorted((a, b) => a.seq - b.seq),
    tasks: new Map(shown.flatMap(({ tasks }) => [...tasks])),
    schedules: shown.flatMap(({ schedules }) => schedules),
    runs: shown.flatMap(({ runs }) => runs),
    deliveries: shown.flatMap(({ deliveries }) => deliveries),
    views: shown.map((each, index) => ({ tenantId: tenancies[index]?.id ?? "", things: thingsIn(each) })),
  };
}

function thingsIn({ events, tasks, schedules, runs, deliveries }: Shown): string[] {
  return [
    ...events.map(({ seq }) => `event ${seq}`),
    ...[...tasks.keys()].map((id) => `task ${id}`),
    ...schedules.map((id) => `schedule ${id}`),
    ...runs.map(({ id }) => `run ${id}`),
    ...deliveries.map(({ deliveryId }) => `callback ${deliveryId}`),
  ];
}

/** Events are counted a moment after they happen. */
async function readAllCounted(
  rota: RotaClient,
  tenantId: string,
  events: History["events"],
): Promise<Counted> {
  const giveUpAt = performance.now() + COUNTED_MS;
  for (;;) {
    const read = await readCounted(rota, tenantId, events);
    const isAll = countedWrong({ events, counted: [read] }).length === 0;
    if (isAll || performance.now() > giveUpAt) return read;
    await delay(LOOK_MS);
  }
}

async function readTenant(rota: RotaClient): Promise<Shown> {
  const schedules = (await rota.schedules.list()).schedules.map(({ id }) => id);
  const events = await readLog(rota);
  return {
    events,
    tasks: await readTasks(rota),
    schedules,
    runs: await readRuns(rota),
    deliveries: await readDeliveries(rota),
  };
}

/** The whole log. Its end is found by a task that is submitted for that: of it, only what was said until it came counts. */
async function readLog(rota: RotaClient): Promise<RotaEvent[]> {
  const { taskId } = await rota.tasks.submit({ payload: "the last of this log" });
  await rota.tasks.wait(taskId);
  const events: RotaEvent[] = [];
  for await (const event of rota.events({ after: 0 })) {
    events.push(event);
    if (event.taskId === taskId && event.type === "task.completed") break;
  }
  return events;
}

async function readTasks(rota: RotaClient): Promise<Map<string, Task>> {
  const tasks = new Map<string, Task>();
  for (let cursor: string | undefined; ; ) {
    const page = await rota.tasks.list({ limit: 1_000, ...(cursor === undefined ? {} : { cursor }) });
    for (const task of page.tasks) tasks.set(task.taskId, task);
    if (page.nextCursor === null) return tasks;
    cursor = page.nextCursor;
  }
}

async function readDeliveries(rota: RotaClient): Promise<Delivery[]> {
  const deliveries: Delivery[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await rota.webhooks.deliveries({
      limit: 1_000,
      ...(cursor === undefined ? {} : { cursor }),
    });
    deliveries.push(...page.deliveries);
    if (page.nextCursor === null) return deliveries;
    cursor = page.nextCursor;
  }
}

async function readRuns(rota: RotaClient): Promise<Run[]> {
  const runs: Run[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await rota.runs.list(cursor === undefined ? {} : { cursor });
    runs.push(...page.runs);
    if (page.next_cursor === null) return runs;
    cursor = page.next_cursor;
  }
}
