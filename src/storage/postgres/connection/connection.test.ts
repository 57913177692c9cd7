import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { startCuttingProxy } from "../../../../test/postgres/cutting-proxy.ts";
import { createTestDatabase } from "../../../../test/postgres/database.ts";
import {
  allEvents,
  copyDatabase,
  drain,
  type Node,
  openNodes,
  prepareDatabases,
  settle,
  submit,
  tasksOf,
} from "../../../../test/postgres/several-nodes.ts";
import { newDefinition } from "../../conformance/schedules/schedule-world.ts";
import { LANE, newTask, ROOMY, TENANT } from "../../conformance/world.ts";
import type { ClaimedTask, FinishedAttempt, StorageSignal } from "../../storage.ts";
import { FUNCTION_SCHEMA } from "./functions.ts";
import { openPostgres } from "./open.ts";

prepareDatabases();

test("a database that does not respond at all is unavailable, and does not keep the storage from closing", async () => {
  const { url } = await openNodes(1);
  const proxy = await startCuttingProxy(url);
  onTestFinished(() => proxy.close());
  const storage = await openPostgres({ url: proxy.url, timeouts: { readMs: 100, writeMs: 200 } });
  await storage.tasks.counts({ tenant: TENANT });
  proxy.freeze();
  const away = { code: "storage_unavailable" };
  await expect(storage.tasks.counts({ tenant: TENANT })).rejects.toMatchObject(away);
  await expect(storage.tasks.insert({ tasks: [newTask()], limits: ROOMY })).rejects.toMatchObject(away);
  await storage.close();
});

