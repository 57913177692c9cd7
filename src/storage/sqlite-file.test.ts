import { copyFileSync, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { SteppedClock } from "./conformance/clock.ts";
import { describeStorage } from "./conformance/index.ts";
import { idsOf, LANE, NODE, newTask, ROOMY, TENANT } from "./conformance/world.ts";
import type { SqliteOptions } from "./sqlite/database.ts";
import { openSqlite } from "./sqlite/open.ts";
import type { Storage } from "./storage.ts";

const folder = mkdtempSync(join(tmpdir(), "rota-sqlite-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const DONE = { to: "done", result: null } as const;

let lastFile = 0;
function newPath(): string {
  lastFile += 1;
  return join(folder, `${lastFile}.db`);
}

describeStorage("SQLite in a file", {
  capabilities: { durable: true, exclusive: true },
  propertyRuns: 30,
  async open(clock) {
    const storage = await openSqlite({ path: newPath(), clock });
    return { storage, dispose: () => storage.close() };
  },
});

/** Opens a file with a lane and a node, and closes it with the test. */
async function open(path: string, options: Partial<SqliteOptions> = {}) {
  const clock = new SteppedClock();
  const storage = await openSqlite({ path, clock, ...options });
  onTestFinished(() => storage.close());
  await storage.lanes.configure({
    lanes: [{ name: LANE, total: null, perAgent: null, strategy: "fair-fifo", agingMs: 0 }],
  });
  return { storage, clock };
}

function insert(storage: Storage, ...ids: string[]) {
  return storage.tasks.insert({ tasks: ids.map((id) => newTask({ id })), limits: ROOMY });
}

function claim(storage: Storage, limit: number) {
  return storage.tasks.finishAndClaim({
    node: NODE,
    finishes: [],
    progress: [],
    claims: [{ lane: LANE, limit }],
  });
}

describe("a SQLite file", () => {
  test("keeps everything over a restart, leases and limits included", async () => {
    const path = newPath();
    const { storage } = await open(path);
    await storage.nodes.register({ node: NODE });
    await storage.agents.configure({ tenant: TENANT, agent: "scout", maxInflight: 2 });
    await insert(storage, "a", "b", "c");
    const { claimed } = await claim(storage, 1);
    const look = async (from: Storage) => ({
      tasks: await from.tasks.list({ tenant: TENANT, limit: 10 }),
      events: await from.events.read({ after: 0, limit: 100, bytesMax: 1e9 }),
      nodes: await from.nodes.list(),
      lanes: await from.lanes.list(),
    });
    const before = await look(storage);
    await storage.close();

    const { storage: again } = await open(path);
    expect(await look(again)).toEqual(before);
    expect((await again.nodes.heartbeat({ node: NODE })).held).toEqual(
      claimed.map(({ token, task }) => ({ seq: task.seq, token })),
    );
    expect(idsOf((await claim(again, 5)).claimed)).toEqual(["b"]);
    expect(await again.counters.recountAll()).toEqual([]);
  });

  test("gives out no number again that was pruned before a restart", async () => {
    const path = newPath();
    const { storage, clock } = await open(path);
    const [task] = await insert(storage, "a");
    await storage.tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
    const { newest } = await storage.events.range();
    clock.step(2000);
    await storage.tasks.prune({ retentionMs: 1000, rejectedMax: 0, limit: 10 });
    expect(await storage.events.range()).toEqual({ oldest: newest + 1, newest });
    await storage.close();

    const { storage: again } = await open(path);
    const [next] = await insert(again, "b");
    expect(next?.seq).toBeGreaterThan(task?.seq ?? 0);
    expect((await again.events.range()).oldest).toBeGreaterThan(newest);
  });

  test("lists an agent's tasks, entered and not yet entered, also after it was opened again", async () => {
    const path = newPath();
    const { storage } = await open(path, { enterEvery: 10 });
    for (let count = 0; count < 34; count += 1) {
      const task = newTask({ id: `t${count}`, agent: `agent-${count % 3}` });
      await storage.tasks.insert({ tasks: [task], limits: ROOMY });
    }
    const list = async (from: Storage) => {
      const { tasks } = await from.tasks.list({ tenant: TENANT, agent: "agent-1", limit: 100 });
      return tasks.map(({ id }) => id);
    };
    const expected = Array.from({ length: 11 }, (_, index) => `t${31 - 3 * index}`);
    expect(await list(storage)).toEqual(expected);
    await storage.close();
    const { storage: again } = await open(path);
    expect(await list(again)).toEqual(expected);
    expect(await again.counters.recountAll()).toEqual([]);
  });

  test("finds what was ready, and only that, when it is opened again", async () => {
    const path = newPath();
    const { storage } = await open(path);
    await storage.nodes.register({ node: NODE });
    for (const id of ["held", "ended", "waits", "urgent"]) {
      const task = newTask({ id, priority: id === "urgent" ? 0 : 2 });
      await storage.tasks.insert({ tasks: [task], limits: ROOMY });
      if (id !== "waits" && id !== "urgent") await claim(storage, 1);
    }
    await storage.tasks.cancel({ tenant: TENANT, ids: ["ended"], error: null });
    await storage.close();
    const { storage: again } = await open(path);
    expect(await again.counters.recountAll()).toEqual([]);
    expect((await claim(again, 9)).claimed.map(({ task }) => task.id)).toEqual(["urgent", "waits"]);
  });

  test("knows who has a concurrency key, and who waits for it, when it is opened again", async () => {
    const path = newPath();
    const { storage } = await open(path);
    await storage.nodes.register({ node: NODE });
    await storage.agents.configure({ tenant: TENANT, agent: "full", maxInflight: 1 });
    const keyed = (id: string, concurrencyKey: string, more: object = {}) =>
      newTask({ id, concurrencyKey, ...more });
    await storage.tasks.insert({
      tasks: [keyed("held", "a"), keyed("next", "a"), newTask({ id: "busy", agent: "full" })],
      limits: ROOMY,
    });
    const { claimed } = await claim(storage, 9);
    expect(idsOf(claimed)).toEqual(["held", "busy"]);
    await storage.tasks.insert({
      tasks: [keyed("stuck", "b", { agent: "full" }), keyed("free", "b"), keyed("ready", "c")],
      limits: ROOMY,
    });
    await storage.close();
    const { storage: again } = await open(path);
    expect(await again.counters.recountAll()).toEqual([]);
    expect(idsOf((await claim(again, 9)).claimed).sort()).toEqual(["free", "ready"]);
    const [held] = claimed;
    const finishes = [{ seq: held?.task.seq ?? 0, token: held?.token ?? 0, settlement: DONE }];
    await again.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
    expect(idsOf((await claim(again, 9)).claimed)).toEqual(["next"]);
    expect(await again.counters.recountAll()).toEqual([]);
  });

  test("that another program has locked is away until it lets go, and says so to whoever asks how it is", async () => {
    const path = newPath();
    const { storage } = await open(path);
    const other = new Sqlite(path);
    onTestFinished(() => void other.close());
    other.exec("begin immediate");
    const away = { code: "storage_unavailable" };
    expect(await storage.now()).toEqual(expect.any(Number));
    await expect(insert(storage, "a")).rejects.toMatchObject(away);
    await expect(storage.now()).rejects.toMatchObject(away);
    other.exec("rollback");
    expect(await storage.now()).toEqual(expect.any(Number));
    expect(await insert(storage, "a")).toMatchObject([{ state: "queued" }]);
  });

  test("keeps nothing of a task that was pruned", async () => {
    const path = newPath();
    const { storage, clock } = await open(path, { enterEvery: 1 });
    await storage.nodes.register({ node: NODE });
    await insert(storage, "a");
    for (const to of ["queued", "failed"] as const) {
      const { claimed } = await claim(storage, 1);
      const finishes = claimed.map(({ token, task: { seq } }) => ({
        seq,
        token,
        settlement: { to, error: "no" },
      }));
      await storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
    }
    clock.step(2000);
    await storage.tasks.prune({ retentionMs: 1000, rejectedMax: 0, limit: 10 });
    const reader = new Sqlite(path, { readonly: true });
    onTestFinished(() => void reader.close());
    for (const table of ["task", "task_of_line", "attempt", "event", "lease", "line"]) {
      expect(reader.prepare(`select * from ${table}`).all(), table).toEqual([]);
    }
  });

  test("is refused to a second opener until the first has closed it", async () => {
    const path = newPath();
    const { storage } = await open(path);
    await insert(storage, "a");
    const second = openSqlite({ path, clock: new SteppedClock() });
    await expect(second).rejects.toMatchObject({
      code: "storage_unavailable",
      message: expect.stringContaining(path),
    });
    await insert(storage, "b");
    await storage.close();
    const { storage: next } = await open(path);
    expect(await next.tasks.counts({ tenant: TENANT })).toEqual({ queued: 2 });
  });

  test("is one file under all its names, for the lock as for the log", async () => {
    const path = newPath();
    await (await open(path)).storage.close();
    const link = `${path}-link`;
    symlinkSync(path, link);
    const { storage } = await open(link);
    await insert(storage, "a");
    await expect(openSqlite({ path, clock: new SteppedClock() })).rejects.toThrow("another Rota process");
    await storage.close();
    const { storage: again } = await open(path);
    expect(await again.tasks.counts({ tenant: TENANT })).toEqual({ queued: 1 });
  });

  test.each([
    ["a folder that does not exist", "no/such.db", /: there is no folder .*no$/],
    ["a folder", ".", /: files in .* cannot be written, or it is not a file$/],
    ["a file of another kind", "text.db", /: it is not a SQLite database$/],
  ])("says in a sentence why %s cannot be opened", async (_what, name, reason) => {
    writeFileSync(join(folder, "text.db"), "This is a text and was never anything else. ".repeat(50));
    await expect(openSqlite({ path: join(folder, name), clock: new SteppedClock() })).rejects.toMatchObject({
      code: "storage_unavailable",
      message: expect.stringMatching(reason),
    });
  });

  test("can be read by others while it is open", async () => {
    const path = newPath();
    const { storage } = await open(path);
    await insert(storage, "a");
    const reader = new Sqlite(path, { readonly: true });
    expect(reader.prepare("select id, state from task_state").all()).toEqual([{ id: "a", state: "queued" }]);
    reader.close();
  });

  test("of a newer Rota is refused and left as it is", async () => {
    const path = newPath();
    await (await open(path)).storage.close();
    const newer = new Sqlite(path);
    newer.exec("insert into schema_version (version, name) values (9999, 'from the future')");
    newer.close();
    for (let tries = 0; tries < 2; tries += 1) {
      const opening = openSqlite({ path, clock: new SteppedClock() });
      await expect(opening).rejects.toMatchObject({
        code: "storage_unavailable",
        message: expect.stringContaining("9999"),
      });
    }
  });

  test("with a wrong counter says so, and mends the line that is looked at", async () => {
    const path = newPath();
    const { storage } = await open(path);
    await insert(storage, "a", "b");
    const hand = new Sqlite(path);
    hand.exec("update line set waiting = 5, inflight = 3; update lane set waiting = 5, inflight = 3");
    hand.close();
    const faults = (await storage.counters.recountAll()).map(({ stored, counted }) => [stored, counted]);
    expect(faults).toEqual(
      expect.arrayContaining([
        [5, 2],
        [3, 0],
      ]),
    );
    expect(await storage.counters.recountOne({ random: 0.5 })).not.toEqual([]);
    expect(await storage.counters.recountAll()).toEqual([]);
    expect(await storage.counters.recountOne({ random: 0.5 })).toEqual([]);
  });

  test("in which a concurrency key is not with the task that it should be with says so", async () => {
    const path = newPath();
    const { storage } = await open(path);
    const tasks = ["a", "b"].map((agent) => newTask({ id: agent, agent, concurrencyKey: "k" }));
    await storage.tasks.insert({ tasks, limits: ROOMY });
    expect(await storage.counters.recountAll()).toEqual([]);
    const wrong = async (sql: string) => {
      const hand = new Sqlite(path);
      hand.exec(sql);
      hand.close();
      return (await storage.counters.recountAll()).map(({ counter, stored }) => [counter, stored]);
    };
    const [ofHolders, ofActive, ofWaiting] = [
      "concurrency keys: holders that are neither ready nor in flight with that key",
      "concurrency keys: tasks that are ready or in flight without having their key",
      "concurrency keys: tasks that wait for a key that is free, or that a claim does not look at",
    ];
    expect(await wrong("update key_hold set contested = 0")).toEqual([[ofWaiting, 1]]);
    expect(await wrong("update key_hold set contested = 1, task_seq = 2")).toEqual([
      [ofHolders, 1],
      [ofActive, 1],
    ]);
    expect(await wrong("delete from key_hold")).toEqual([
      [ofActive, 1],
      [ofWaiting, 1],
    ]);
  });
});

describe("a power cut", () => {
  /** A file whose disk keeps only what was flushed. `cut` opens what is left of it. */
  async function openOnDisk() {
    const path = newPath();
    const disk = newPath();
    const flushWal = async () => {
      for (const ending of ["", "-wal"]) {
        if (existsSync(path + ending)) copyFileSync(path + ending, disk + ending);
      }
    };
    const { storage } = await open(path, { flushWal });
    await storage.nodes.register({ node: NODE });
    return { storage, cut: async () => (await open(disk)).storage };
  }

  test("takes nothing back that was accepted", async () => {
    const { storage, cut } = await openOnDisk();
    await insert(storage, "a", "b");
    await storage.tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
    const left = await cut();
    expect(await left.tasks.counts({ tenant: TENANT })).toEqual({ queued: 1, cancelled: 1 });
    expect(await left.counters.recountAll()).toEqual([]);
  });

  test("may take back an end that nobody was shown: the task is there to be run again", async () => {
    const { storage, cut } = await openOnDisk();
    await insert(storage, "a", "b");
    const { claimed } = await claim(storage, 2);
    const finishes = claimed.map(({ token, task: { seq } }) => ({
      seq,
      token,
      settlement: { to: "done", result: 1 } as const,
    }));
    await storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
    expect(await (await cut()).tasks.counts({ tenant: TENANT })).toEqual({ queued: 2 });
  });

  test.for([
    ["a task", (storage: Storage) => storage.tasks.get({ tenant: TENANT, id: "a" })],
    ["a list", (storage: Storage) => storage.tasks.list({ tenant: TENANT, limit: 5 })],
    ["the events", (storage: Storage) => storage.events.read({ after: 0, limit: 50, bytesMax: 1e9 })],
  ] as const)("after %s was shown leaves it as it was shown", async ([, show]) => {
    const { storage, cut } = await openOnDisk();
    await insert(storage, "a");
    await claim(storage, 1);
    const shown = await show(storage);
    expect(await show(await cut())).toEqual(shown);
  });
});
