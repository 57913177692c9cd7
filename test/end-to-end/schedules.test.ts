import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Run } from "../../src/interface/schedules.ts";
import { createTestDatabase, type TestDatabase } from "../postgres/database.ts";
import { eventually, newFolder, type ServerProcess, startServer } from "./server-process.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.drop());

const EVERY_SECOND = { schedule: { kind: "every", everyMs: 1_000 }, message: "tick" };
const SCHEDULES = 8;

async function createSchedules(server: ServerProcess, count = SCHEDULES): Promise<number[]> {
  const ids: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const { status, body } = await server.ask("/v1/schedules", { json: EVERY_SECOND });
    expect(status).toBe(201);
    ids.push(body.scheduled_task.id);
  }
  return ids;
}

/** The due times that the runs of a schedule stand for, oldest first. A run that is late stands for several, up to its `due_at`. */
async function momentsOf(server: ServerProcess, id: number): Promise<number[]> {
  const { body } = await server.ask(`/v1/schedules/${id}/runs`);
  const runs: Run[] = body.runs.reverse();
  return runs.flatMap(({ due_at, moments }) =>
    Array.from({ length: moments }, (_, index) => due_at - moments + 1 + index),
  );
}

async function ticked(server: ServerProcess, ids: readonly number[], times: number): Promise<boolean> {
  for (const id of ids) if ((await momentsOf(server, id)).length < times) return false;
  return true;
}

/** Every second since the first has its row, and one only; and nothing is left running for ever. */
async function expectWhole(server: ServerProcess, ids: readonly number[]): Promise<void> {
  for (const id of ids)
    await server.ask(`/v1/schedules/${id}`, { method: "PATCH", json: { enabled: false } });
  await eventually(
    async () => (await server.ask("/v1/schedules/status")).body.running === 0,
    "runs to end",
    60_000,
  );
  for (const id of ids) {
    const moments = await momentsOf(server, id);
    const first = moments[0] ?? 0;
    expect(moments).toEqual(moments.map((_, index) => first + index));
  }
}

test("schedules lose no moment and double none when their process is killed, again and again", {
  timeout: 60_000,
}, async () => {
  const storage = `sqlite:${join(newFolder(), "rota.db")}`;
  let server = await startServer({ storage });
  const ids = await createSchedules(server);
  for (const times of [1, 3, 5]) {
    await eventually(() => ticked(server, ids, times), `${times} moments`);
    server.kill("SIGKILL");
    await server.ended;
    server = await startServer({ storage });
  }
  await eventually(() => ticked(server, ids, 6), "moments after the last start");
  expect((await server.ask("/v1/doctor")).body).toMatchObject({ ok: true });
  await expectWhole(server, ids);
});

// What the killed one ran is taken over after its lease, which takes 15 seconds.
test("two servers never fire the same moment, and one goes on where the other died", {
  timeout: 120_000,
}, async () => {
  const one = await startServer({ storage: database.url });
  const other = await startServer({ storage: database.url });
  const ids = await createSchedules(one);
  await eventually(() => ticked(other, ids, 3), "moments on both");
  one.kill("SIGKILL");
  await one.ended;
  await eventually(() => ticked(other, ids, 6), "moments on the one that is left");
  expect((await other.ask("/v1/doctor")).body).toMatchObject({ ok: true });
  await expectWhole(other, ids);
});

test("what a schedule says is carried out by the server that learns of it from another", {
  timeout: 60_000,
}, async () => {
  const one = await startServer({ storage: database.url });
  const other = await startServer({ storage: database.url });
  const { id } = (await one.ask("/v1/schedules", { json: { schedule: "every day", message: "far away" } }))
    .body.scheduled_task;
  // The node that accepted it is gone before the due time: only the other can fire it in time.
  const atMs = Date.now() + 2_500;
  const json = { schedule: { kind: "at", atMs } };
  expect((await one.ask(`/v1/schedules/${id}`, { method: "PATCH", json })).status).toBe(200);
  await eventually(() => Date.now() > atMs - 1_500, "word to have reached the other");
  one.kill("SIGKILL");
  await one.ended;
  await eventually(async () => (await momentsOf(other, id)).length === 1, "the moment to fire", 10_000);
  const [run] = (await other.ask(`/v1/schedules/${id}/runs`)).body.runs;
  expect(run).toMatchObject({ moments: 1, status: expect.stringMatching(/running|succeeded/) });
});