describe("a response that is lost", () => {
  /** One node whose storage reaches the database through a proxy that can lose responses. */
  async function openBehindProxy() {
    const { first, url } = await openNodes(1);
    const proxy = await startCuttingProxy(url);
    const storage = await openPostgres({ url: proxy.url });
    onTestFinished(async () => {
      await storage.close();
      proxy.close();
    });
    /** Does the work, which is this statement, and loses what the database says about it. */
    async function lose(statement: string, work: () => Promise<unknown>): Promise<void> {
      proxy.loseAnswerTo(statement);
      await expect(work()).rejects.toMatchObject({ code: "storage_unavailable" });
    }
    return { storage, direct: first, proxy, lose };
  }

  test("doubles nothing when the insert is repeated with the same ids", async () => {
    const { storage, direct, lose } = await openBehindProxy();
    for (let round = 1; round <= 10; round += 1) {
      const tasks = tasksOf(4, 5).map(newTask);
      const insert = () => storage.tasks.insert({ tasks, limits: ROOMY });
      await lose("insert_tasks", insert);
      expect(await direct.tasks.counts({ tenant: TENANT })).toEqual({ queued: round * 5 });
      const answers = (await insert()).map(({ id, state }) => ({ id, state }));
      expect(answers).toEqual(tasks.map(({ id }) => ({ id, state: "queued" })));
    }
    expect(await direct.tasks.counts({ tenant: TENANT })).toEqual({ queued: 50 });
    expect(await allEvents(direct)).toHaveLength(50);
    expect(await direct.counters.recountAll()).toEqual([]);
  });

  test("makes no second batch of one that is submitted again", async () => {
    const { storage, direct, lose } = await openBehindProxy();
    const batches = [{ id: "b", tenant: TENANT, parallelism: 2, callbackUrl: "https://example.com/b" }];
    const tasks = tasksOf(2, 3, { batch: "b" }).map(newTask);
    const insert = () => storage.tasks.insert({ tasks, batches, limits: ROOMY });
    await lose("insert_tasks", insert);
    expect(await insert()).toHaveLength(3);
    await drain({ storage: direct, node: "node-0" }, [LANE], 3);
    // Submitted once more after all is over, it is still the same.
    await insert();
    const completed = (await allEvents(direct)).filter(({ type }) => type === "batch.completed");
    expect(completed).toHaveLength(1);
    expect((await direct.deliveries.list({ tenant: TENANT, limit: 9 })).deliveries).toHaveLength(1);
    expect(await direct.counters.recountAll()).toEqual([]);
  });

  test("of a claim leaves tasks held that no node runs, until the node is declared dead", async () => {
    const { storage, direct, proxy } = await openBehindProxy();
    const node = "unlucky";
    await direct.nodes.register({ node });
    await submit(direct, tasksOf(4, 20));
    const claims = [{ lane: LANE, limit: 5 }];
    proxy.loseAnswerTo("exchange");
    const { claimed } = await storage.tasks.finishAndClaim({ node, finishes: [], progress: [], claims });
    expect(claimed).toEqual([]);
    expect((await storage.nodes.heartbeat({ node })).held).toHaveLength(5);
    expect(await storage.nodes.markDead({ node, beat: 1 })).toBe(true);
    expect((await storage.tasks.rescue({ node, limit: 100 })).requeued).toHaveLength(5);
    await drain({ storage: direct, node: "node-0" }, [LANE], 20);
    expect(await direct.tasks.counts({ tenant: TENANT })).toEqual({ done: 20 });
    expect(await direct.counters.recountAll()).toEqual([]);
  });

  test("of a fire fires nothing twice when it is repeated", async () => {
    const { storage, direct, lose } = await openBehindProxy();
    const definition = newDefinition();
    const made = { tenant: TENANT, definition, status: "active", nextFireAt: 1, source: null } as const;
    const schedule = await direct.schedules.create(made);
    const moment = { dueAt: 1, firstDueAt: 1, moments: 1, forced: false };
    const task = newTask({ origin: "run", schedule: schedule.id });
    const run = { ...moment, status: "running", requestId: "r", task, replaces: false } as const;
    const fire = () =>
      storage.schedules.fire({ fires: [{ ...schedule, runs: [run], nextFireAt: null, pauses: null }] });
    await lose("fire_schedules", fire);
    expect(await fire()).toMatchObject([{ fired: false, runs: [] }]);
    const { runs } = await direct.schedules.listRuns({ tenant: TENANT, limit: 9 });
    expect(runs).toMatchObject([{ status: "running", taskId: task.id }]);
    expect(await direct.tasks.counts({ tenant: TENANT })).toEqual({ queued: 1 });
    expect(await direct.counters.recountAll()).toEqual([]);
  });

  test("of an end changes nothing when the end is repeated", async () => {
    const { storage, direct, proxy } = await openBehindProxy();
    await submit(direct, [{ id: "t" }]);
    const step = { node: "node-0", finishes: [], progress: [], claims: [] };
    const claims = [{ lane: LANE, limit: 1 }];
    const { claimed } = await storage.tasks.finishAndClaim({ ...step, claims });
    const finish = () => storage.tasks.finishAndClaim({ ...step, finishes: settle(claimed) });
    proxy.loseAnswerTo("exchange");
    expect((await finish()).finished).toEqual([]);
    expect((await allEvents(direct)).map(({ type }) => type)).toEqual([
      "task.created",
      "task.started",
      "task.completed",
    ]);
  });
});

describe("a connection that breaks", () => {
  /** Repeats what failed for want of a connection, as a caller does. */
  async function insist<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 0; tries < 50; tries += 1) {
      try {
        return await work();
      } catch (error) {
        expect(error).toMatchObject({ code: "storage_unavailable" });
      }
    }
    throw new Error("The connection does not come back.");
  }

  test("loses nothing and doubles nothing, whenever it breaks", async () => {
    const { first, admin } = await openNodes(1);
    const node = "node-0";
    const claims = [{ lane: LANE, limit: 7 }];
    for (let round = 0; round < 40; round += 1) {
      const tasks = tasksOf(4, 5).map(newTask);
      const work = (async () => {
        await insist(() => first.tasks.insert({ tasks, limits: ROOMY }));
        await insist(() => first.tasks.finishAndClaim({ node, finishes: [], progress: [], claims }));
      })();
      // Each round makes more queries first, so that the connection breaks a little later each time.
      for (let wait = 0; wait < round % 8; wait += 1) await admin.query("select 1");
      await breakAll(admin);
      await work;
    }
    await insist(() => first.nodes.markDead({ node, beat: 0 }));
    await insist(() => first.tasks.rescue({ node, limit: 1000 }));
    await first.nodes.register({ node: "heir" });
    await drain({ storage: first, node: "heir" }, [LANE], 50);
    expect(await first.tasks.counts({ tenant: TENANT })).toEqual({ done: 200 });
    const created = (await allEvents(first)).filter(({ type }) => type === "task.created");
    expect(new Set(created.map(({ taskId }) => taskId)).size).toBe(200);
    expect(created).toHaveLength(200);
    expect(await first.counters.recountAll()).toEqual([]);
  });

  test("is signalled to listeners, which get the signals of other nodes again", async () => {
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
    const tasks = [newTask()];
    await insist(() => first.tasks.insert({ tasks, limits: ROOMY }));
    await after;
  });
});

