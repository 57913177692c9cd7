import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { createRota, type Rota, type RotaOptions } from "../src/index.ts";
import { newTask, ROOMY } from "../src/storage/conformance/world.ts";
import { openPostgres } from "../src/storage/postgres/connection/open.ts";
import { until } from "../src/testing/index.ts";
import { newFolder, type ServerProcess, startServer } from "./end-to-end/server-process.ts";
import { createRestorableDatabase } from "./postgres/restorable.ts";
import { openStream } from "./support/event-stream.ts";
import { RecordingLog } from "./support/recording-log.ts";

interface Gap {
  readonly after: number;
  readonly oldest: number;
}

async function openNode(url: string, options: Omit<RotaOptions, "storage"> = {}) {
  const log = new RecordingLog();
  const rota = await createRota({ log, ...options, storage: url });
  onTestFinished(() => rota.stop({ graceMs: 0 }));
  await rota.start();
  return { rota, log };
}

/** Reads on and on, and keeps what comes. */
function follow(rota: Rota) {
  const seen: string[] = [];
  const gaps: (Gap & { readonly behind: number })[] = [];
  const events = rota.events({ onGap: (gap) => gaps.push({ ...gap, behind: seen.length }) });
  void (async () => {
    for await (const { type, taskId } of events) if (type === "task.created") seen.push(taskId);
  })();
  return { seen, gaps, events };
}

/** Submits through a database that may be away for a moment. */
async function submit(rota: Rota, count: number): Promise<string[]> {
  let ids: string[] | undefined;
  await until(async () => {
    const answers = await rota.tasks.submitMany(Array(count).fill({ message: "hello" })).catch(() => []);
    ids = answers.length === 0 ? undefined : answers.map(({ taskId }) => taskId);
    return ids !== undefined;
  }, "the database to take tasks");
  return ids ?? [];
}

