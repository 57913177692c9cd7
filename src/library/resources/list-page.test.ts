import { expect, test } from "vitest";
import { openTestRota } from "../../../test/support/rota.ts";
import { STEPS_PER_TURN } from "../../services/work-turns.ts";

const MIB = 1_048_576;

/** Reads all pages of a list. Returns how many tasks each page has, and all tasks. */
async function pagesOf(rota: Awaited<ReturnType<typeof openTestRota>>["rota"], limit: number) {
  const sizes: number[] = [];
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await rota.tasks.list({ limit, ...(cursor === undefined ? {} : { cursor }) });
    expect(page.count).toBe(page.tasks.length);
    sizes.push(page.count);
    ids.push(...page.tasks.map(({ taskId }) => taskId));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return { sizes, ids };
}

test("a page of small tasks has as many as were asked for", async () => {
  const { rota } = await openTestRota({ options: { scheduler: { maxPerAgent: 1_000 } } });
  const tasks = await rota.tasks.submitMany(Array.from({ length: 250 }, (_, index) => ({ payload: index })));
  const newestFirst = tasks.map(({ taskId }) => taskId).reverse();
  for (const limit of [1, 16, 17, 100, 249, 250, 1_000]) {
    const { sizes, ids } = await pagesOf(rota, limit);
    expect(sizes.slice(0, -1).every((size) => size === limit)).toBe(true);
    expect(ids).toEqual(newestFirst);
  }
});

test("a page of large tasks ends early, and the next one goes on where it ended", async () => {
  const { rota } = await openTestRota();
  const large = { payload: "x".repeat(MIB - 100) };
  const tasks = await rota.tasks.submitMany([
    ...Array.from({ length: 20 }, () => large),
    ...Array.from({ length: 20 }, () => ({ payload: "small" })),
    ...Array.from({ length: 20 }, () => large),
  ]);
  const { sizes, ids } = await pagesOf(rota, 1_000);
  expect(ids).toEqual(tasks.map(({ taskId }) => taskId).reverse());
  expect(sizes).toEqual([3, 3, 3, 3, 3, 3, 2 + 20 + 1, 3, 3, 3, 3, 3, 3, 1]);
});

test("what is read for a page does not grow with what may come behind small tasks", async () => {
  const limits: number[] = [];
  const bytes: number[] = [];
  const { rota } = await openTestRota({
    options: { scheduler: { maxPerAgent: 1_000 } },
    meddler: {
      before: ({ operation, params }) => {
        if (operation !== "tasks.list") return;
        limits.push(params.limit);
        bytes.push(params.bytesMax);
      },
    },
  });
  await rota.tasks.submitMany(Array.from({ length: 200 }, (_, index) => ({ payload: index })));
  await rota.tasks.list({ limit: 200 });
  expect(Math.max(...limits)).toBeLessThanOrEqual(50);
  expect(Math.max(...bytes)).toBe(4 * MIB);
  expect(limits.reduce((sum, limit) => sum + limit)).toBe(200);
});

/** How many turns the event loop takes until something is done. */
async function turnsUntil(done: Promise<unknown>): Promise<number> {
  let over = false;
  const ended = done.finally(() => {
    over = true;
  });
  let turns = 0;
  for (; !over; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  await ended;
  return turns;
}

test("other requests get their turn while a long page is read, and while a large batch is checked", async () => {
  const { rota } = await openTestRota({ options: { scheduler: { maxPerAgent: 1_000 } } });
  const tasks = Array.from({ length: 100 }, (_, index) => ({ payload: index }));
  const batch = turnsUntil(rota.tasks.submitBatch({ tasks }));
  expect(await batch).toBeGreaterThanOrEqual(100 / STEPS_PER_TURN - 1);
  for (let count = 0; count < 3; count += 1) await rota.tasks.submitBatch({ tasks });
  expect(await turnsUntil(rota.tasks.list({ limit: 400 }))).toBeGreaterThanOrEqual(400 / 50 - 1);
});

test("a page of rows has as many as were asked for, and lets others have their turn", async () => {
  const { rota } = await openTestRota({ options: { scheduler: { maxPerAgent: 1_000 } } });
  await rota.tasks.submitMany(
    Array.from({ length: 450 }, (_, index) => ({ payload: { n: index, text: "x".repeat(900) } })),
  );
  let turns = 0;
  const others = setInterval(() => {
    turns += 1;
  }, 0);
  const page = await rota.tasks.listRows({ limit: 1_000, order: "oldest" });
  clearInterval(others);
  expect(page.count).toBe(450);
  expect(page.tasks[0]).toEqual({
    taskId: expect.stringMatching(/^tsk_/),
    title: expect.stringMatching(/^\{"n":0,"text":"x+…$/),
    state: "queued",
    agentId: "index",
    lane: "tasks",
    priority: 2,
    createdAt: expect.any(String),
    attempts: 0,
  });
  expect(JSON.stringify(page).length / page.count).toBeLessThan(500);
  expect(turns).toBeGreaterThan(0);
});

test("a request that finds little reads a bounded number of tasks, and returns a cursor", async () => {
  let reads = 0;
  const { rota } = await openTestRota({
    meddler: {
      before: ({ operation, params }) => {
        if (operation !== "tasks.list") return;
        reads += 1;
        params.lookedMax = 10;
      },
    },
    options: { scheduler: { maxQueueSize: 2_000, maxPerAgent: 2_000 } },
  });
  await rota.tasks.submitMany(Array.from({ length: 1_200 }, (_, index) => ({ payload: index })));
  const page = await rota.tasks.list({ state: "done" });
  expect(page).toEqual({ tasks: [], count: 0, nextCursor: expect.any(String) });
  expect(reads).toBe(4);
});