describe("a node", () => {
  test("passes over notifications that it does not know", async () => {
    const { nodes, first, admin } = await openNodes(2);
    const listener = (nodes[1] as Node).storage;
    const heard = new Promise<void>((resolve) => {
      listener.subscribe(({ kind }) => kind === "work" && resolve());
    });
    const strange = [
      "no JSON",
      "null",
      '{"from":"x"}',
      '{"from":"x","signals":[null,{"kind":"fenced"},{"kind":"new"}]}',
      '{"from":"x","signals":[{"kind":"fenced","tokens":[1],"reason":"new"}]}',
    ];
    for (const payload of strange) await admin.query("select pg_notify('rota', $1)", [payload]);
    await submit(first, [{}]);
    await heard;
  });

  test("signals to other nodes which attempts were fenced, and why", async () => {
    const { nodes, first } = await openNodes(2);
    const { storage, node } = nodes[1] as Node;
    const heard: StorageSignal[] = [];
    const both = new Promise<void>((resolve) => {
      storage.subscribe((signal) => {
        if (signal.kind === "fenced" && heard.push(signal) === 2) resolve();
      });
    });
    await storage.nodes.setSlots({ node, slots: { [LANE]: 2 } });
    await submit(first, [{ id: "a" }, { id: "b", preemptible: true }]);
    const claims = [{ lane: LANE, limit: 2 }];
    const { claimed } = await storage.tasks.finishAndClaim({ node, finishes: [], progress: [], claims });
    await submit(first, [{ priority: 0 }]);
    await first.tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
    await both;
    expect(heard).toEqual([
      { kind: "fenced", tokens: [claimed[1]?.token], reason: "preempted" },
      { kind: "fenced", tokens: [claimed[0]?.token], reason: "cancelled" },
    ]);
  });

  test("notifies the others once of what an exchange raises, and of free slots only if a limit held tasks back", async () => {
    const { first, admin } = await openNodes(2);
    const heard: { readonly from: string; readonly signals: readonly StorageSignal[] }[] = [];
    admin.on("notification", ({ payload }) => heard.push(JSON.parse(payload ?? "")));
    await admin.query("listen rota");
    /**
     * What the work signals. A changed lane is signalled at once, together with what still waits, so that no signal of this node
     * comes after it. The other node may still signal that it has registered.
     */
    const kinds = async (work: () => Promise<unknown>) => {
      heard.length = 0;
      await work();
      await first.lanes.put({ name: "other", concurrency: 1, total: null });
      const changed = () => heard.find(({ signals }) => signals.some(({ kind }) => kind === "lanes"));
      await expect.poll(changed).toBeDefined();
      const ofFirst = heard.filter(({ from }) => from === changed()?.from);
      return ofFirst
        .flatMap(({ signals }) => signals.map(({ kind }) => kind))
        .filter((kind) => kind !== "lanes");
    };
    await kinds(async () => {});
    const step = { node: "node-0", finishes: [], progress: [], claims: [] };
    const claims = [{ lane: LANE, limit: 1 }];
    const end = ({ task, token }: ClaimedTask): FinishedAttempt => ({
      seq: task.seq,
      token,
      settlement: { to: "done", result: null },
    });
    const finishes: FinishedAttempt[] = [];
    const claim = async () => {
      const { claimed } = await first.tasks.finishAndClaim({ ...step, claims });
      finishes.splice(0, 1, ...claimed.map(end));
    };
    const finish = () => first.tasks.finishAndClaim({ ...step, finishes });
    expect(await kinds(() => submit(first, [{}, {}, {}]))).toEqual(["events", "work"]);
    expect(await kinds(claim)).toEqual(["events"]);
    expect(await kinds(finish)).toEqual(["events"]);
    const lane = { total: 1, perAgent: null, perTenant: null, strategy: "fair-fifo", agingMs: 0 } as const;
    await kinds(() => first.lanes.configure({ lanes: [{ name: LANE, ...lane }] }));
    expect(await kinds(claim)).toEqual(["events"]);
    expect(await kinds(finish)).toEqual(["events", "work"]);
  });

  test("prepares its connections when it registers, and leaves no trace of that", async () => {
    const { first, admin, url } = await openNodes(1);
    await submit(first, [{}]);
    const trace = async () => {
      const { rows } = await admin.query(
        `select (select row(last_value, is_called) from event_seq)::text as numbers, (select count(*) from task) as tasks,
                (select count(*) from lease) as leases, (select json_agg(l order by id) from line l)::text as lines`,
      );
      return rows[0];
    };
    const storage = await openPostgres({ url, warmUp: true });
    onTestFinished(() => storage.close());
    const before = await trace();
    await storage.nodes.register({ node: "warm", slots: { [LANE]: 1 } });
    const prepared = `select count(*)::int as count from pg_stat_activity
                       where query like '%warm_up%' and datname = current_database() and pid <> pg_backend_pid()`;
    await expect.poll(async () => (await admin.query(prepared)).rows[0].count).toBe(6);
    await storage.check();
    expect(await trace()).toEqual(before);
    const claims = [{ lane: LANE, limit: 2 }];
    const { claimed } = await storage.tasks.finishAndClaim({
      node: "warm",
      finishes: [],
      progress: [],
      claims,
    });
    expect(claimed).toHaveLength(1);
  });

  test("gets its connections back from a server that stops responding while they are prepared", async () => {
    const { url } = await openNodes(1);
    const proxy = await startCuttingProxy(url);
    const timeouts = { readMs: 300, writeMs: 300 };
    const storage = await openPostgres({ url: proxy.url, timeouts, warmUp: true });
    onTestFinished(async () => {
      await storage.close();
      proxy.close();
    });
    const frozen = proxy.freezeAt("warm_up", 6);
    await storage.nodes.register({ node: "warm", slots: { [LANE]: 1 } });
    await frozen;
    // The six connections stay silent: only their timeout gives them back.
    proxy.thaw();
    expect((await storage.nodes.list()).map(({ node }) => node)).toContain("warm");
  });

  test("gets a connection back from a server that stops responding before its first use", async () => {
    const { url } = await openNodes(1);
    const proxy = await startCuttingProxy(url);
    const storage = await openPostgres({ url: proxy.url, timeouts: { readMs: 300, writeMs: 300 } });
    onTestFinished(async () => {
      await storage.close();
      proxy.close();
    });
    await submit(storage, [{}]);
    await storage.events.range();
    // A new connection asks first whether the database has the event numbers that this process has seen.
    const frozen = proxy.freezeAt("as behind", 1);
    const reads = Promise.allSettled(
      Array.from({ length: 6 }, () => storage.tasks.counts({ tenant: TENANT })),
    );
    const { closed } = await frozen;
    proxy.thaw();
    await closed;
    await reads;
    expect(await storage.tasks.counts({ tenant: TENANT })).toEqual({ queued: 1 });
  });

  test("sends its last signals before it closes", async () => {
    const { first, url } = await openNodes(2);
    const heard: string[] = [];
    const storage = await openPostgres({ url });
    await sleep(50);
    first.subscribe(({ kind }) => heard.push(kind));
    await submit(storage, [{}]);
    await storage.close();
    await expect.poll(() => heard).toContain("work");
  });

  test("renews its lease while everything else waits for the write lock", async () => {
    const { first, admin } = await openNodes(1);
    await admin.query("select pg_advisory_lock(7682)");
    const waiting = Array.from({ length: 20 }, () =>
      first.tasks.cancel({ tenant: TENANT, ids: ["x"], error: null }),
    );
    expect(await first.nodes.heartbeat({ node: "node-0" })).toMatchObject({ alive: true });
    await admin.query("select pg_advisory_unlock(7682)");
    expect(await Promise.all(waiting)).toHaveLength(20);
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
    const lane = {
      name: LANE,
      total: null,
      perAgent: null,
      perTenant: null,
      strategy: "fair-fifo",
      agingMs: 0,
    } as const;
    await Promise.all(storages.map((storage) => storage.lanes.configure({ lanes: [lane] })));
    await Promise.all(storages.map((storage) => submit(storage, tasksOf(2, 5))));
    expect(await storages[0]?.tasks.counts({ tenant: TENANT })).toEqual({ queued: 20 });
  });

  test("of a newer Rota is refused and left as it is", async () => {
    const database = await copyDatabase();
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

  test("that a later Rota has migrated is one to wait for, and its nodes are not ready", async () => {
    const { first, admin } = await openNodes(1);
    const { claimed } = await first.tasks.finishAndClaim({
      node: "node-0",
      finishes: [],
      progress: [],
      claims: [],
    });
    expect(claimed).toEqual([]);
    await first.check();
    await admin.query(`drop schema ${FUNCTION_SCHEMA} cascade`);
    const replaced = {
      code: "storage_unavailable",
      message: "a later version of Rota has migrated the database: update this node",
    };
    await expect(submit(first, [{}])).rejects.toMatchObject(replaced);
    await expect(first.nodes.heartbeat({ node: "node-0" })).rejects.toMatchObject(replaced);
    await expect(
      first.tasks.finishAndClaim({ node: "node-0", finishes: [], progress: [], claims: [] }),
    ).rejects.toMatchObject(replaced);
    await expect(first.check()).rejects.toMatchObject(replaced);
  });

  test("that refuses to write is one to wait for, not a fault of what was to be written", async () => {
    const { first, admin, url } = await openNodes(1);
    const name = new URL(url).pathname.slice(1);
    await admin.query(`alter database ${name} set default_transaction_read_only = on`);
    await breakAll(admin);
    const errors: unknown[] = [];
    // The first few may still find the connections that were cut.
    for (let tries = 0; tries < 20 && !String(errors.at(-1)).includes("read-only"); tries += 1) {
      errors.push(await submit(first, [{}]).catch((error) => error));
    }
    expect(String(errors.at(-1))).toContain("read-only");
    for (const error of errors) expect(error).toMatchObject({ code: "storage_unavailable" });
  });

  test("takes options from its URL besides Rota's own", async () => {
    const { url } = await openNodes(1);
    const storage = await openPostgres({ url: `${url}?options=-c%20work_mem%3D8MB` });
    onTestFinished(() => storage.close());
    expect(await submit(storage, [{}])).toHaveLength(1);
  });

  test("in another encoding than UTF8 is refused with what to write instead", async () => {
    const { admin, url } = await openNodes(1);
    const name = `latin_${process.pid}`;
    await admin.query(`create database ${name} encoding 'LATIN1' locale 'C' template template0`);
    onTestFinished(async () => {
      const again = new Client({ connectionString: url });
      await again.connect();
      await again.query(`drop database ${name} with (force)`);
      await again.end();
    });
    const address = new URL(url);
    address.pathname = name;
    await expect(openPostgres({ url: address.href })).rejects.toThrow("Rota needs UTF8");
  });

  test("that cannot be reached is an error that says so", async () => {
    const opening = openPostgres({ url: "postgres://unknown@127.0.0.1:1/nowhere" });
    await expect(opening).rejects.toMatchObject({ code: "storage_unavailable" });
  });
});

async function breakAll(admin: Client): Promise<void> {
  await admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`,
  );
}