describe("PostgreSQL that is restored under running nodes", () => {
  test("every node sends its readers a gap, and goes on without missing anything", async () => {
    const database = await createRestorableDatabase();
    const nodes = [await openNode(database.url), await openNode(database.url)];
    const [first] = nodes;
    if (first === undefined) throw new Error("There is a first node.");
    const readers = nodes.map(({ rota }) => follow(rota));
    await Promise.all(readers.map(({ events }) => events.ready));
    const kept = await submit(first.rota, 3);
    await until(() => readers.every(({ seen }) => seen.length === 3), "what is kept");
    await database.keep();
    const lost = await submit(first.rota, 20);
    await until(() => readers.every(({ seen }) => seen.length === 23), "what is going to be lost");
    await database.restore();
    await until(() => readers.every(({ gaps }) => gaps.length > 0), "the gap");
    const later = await submit(first.rota, 3);
    for (const { seen, gaps } of readers) {
      await until(() => later.every((id) => seen.includes(id)), "what came after the restore");
      expect(gaps[0]).toMatchObject({ oldest: 1, behind: 23 });
      expect(seen.slice(0, 23)).toEqual([...kept, ...lost]);
      expect(seen.slice(23).filter((id) => lost.includes(id))).toEqual([]);
    }
    for (const { log } of nodes) {
      expect(log.messages("warn").join("\n")).toContain("restored to an earlier state");
    }
  });

  test("a reader gets the gap although the numbers it saw were assigned again to other events", async () => {
    const database = await createRestorableDatabase();
    const { rota } = await openNode(database.url);
    const { seen, gaps, events } = follow(rota);
    await events.ready;
    await submit(rota, 2);
    await database.keep();
    const lost = await submit(rota, 5);
    await Promise.all(lost.map((id) => rota.tasks.wait(id)));
    await until(() => seen.length === 7, "what is going to be lost");
    await rota.drain();
    const last = events.position ?? 0;
    const ids = Array.from({ length: 60 }, (_, index) => `again-${index}`);
    await database.restore(async (url) => {
      const other = await openPostgres({ url });
      const admin = new Client({ connectionString: url });
      await admin.connect();
      // As a database does that knows nothing of the numbers that were assigned before.
      await admin.query(
        "select setval('rota.event_seq', greatest($1, (select max(last_seq) from rota.event)))",
        [last - 30],
      );
      await other.tasks.insert({
        tasks: ids.map((id) => newTask({ id, tenant: "default", lane: "main", agent: "index" })),
        limits: ROOMY,
      });
      const { rows } = await admin.query("select max(last_seq)::integer as newest from rota.event");
      expect(rows[0].newest).toBeGreaterThan(last);
      await Promise.all([admin.end(), other.close()]);
    });
    await until(() => ids.every((id) => seen.includes(id)), "what was written meanwhile");
    expect(gaps[0]).toMatchObject({ oldest: 1, behind: 7 });
  });

  test("nodes assign no number again, and write again what others go by", async () => {
    const database = await createRestorableDatabase();
    const { rota } = await openNode(database.url, { lanes: { main: { concurrency: 5, total: 5 } } });
    await submit(rota, 2);
    await database.keep();
    await submit(rota, 5);
    const { events } = follow(rota);
    await events.ready;
    const before = events.position ?? 0;
    expect(before).toBeGreaterThan(6);
    const tenant = await rota.tenants.create({ name: "lost" });
    await rota.agents.create({ id: "lost", lane: "main" });
    await rota.reload({ lanes: { main: { concurrency: 7, total: 7 } } });
    await database.restore();
    const [taskId] = await submit(rota, 1);
    await rota.tasks.wait(taskId ?? "");
    await until(() => (events.position ?? 0) > before, "events with new numbers");
    const admin = new Client({ connectionString: database.url });
    await admin.connect();
    onTestFinished(() => admin.end());
    const numbers = await admin.query(
      "select last_seq::integer as seq from rota.event where last_seq > $1 order by last_seq",
      [before],
    );
    expect(numbers.rowCount).toBeGreaterThan(0);
    const isWritten = async () => {
      const { rows } = await admin.query("select total from rota.lane where name = 'main'");
      return rows[0].total === 7;
    };
    while (!(await isWritten())) await new Promise((resolve) => setTimeout(resolve, 20));
    const { agents } = await rota.agents.list();
    expect(agents.map(({ id }) => id)).not.toContain("lost");
    await expect(rota.tenants.get(tenant.id)).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("a SQLite file that is replaced by an older one while nothing runs", () => {
  test("a client that goes on from what it saw gets a gap, also after as many events as were lost", async () => {
    const folder = newFolder();
    const path = join(folder, "rota.db");
    const copy = join(folder, "copy.db");
    const runTask = async (server: ServerProcess) => {
      const { taskId } = (await server.ask("/tasks", { json: { message: "hello" } })).body;
      const { state } = (await server.ask(`/tasks/${taskId}?wait=10`)).body;
      expect(state).toBe("done");
    };
    const work = async (count: number) => {
      const server = await startServer({ storage: `sqlite:${path}` });
      for (let tasks = 0; tasks < count; tasks += 1) await runTask(server);
      const stream = await openStream(`${server.url}/tasks/events`);
      const [opening] = await stream.take(1);
      stream.close();
      return { server, newest: opening?.id ?? "" };
    };
    const stop = async ({ server }: Awaited<ReturnType<typeof work>>) => {
      server.kill("SIGTERM");
      await server.ended;
    };
    await stop(await work(1));
    copyFileSync(path, copy);
    const lost = await work(2);
    await stop(lost);
    for (const each of ["-wal", "-shm"]) rmSync(`${path}${each}`, { force: true });
    copyFileSync(copy, path);

    for (const count of [0, 5]) {
      const restored = await work(count);
      const stream = await openStream(`${restored.server.url}/tasks/events`, {
        "Last-Event-ID": lost.newest,
      });
      const [, gap] = await stream.take(2);
      expect([gap?.event, gap?.data]).toEqual(["gap", { after: Number(lost.newest), oldest: 1 }]);
      await runTask(restored.server);
      expect((await stream.take(1))[0]?.event).toMatch(/^task\./);
      stream.close();
      await stop(restored);
    }
  });
});
