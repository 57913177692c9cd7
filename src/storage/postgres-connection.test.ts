import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { createTestDatabase } from "../../test/postgres/database.ts";
import {
  allEvents,
  copies,
  drain,
  type Node,
  openNodes,
  submit,
  tasksOf,
} from "../../test/postgres/several-nodes.ts";
import { LANE, newTask, ROOMY, TENANT } from "./conformance/world.ts";
import { openPostgres } from "./postgres/open.ts";

describe("a connection that breaks", () => {
  async function breakAll(admin: Client): Promise<void> {
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()`,
    );
  }

  /** Repeats what failed for want of a connection, as a caller does. */
  async function insist<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        expect(error).toMatchObject({ code: "storage_unavailable" });
      }
    }
  }

  test("doubles nothing when the insert is repeated with the same ids", async () => {
    const { first, admin } = await openNodes(1);
    const batches = Array.from({ length: 60 }, () => tasksOf(4, 5).map(newTask));
    let inserting = true;
    const breaking = (async () => {
      while (inserting) await breakAll(admin);
    })();
    for (const tasks of batches) await insist(() => first.tasks.insert({ tasks, limits: ROOMY }));
    inserting = false;
    await breaking;
    expect(await insist(() => first.tasks.counts({ tenant: TENANT }))).toEqual({ queued: 300 });
    expect(await first.counters.recountAll()).toEqual([]);
    const created = (await allEvents(first)).map(({ taskId }) => taskId);
    expect(new Set(created).size).toBe(300);
    expect(created).toHaveLength(300);
  });

  test("loses no task to a claim whose answer never came", async () => {
    const { nodes, first, admin } = await openNodes(1);
    const node = (nodes[0] as Node).node;
    await submit(first, tasksOf(4, 200));
    for (let round = 0; round < 30; round += 1) {
      const claims = [{ lane: LANE, limit: 5 }];
      const step = first.tasks.finishAndClaim({ node, finishes: [], progress: [], claims });
      await Promise.all([step.catch(() => null), breakAll(admin)]);
    }
    const [record] = await insist(() => first.nodes.list());
    await first.nodes.markDead({ node, beat: record?.beat ?? -1 });
    await first.tasks.rescue({ node, limit: 1000 });
    await first.nodes.register({ node: "heir" });
    await drain({ storage: first, node: "heir" }, [LANE], 20);
    expect(await first.tasks.counts({ tenant: TENANT })).toEqual({ done: 200 });
    expect(await first.counters.recountAll()).toEqual([]);
  });

  test("is told to listeners, who hear again what others do", async () => {
    const { nodes, first, admin } = await openNodes(2);
    const listener = (nodes[1] as Node).storage;
    const next = (kind: string) =>
      new Promise<void>((resolve) => {
        const leave = listener.subscribe((signal) => {
          if (signal.kind !== kind) return;
          leave();
          resolve();
        });
      });
    const before = next("work");
    await submit(first, [{}]);
    await before;
    const back = next("reconnected");
    await breakAll(admin);
    await back;
    const after = next("work");
    await insist(() => submit(first, [newTask({ id: "again" })]));
    await after;
  });
});

describe("a database", () => {
  test("is set up once by nodes that start on it at the same moment", async () => {
    const database = await createTestDatabase();
    const storages = await Promise.all(Array.from({ length: 4 }, () => openPostgres({ url: database.url })));
    onTestFinished(async () => {
      await Promise.all(storages.map((storage) => storage.close()));
      await database.drop();
    });
    const lane = { name: LANE, total: null, perAgent: null, strategy: "fair-fifo" } as const;
    await Promise.all(storages.map((storage) => storage.lanes.configure({ lanes: [lane] })));
    await Promise.all(storages.map((storage) => submit(storage, tasksOf(2, 5))));
    expect(await storages[0]?.tasks.counts({ tenant: TENANT })).toEqual({ queued: 20 });
  });

  test("of a newer Rota is refused and left as it is", async () => {
    const database = await copies.copy();
    const admin = new Client({ connectionString: database.url });
    await admin.connect();
    onTestFinished(async () => {
      await admin.end();
      await database.drop();
    });
    await admin.query("insert into rota.schema_version (version, name) values (9999, 'from the future')");
    const opening = openPostgres({ url: database.url });
    await expect(opening).rejects.toMatchObject({
      code: "storage_unavailable",
      message: expect.stringContaining("9999"),
    });
  });

  test("that cannot be reached is an error that says so", async () => {
    const opening = openPostgres({ url: "postgres://nobody@127.0.0.1:1/nowhere" });
    await expect(opening).rejects.toMatchObject({ code: "storage_unavailable" });
  });
});
