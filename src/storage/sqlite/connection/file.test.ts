import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import Sqlite from "better-sqlite3";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { SteppedClock } from "../../conformance/connection/clock.ts";
import { describeStorage } from "../../conformance/index.ts";
import { allRollups, countAll } from "../../conformance/log/rollups.ts";
import { newDefinition } from "../../conformance/schedules/schedule-world.ts";
import { UNBOUNDED } from "../../conformance/tenants/share-out.ts";
import { idsOf, LANE, NODE, newTask, ROOMY, TENANT } from "../../conformance/world.ts";
import type { Storage } from "../../storage.ts";
import type { SqliteOptions } from "./database.ts";
import { openSqlite } from "./open.ts";
import { FAST_FLUSHES_MIN, type LogFlush } from "./wal-sync.ts";

const folder = mkdtempSync(join(tmpdir(), "rota-sqlite-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const DONE = { to: "done", result: null } as const;

let lastFile = 0;
function newPath(): string {
  lastFile += 1;
  return join(folder, `${lastFile}.db`);
}

/** A database that is set up and empty: to copy it is quicker than to set each up. */
const template = newPath();
await (await openSqlite({ path: template, clock: new SteppedClock() })).close();

describeStorage("SQLite in a file", {
  capabilities: { durable: true, exclusive: true, claimsAhead: false },
  nodesDiffer: false,
  propertyRuns: 30,
  async open(clock) {
    const path = newPath();
    copyFileSync(template, path);
    const storage = await openSqlite({ path, clock });
    return { storage, dispose: () => storage.close() };
  },
});

/** Opens a file with a lane and a node, and closes it with the test. */
async function open(path: string, options: Partial<SqliteOptions> = {}) {
  const clock = new SteppedClock();
  const storage = await openSqlite({ path, clock, ...options });
  onTestFinished(() => storage.close());
  await storage.lanes.configure({
    lanes: [{ name: LANE, total: null, perAgent: null, perTenant: null, strategy: "fair-fifo", agingMs: 0 }],
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
  test("goes on after a restart with bringing back the dependants of a retry", async () => {
    const path = newPath();
    const { storage } = await open(path);
    await insert(storage, "a");
    const dependants = Array.from({ length: 250 }, () => newTask({ dependsOn: ["a"] }));
    await storage.tasks.insert({ tasks: dependants, limits: ROOMY });
    await storage.tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
    while ((await storage.tasks.release({ limit: 100 })).more);
    await storage.tasks.retry({ tenant: TENANT, id: "a", dependants: true });
    expect(await storage.tasks.counts({ tenant: TENANT })).toMatchObject({ cancelled: 150 });
    await storage.close();

    const { storage: again } = await open(path);
    while ((await again.tasks.release({ limit: 100 })).more);
    expect(await again.tasks.counts({ tenant: TENANT })).toEqual({ queued: 1, waiting_dependency: 250 });
    expect(await again.counters.recountAll()).toEqual([]);
  });

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

  test("keeps what was logged over a restart, and deletes it with its task", async () => {
    const path = newPath();
    const { storage } = await open(path);
    const [task] = await insert(storage, "a");
    const lines = [{ at: 1, level: "info", text: "x" }] as const;
    const piece = { taskSeq: task?.seq ?? 0, attempt: 1, bytes: 1, lines };
    await storage.logs.append({ pieces: [1, 2].map((lastN) => ({ ...piece, lastN })) });
    await storage.close();

    const { storage: again, clock } = await open(path);
    const read = { tenant: TENANT, taskId: "a", after: 0, limit: 10 };
    expect(await again.logs.read(read)).toMatchObject({ attempt: 1, lines: { length: 2 } });
    await again.tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
    clock.step(2_000);
    await again.tasks.prune({ retentionMs: 1_000, rejectedMax: 0, limit: 10 });
    await again.logs.append({ pieces: [{ ...piece, lastN: 3 }] });
    await again.close();
    const db = new Sqlite(path, { readonly: true });
    onTestFinished(() => void db.close());
    expect(db.prepare("select count(*) as rows from task_log").get()).toEqual({ rows: 0 });
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

  test("that another program has locked is unavailable until it lets go, which the health check reports", async () => {
    const path = newPath();
    const { storage } = await open(path);
    const other = new Sqlite(path);
    onTestFinished(() => void other.close());
    other.exec("begin immediate");
    const away = { code: "storage_unavailable" };
    await expect(storage.check()).rejects.toMatchObject(away);
    await expect(insert(storage, "a")).rejects.toMatchObject(away);
    await expect(storage.check()).rejects.toMatchObject(away);
    other.exec("rollback");
    await storage.check();
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

  test("is made where a link leads that leads nowhere yet, with its lock and its log beside it", async () => {
    const path = newPath();
    const links = [`${path}-link-1`, `${path}-link-2`] as const;
    symlinkSync(`${basename(path)}-link-2`, links[0]);
    symlinkSync(path, links[1]);
    const { storage } = await open(links[0]);
    await insert(storage, "a");
    expect([`${path}-wal`, `${path}.lock`].map((file) => existsSync(file))).toEqual([true, true]);
    await expect(openSqlite({ path, clock: new SteppedClock() })).rejects.toThrow("another Rota process");
    await storage.close();
    const { storage: again } = await open(path);
    expect(await again.tasks.counts({ tenant: TENANT })).toEqual({ queued: 1 });
  });

  test("is refused in a sentence where a link leads back to itself", async () => {
    const link = newPath();
    symlinkSync(link, link);
    await expect(openSqlite({ path: link, clock: new SteppedClock() })).rejects.toThrow(
      "leads back to itself",
    );
  });

  test("is refused where a link leads into a folder that does not exist, which is named", async () => {
    const link = newPath();
    symlinkSync(join(folder, "nowhere", "rota.db"), link);
    await expect(openSqlite({ path: link, clock: new SteppedClock() })).rejects.toThrow(
      `there is no folder ${join(realpathSync(folder), "nowhere")}`,
    );
  });

  test.skipIf(process.platform === "win32")("is this user's alone, and a looser one is named", async () => {
    const path = newPath();
    const loose: string[][] = [];
    const onLooseFiles = (files: readonly string[]) => void loose.push([...files]);
    const { storage } = await open(path, { onLooseFiles });
    await insert(storage, "a");
    const modes = ["", "-wal", "-shm", ".lock"].map((suffix) => statSync(path + suffix).mode & 0o777);
    expect(modes).toEqual([0o600, 0o600, 0o600, 0o600]);
    await storage.close();
    chmodSync(path, 0o640);
    chmodSync(`${path}.lock`, 0o602);
    await open(path, { onLooseFiles });
    // SQLite makes its log as readable as the file.
    expect(loose).toEqual([[path, `${path}-wal`, `${path}-shm`, `${path}.lock`]]);
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

  test("ends the other attempts when the lease of one was lost behind the cache", async () => {
    const path = newPath();
    const { storage } = await open(path);
    await storage.nodes.register({ node: NODE });
    await insert(storage, ...Array.from({ length: 12 }, (_, n) => `task ${n}`));
    const claims = [{ lane: LANE, limit: 12 }];
    const { claimed } = await storage.tasks.finishAndClaim({
      node: NODE,
      finishes: [],
      progress: [],
      claims,
    });
    const db = new Sqlite(path);
    db.prepare("delete from lease where task_seq = ?").run(claimed[3]?.task.seq);
    db.close();
    const finishes = claimed.map(({ task: { seq }, token }) => ({ seq, token, settlement: DONE }));
    const ended = await storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
    expect(ended.finished.map(({ token }) => token)).toEqual(
      claimed.filter((_, index) => index !== 3).map(({ token }) => token),
    );
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

  test("a recount finds that the bytes of a tenant are off", async () => {
    const path = newPath();
    const { storage } = await open(path);
    const limits = { ...UNBOUNDED, maxStoredBytes: 1_000_000 };
    await storage.tenants.create({ id: TENANT, name: "Acme", limits });
    while ((await storage.tenants.countStored({ limit: 3 })).more);
    await insert(storage, "a", "b");
    const stored = (await storage.tenants.get({ id: TENANT }))?.storedBytes ?? 0;
    const hand = new Sqlite(path);
    hand.exec("update stored_bytes set bytes = bytes + 5");
    hand.close();
    expect(await storage.counters.recountAll({ limit: 1 })).toEqual([
      { counter: `stored bytes of ${TENANT}`, stored: stored + 5, counted: stored },
    ]);
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
      "concurrency keys of tasks that are ready or in flight",
      "ready tasks that have their concurrency key",
      "tasks that wait for a concurrency key that another has",
    ];
    expect(await wrong("update key_hold set contested = 0")).toEqual([[ofWaiting, 0]]);
    expect(await wrong("update key_hold set contested = 1, task_seq = 2")).toEqual([
      [ofHolders, 0],
      [ofActive, 0],
    ]);
    expect(await wrong("delete from key_hold")).toEqual([
      [ofActive, 0],
      [ofWaiting, 0],
    ]);
  });
});

describe("rollups in a SQLite file", () => {
  test("go on where the process that was killed had come to", async () => {
    const path = newPath();
    const { storage } = await open(path);
    await insert(storage, "a", "b", "c");
    expect(await storage.rollups.advance({ limit: 1 })).toMatchObject({ more: false });
    await insert(storage, "d");
    await storage.close();
    const { storage: again } = await open(path);
    await insert(again, "e");
    await countAll(again);
    expect(await allRollups(again)).toMatchObject([{ key: LANE, submitted: 5 }]);
  });

  test("have nothing of a slice that failed in the middle, and all of it afterwards", async () => {
    const path = newPath();
    const { storage } = await open(path);
    await insert(storage, "a", "b");
    const meddler = new Sqlite(path);
    onTestFinished(() => void meddler.close());
    meddler.exec(`create trigger fail before insert on rollup when new.kind = 'agent' and new.step = 86400
                  begin select raise(abort, 'killed'); end`);
    await expect(storage.rollups.advance({ limit: 100 })).rejects.toThrow("killed");
    expect(await allRollups(storage)).toEqual([]);
    meddler.exec("drop trigger fail");
    expect(await countAll(storage)).toBe(2);
    for (const step of [60, 3_600, 86_400] as const) {
      expect(await allRollups(storage, { step, kind: "agent" })).toMatchObject([{ submitted: 2 }]);
    }
  });
});

describe("a recount of a SQLite file", () => {
  /** A file with a bit of everything, and a hand that changes it behind Rota's back. */
  async function openBusy() {
    const path = newPath();
    const { storage, clock } = await open(path, { enterEvery: 4 });
    await storage.nodes.register({ node: NODE });
    const session = { key: "s", maxConcurrent: 1 };
    await insert(storage, "a", "b", "c", "d");
    await storage.tasks.insert({
      tasks: [
        newTask({ id: "later", runAt: clock.now() + 1_000 }),
        newTask({ id: "in-batch", batch: "bat" }),
        newTask({ id: "said", origin: "message", session }),
        newTask({ id: "said too", origin: "message", session }),
        newTask({ id: "other", agent: "other" }),
      ],
      batches: [{ id: "bat", tenant: TENANT, parallelism: 1, callbackUrl: null }],
      limits: ROOMY,
    });
    await claim(storage, 1);
    await storage.tasks.cancel({ tenant: TENANT, ids: ["b"], error: null });
    await storage.schedules.create({
      tenant: TENANT,
      definition: newDefinition(),
      status: "active",
      nextFireAt: clock.now(),
      source: null,
    });
    expect(await storage.counters.recountAll()).toEqual([]);
    const spoil = (sql: string) => {
      const hand = new Sqlite(path);
      hand.pragma("ignore_check_constraints = on");
      hand.exec(sql);
      hand.close();
    };
    return { storage, spoil };
  }

  test.for([
    ["update line set waiting = waiting + 1 where id = 1", /^line .* waiting$/],
    ["update line set ready = ready + 1 where id = 1", /^line .* ready$/],
    ["update line set inflight = inflight + 1 where id = 1", /^line .* inflight$/],
    ["update line set exempt = exempt + 1 where id = 1", /^line .* exempt$/],
    ["update line set tasks = tasks + 1 where id = 1", /^line .* tasks$/],
    ["update line set head_rank = head_rank + 1 where id = 1", /^line .* head_rank$/],
    ["update line set head_seq = head_seq + 1 where id = 1", /^line .* head_seq$/],
    ["update line set room = room + 1 where id = 1", /^line .* room$/],
    ["update line set startable = 1 - startable where id = 1", /^line .* startable$/],
    ["update line set ahead = 1 - ahead where id = 1", /^line .* ahead$/],
    ["update lane set waiting = waiting + 1", /^lane .* waiting$/],
    ["update lane set inflight = inflight + 1", /^lane .* inflight$/],
    ["update lane set exempt = exempt + 1", /^lane .* exempt$/],
    ["update tenant_line set waiting = waiting + 1", /^tenant .* waiting$/],
    ["update tenant_line set exempt = exempt + 1", /^tenant .* exempt$/],
    ["update tenant_line set inflight = inflight + 1", /^tenant .* inflight$/],
    ["update tenant_line set supply = supply + 1", /^tenant .* supply$/],
    ["update tenant_line set urgent_lines = urgent_lines + 1", /^tenant .* urgent_lines$/],
    ["update tenant_line set startable = 1 - startable", /^tenant .* startable$/],
    ["update tenant_line set max_queued = 7", /^tenants that are not as their rows and lines say$/],
    ["delete from tenant_line", /^agent queues whose tenant is not in their lane$/],
    ["update tally set tasks = tasks + 1 where state = 'queued'", /^tally acme queued$/],
    ["delete from tally where state = 'cancelled'", /^tally acme cancelled$/],
    ["insert into tally values ('unknown', 'done', 3)", /^tally unknown done$/],
    [
      "update task set resting_state = 'queued', completed_at = null where id = 'b'",
      /^queued tasks that are ready, parked or held$/,
    ],
    ["update task set line = 2 where id = 'c'", /^ready entries of queued tasks$/],
    ["delete from task_of_line where task_seq = 2", /^tasks entered by agent$/],
    ["insert into task_of_line values (2, 2)", /^tasks entered for another agent$/],
    ["update batch set active = active + 1", /^batch bat active$/],
    ["update batch set open = open + 1", /^batch bat open$/],
    ["update session set active = active + 1", /^session 1 active$/],
    ["update session set queued = queued + 1", /^session 1 queued$/],
    ["update session set messages = messages + 1", /^session 1 messages$/],
    ["update schedule set open_runs = 1", /^schedule 1 open_runs$/],
  ] as const)("finds what is wrong after %s", async ([sql, counter]) => {
    const { storage, spoil } = await openBusy();
    spoil(sql);
    const found = expect.arrayContaining([expect.stringMatching(counter)]);
    expect((await storage.counters.recountAll()).map((fault) => fault.counter)).toEqual(found);
    const inSlices = await storage.counters.recountAll({ limit: 2 });
    expect(inSlices.map((fault) => fault.counter)).toEqual(found);
  });
});

describe("a power cut", () => {
  /** A file on a disk that keeps only what was flushed. `cut` opens what is left after a power cut. */
  async function openOnDisk() {
    const path = newPath();
    const disk = newPath();
    let flushesHere = 0;
    const flush = () => {
      for (const ending of ["", "-wal"]) {
        if (existsSync(path + ending)) copyFileSync(path + ending, disk + ending);
      }
    };
    const flushWal: LogFlush = {
      inThreadPool: async () => flush(),
      inThisThread: () => {
        flushesHere += 1;
        flush();
      },
    };
    const { storage } = await open(path, { flushWal });
    await storage.nodes.register({ node: NODE });
    return { storage, cut: async () => (await open(disk)).storage, flushesHere: () => flushesHere };
  }

  test("takes nothing back that was accepted", async () => {
    const { storage, cut } = await openOnDisk();
    await insert(storage, "a", "b");
    await storage.tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
    const left = await cut();
    expect(await left.tasks.counts({ tenant: TENANT })).toEqual({ queued: 1, cancelled: 1 });
    expect(await left.counters.recountAll()).toEqual([]);
  });

  test("takes nothing back that a lone caller submitted, whichever thread flushed it", async () => {
    const { storage, cut, flushesHere } = await openOnDisk();
    const submits = 2 * FAST_FLUSHES_MIN;
    for (let n = 0; n < submits; n += 1) await insert(storage, `t${n}`);
    expect(flushesHere()).toBeGreaterThan(0);
    expect(await (await cut()).tasks.counts({ tenant: TENANT })).toEqual({ queued: submits });
  });

  test("may take back an end that no reader was shown: the task is there to be run again", async () => {
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

describe("a disk that cannot be written", () => {
  const away = { code: "storage_unavailable" };

  /** A file of which `break` makes every flush fail until `mend`. */
  async function openOnBrokenDisk() {
    const path = newPath();
    let isBroken = false;
    /** When the log was last written, at each flush. */
    const flushed: bigint[] = [];
    const flush = () => {
      flushed.push(statSync(`${path}-wal`, { bigint: true }).mtimeNs);
      if (isBroken) throw Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" });
    };
    const flushWal: LogFlush = { inThreadPool: async () => flush(), inThisThread: flush };
    const { storage, clock } = await open(path, { flushWal });
    return {
      path,
      storage,
      clock,
      flushed,
      break: () => {
        isBroken = true;
      },
      mend: () => {
        isBroken = false;
      },
    };
  }

  test.for([
    ["in another thread", 1],
    ["in this thread", 2 * FAST_FLUSHES_MIN],
  ] as const)("accepts nothing while flushes %s fail, and says why", async ([, accepted]) => {
    const { storage, break: breakDisk } = await openOnBrokenDisk();
    for (let n = 0; n < accepted; n += 1) await insert(storage, `t${n}`);
    breakDisk();
    for (const id of ["b", "c"]) {
      await expect(insert(storage, id)).rejects.toMatchObject({
        ...away,
        message: expect.stringContaining("EIO: i/o error"),
      });
      await expect(storage.check()).rejects.toMatchObject(away);
    }
    await expect(storage.tasks.get({ tenant: TENANT, id: "b" })).rejects.toMatchObject(away);
  });

  test("writes everything anew after a flush that failed, before it trusts another one", async () => {
    const { path, storage, clock, flushed, break: breakDisk, mend } = await openOnBrokenDisk();
    await insert(storage, "a");
    breakDisk();
    const failed = flushed.length;
    await expect(insert(storage, "b")).rejects.toMatchObject(away);
    // One try to write it anew follows at once, and fails as well.
    await vi.waitFor(() => expect(flushed).toHaveLength(failed + 2));
    mend();
    clock.step(1_000);
    await expect(insert(storage, "c")).rejects.toMatchObject(away);
    await storage.check();
    const [first = 0n, ...others] = flushed.slice(failed);
    for (const writtenAt of others) expect(writtenAt).toBeGreaterThan(first);
    await insert(storage, "d");
    const ids = (await storage.tasks.list({ tenant: TENANT, limit: 9 })).tasks.map(({ id }) => id);
    expect(ids).toEqual(["d", "b", "a"]);
    expect(await storage.counters.recountAll()).toEqual([]);
    expect(existsSync(`${path}-wal`)).toBe(true);
  });

  test("has all that it accepted in the database file once it has recovered", async () => {
    const { path, storage, break: breakDisk, mend } = await openOnBrokenDisk();
    await insert(storage, "a");
    breakDisk();
    await expect(insert(storage, "b")).rejects.toMatchObject(away);
    await expect(storage.check()).rejects.toMatchObject(away);
    mend();
    const checkpoint = vi.spyOn(Sqlite.prototype, "pragma");
    await storage.check();
    expect(checkpoint).toHaveBeenCalledWith("wal_checkpoint(truncate)");
    const copy = newPath();
    copyFileSync(path, copy);
    const { storage: alone } = await open(copy);
    expect(await alone.tasks.counts({ tenant: TENANT })).toEqual({ queued: 2 });
  });

  test("stays away if what it could not flush is gone, although flushes work again", async () => {
    const { path, storage, break: breakDisk, mend } = await openOnBrokenDisk();
    await insert(storage, "a");
    breakDisk();
    await expect(insert(storage, "b")).rejects.toMatchObject(away);
    // As an operating system that drops a page that it could not write: the page has its old content again.
    const { size } = statSync(`${path}-wal`);
    writeSync(openSync(`${path}-wal`, "r+"), Buffer.alloc(16, 0xff), 0, 16, size - 2_000);
    mend();
    for (let tries = 0; tries < 2; tries += 1) {
      await expect(storage.check()).rejects.toThrow("restart Rota");
      await expect(insert(storage, "c")).rejects.toMatchObject(away);
    }
  });

  test("is away while it is full, although little could still be written, and back once there is room", async () => {
    const pragma = vi.spyOn(Sqlite.prototype, "pragma");
    const { storage } = await open(newPath());
    const db = pragma.mock.contexts.at(-1) as Sqlite.Database;
    await storage.check();
    db.pragma("max_page_count = 1");
    await expect(insert(storage, ...Array.from({ length: 500 }, (_, n) => `t${n}`))).rejects.toMatchObject(
      away,
    );
    for (let tries = 0; tries < 3; tries += 1) {
      await expect(storage.check()).rejects.toMatchObject({
        ...away,
        message: expect.stringContaining("full"),
      });
    }
    db.pragma("max_page_count = 4294967294");
    await storage.check();
    await insert(storage, "a");
    expect(db.prepare("select 1 from sqlite_schema where name = 'write_check'").all()).toEqual([]);
  });
});
