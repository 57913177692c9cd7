import { setTimeout as delay } from "node:timers/promises";
import type { LocalTenant, Rota } from "../../src/interface/rota.ts";
import type { RotaEvent } from "../../src/model/event.ts";
import type { Notification } from "../../src/model/notification.ts";

/** Everything that the library returns about a storage, as JSON. */
export interface Everything {
  readonly tenants: readonly unknown[];
  readonly keys: readonly unknown[];
  readonly audit: readonly unknown[];
  readonly lanes: readonly unknown[];
  /** By the id of the tenant. */
  readonly work: Readonly<Record<string, Work>>;
}

export interface Work {
  readonly tasks: readonly { readonly state: string }[];
  readonly counts: unknown;
  readonly batches: readonly unknown[];
  readonly sessions: readonly unknown[];
  readonly agents: readonly unknown[];
  readonly schedules: readonly unknown[];
  readonly runs: readonly { readonly status: string }[];
  readonly deliveries: readonly { readonly status: string }[];
  readonly events: readonly unknown[];
  readonly notifications: readonly unknown[];
}

/** How many entries of an endless stream to read; Infinity: until none comes for a while. */
export interface EntryCounts {
  readonly events: number;
  readonly notifications: number;
}

/** Reads everything. `countsOf`: how many entries each tenant has, since a stream has no end. */
export async function readAll(rota: Rota, countsOf: (tenantId: string) => EntryCounts): Promise<Everything> {
  const { tenants } = await rota.tenants.list();
  const keys = [];
  const audit = [];
  const work: Record<string, Work> = {};
  for (const { id } of tenants) {
    keys.push(...(await rota.keys.list({ tenantId: id })).keys);
    audit.push(...(await rota.audit.list({ tenantId: id })).entries);
    work[id] = await readWork(rota.tenant(id), countsOf(id));
  }
  // How long something has waited is another matter each time.
  const lanes = (await rota.lanes.list()).lanes.map(({ oldestWaitMs: _, ...lane }) => lane);
  return asJson({ tenants, keys, audit, lanes, work });
}

async function readWork(rota: LocalTenant, countsOf: EntryCounts): Promise<Work> {
  const tasks = await everyPage(async (cursor) => {
    const page = await rota.tasks.list({ limit: 20, ...cursor });
    return { items: page.tasks, next: page.nextCursor };
  });
  const batchIds = new Set(tasks.flatMap(({ batchId }) => batchId ?? []));
  return {
    tasks: await Promise.all(tasks.map(({ taskId }) => rota.tasks.get(taskId))),
    counts: await rota.tasks.counts(),
    batches: await Promise.all([...batchIds].map((id) => rota.tasks.getBatch(id))),
    sessions: await everyPage(async (cursor) => {
      const page = await rota.sessions.list({ limit: 2, ...cursor });
      return { items: page.sessions, next: page.nextCursor };
    }),
    agents: (await rota.agents.list()).agents,
    schedules: (await rota.schedules.list()).schedules,
    runs: await everyPage(async (cursor) => {
      const page = await rota.runs.list({ limit: 3, ...cursor });
      return { items: page.runs, next: page.next_cursor };
    }),
    deliveries: await everyPage(async (cursor) => {
      const page = await rota.webhooks.deliveries({ limit: 2, ...cursor });
      return { items: page.deliveries, next: page.nextCursor };
    }),
    events: await take<RotaEvent>(rota.events({ after: 0 }), countsOf.events),
    notifications: await take<Notification>(rota.notifications({ after: 0 }), countsOf.notifications),
  };
}

async function everyPage<Item>(
  page: (cursor: { cursor?: string }) => Promise<{ items: readonly Item[]; next: string | null }>,
): Promise<Item[]> {
  const all: Item[] = [];
  let cursor: { cursor?: string } = {};
  for (;;) {
    const { items, next } = await page(cursor);
    all.push(...items);
    if (next === null) return all;
    cursor = { cursor: next };
  }
}

async function take<Item>(stream: AsyncIterableIterator<Item, undefined>, count: number): Promise<Item[]> {
  const taken: Item[] = [];
  while (taken.length < count) {
    const next = stream.next();
    const result = await (count === Number.POSITIVE_INFINITY ? Promise.race([next, silence()]) : next);
    if (result.done) break;
    taken.push(result.value);
  }
  await stream.return?.();
  return taken;
}

async function silence(): Promise<IteratorReturnResult<undefined>> {
  await delay(SILENCE_MS);
  return { done: true, value: undefined };
}

const SILENCE_MS = 200;

function asJson<Type>(value: Type): Type {
  return JSON.parse(JSON.stringify(value)) as Type;
}
