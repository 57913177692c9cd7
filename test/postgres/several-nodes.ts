import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { DEFAULT_TENANT } from "../../src/model/tenant.ts";
import { LANE, newTask, OTHER_LANE, ROOMY } from "../../src/storage/conformance/world.ts";
import { CONNECTION_SETTINGS } from "../../src/storage/postgres/connection/connection-config.ts";
import { openPostgres } from "../../src/storage/postgres/connection/open.ts";
import type { ClaimedTask, NewTask, Storage, StoredEvent } from "../../src/storage/storage.ts";
import type { TestDatabase } from "./database.ts";
import { type DatabaseCopies, prepareDatabaseCopies } from "./database-copies.ts";

let copies: DatabaseCopies | null = null;

/**
 * For the top of a test file: prepares an empty Rota database to copy, and drops all copies when the file has ended.
 *
 * `autovacuum: false` is for tests that judge plans or count pages: the server neither analyses tables nor has plans made anew at a
 * moment of its own choice, so that a test says by itself what the planner knows.
 */
export function prepareDatabases({ autovacuum = true }: { autovacuum?: boolean } = {}): void {
  beforeAll(async () => {
    copies = await prepareDatabaseCopies(async (url) => {
      await (await openPostgres({ url })).close();
      if (!autovacuum) await disableAutovacuum(url);
    });
  });
  afterAll(async () => {
    await copies?.drop();
    copies = null;
  });
}

async function disableAutovacuum(url: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`do $$
    declare
      v_table regclass;
    begin
      for v_table in select oid from pg_class where relnamespace = 'rota'::regnamespace and relkind = 'r' loop
        execute format('alter table %s set (autovacuum_enabled = off)', v_table);
      end loop;
    end $$`);
  await client.end();
}

/** A database of its own that is set up and empty. */
export async function copyDatabase(): Promise<TestDatabase> {
  if (copies === null) throw new Error("Call prepareDatabases() at the top of the test file.");
  return copies.copy();
}

/** Plans are made as for Rota's own connections. A test may hold a lock or a transaction for as long as it likes. */
async function connectAsRota(url: string): Promise<Client> {
  const settings = Object.entries(CONNECTION_SETTINGS).filter(([name]) => !name.endsWith("_timeout"));
  const options = settings.map(([name, value]) => `-c ${name}=${value}`).join(" ");
  const client = new Client({ connectionString: url, options });
  await client.connect();
  return client;
}

/** Several processes on one database: a storage and a node for each, and a connection to look behind the scenes. */
export async function openNodes(count: number) {
  const database = await copyDatabase();
  const admin = await connectAsRota(database.url);
  const storages = await Promise.all(
    Array.from({ length: count }, () => openPostgres({ url: database.url })),
  );
  onTestFinished(async () => {
    await Promise.all([admin.end(), ...storages.map((storage) => storage.close())]);
    await database.drop();
  });
  const nodes = storages.map((storage, index) => ({ storage, node: `node-${index}` }));
  const [first] = nodes;
  if (first === undefined) throw new Error("There is at least one node.");
  const bounds = { total: null, perAgent: null, perTenant: null, strategy: "fair-fifo", agingMs: 0 } as const;
  await first.storage.lanes.configure({ lanes: [LANE, OTHER_LANE].map((name) => ({ name, ...bounds })) });
  for (const { storage, node } of nodes) await storage.nodes.register({ node });
  return { nodes, first: first.storage, admin, url: database.url };
}

/**
 * Resolves once `to` has received every signal that `from` raised so far. A node sends its signals in order, and those of changed
 * keys at once.
 */
export async function signalsArrived(from: Storage, to: Storage): Promise<void> {
  const arrived = Promise.withResolvers<void>();
  const unsubscribe = to.subscribe(({ kind }) => kind === "keys" && arrived.resolve());
  const id = randomUUID();
  const key = {
    id,
    tenant: DEFAULT_TENANT,
    name: id,
    role: "viewer",
    agent: null,
    hash: id,
    expiresAt: null,
  };
  await from.keys.create(key);
  await arrived.promise;
  unsubscribe();
}

export type Node = Awaited<ReturnType<typeof openNodes>>["nodes"][number];

export function submit(storage: Storage, tasks: readonly Partial<NewTask>[]) {
  return storage.tasks.insert({ tasks: tasks.map(newTask), limits: ROOMY });
}

export function tasksOf(agents: number, count: number, overrides: Partial<NewTask> = {}): Partial<NewTask>[] {
  return Array.from({ length: count }, (_, index) => ({ agent: `agent-${index % agents}`, ...overrides }));
}

export const done = { to: "done", result: null } as const;

export function settle(claimed: readonly ClaimedTask[]) {
  return claimed.map(({ token, task: { seq } }) => ({ seq, token, settlement: done }));
}

/** Runs what there is to run until a claim comes back empty. */
export async function drain({ storage, node }: Node, lanes: readonly string[], limit: number): Promise<void> {
  const claims = lanes.map((lane) => ({ lane, limit }));
  let held: readonly ClaimedTask[] = [];
  do {
    const finishes = settle(held);
    held = (await storage.tasks.finishAndClaim({ node, finishes, progress: [], claims })).claimed;
  } while (held.length > 0);
}

export async function allEvents(storage: Storage): Promise<StoredEvent[]> {
  return (await storage.events.read({ after: 0, limit: 1_000_000, bytesMax: 1e9 })).events;
}

/** The most that was in flight at once for each name, by the log, which is in the order of what happened. */
export function peaks(events: readonly StoredEvent[], nameOf: (event: StoredEvent) => string): number[] {
  const inflight = new Map<string, number>();
  const peak = new Map<string, number>();
  for (const event of events) {
    const isMove = !["task.created", "task.progress", "batch.completed"].includes(event.type);
    const change = event.type === "task.started" ? 1 : isMove ? -1 : 0;
    const now = (inflight.get(nameOf(event)) ?? 0) + change;
    inflight.set(nameOf(event), now);
    peak.set(nameOf(event), Math.max(peak.get(nameOf(event)) ?? 0, now));
  }
  return [...peak.values()];
}

/** Chance that is the same in every run. */
export function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
