import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { openNodes, settle, submit, tasksOf } from "../../test/postgres/several-nodes.ts";
import { LANE } from "./conformance/world.ts";
import { FUNCTION_SCHEMA } from "./postgres/functions.ts";
import { EVENTS_AFTER } from "./postgres/read-events.ts";
import type { NewTask, Storage } from "./storage.ts";

const CLAIM_MAX = 10;

/** Pages touched, not time: they say the same on every machine. */
async function pagesOfClaim(admin: Client): Promise<number> {
  await admin.query("begin");
  await admin.query(`set local search_path = ${FUNCTION_SCHEMA}, rota`);
  await admin.query("set local enable_seqscan = off");
  const { rows } = await admin.query(
    `explain (analyze, buffers, format json)
     select * from finish_and_claim(null, 'node-0', '[]', '[]', '{${LANE}}', '{${CLAIM_MAX}}')`,
  );
  await admin.query("rollback");
  const plan = rows[0]["QUERY PLAN"][0].Plan;
  return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
}

/** In slices, as any caller would. */
async function submitAll(storage: Storage, tasks: readonly Partial<NewTask>[]): Promise<void> {
  for (let from = 0; from < tasks.length; from += 1000) await submit(storage, tasks.slice(from, from + 1000));
}

/** What a claim touches when hardly anything waits. */
async function pagesOfSmallClaim(): Promise<number> {
  const { first, admin } = await openNodes(1);
  await submit(first, tasksOf(20, 100));
  await pagesOfClaim(admin);
  return pagesOfClaim(admin);
}

/** What reading ten events from the start of the log touches, with the plan that serves every call. */
async function pagesOfEvents(admin: Client): Promise<number> {
  await admin.query("begin");
  await admin.query("set local search_path = rota");
  await admin.query("set local enable_seqscan = off");
  await admin.query("set local plan_cache_mode = force_generic_plan");
  await admin.query(`prepare events (bigint, bigint, bigint) as ${EVENTS_AFTER}`);
  const { rows } = await admin.query(
    "explain (analyze, buffers, format json) execute events (0, 11, 1000000)",
  );
  await admin.query("rollback");
  await admin.query("deallocate events");
  const plan = rows[0]["QUERY PLAN"][0].Plan;
  return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
}

test("what a page of events touches does not grow with the log", async () => {
  const { first, admin } = await openNodes(1);
  for (let count = 0; count < 30; count += 1) await submit(first, tasksOf(1, 1));
  // Enough for indexes to have a second level.
  await submitAll(first, tasksOf(20, 1_000));
  await pagesOfEvents(admin);
  const small = await pagesOfEvents(admin);
  for (let count = 0; count < 300; count += 1) await submit(first, tasksOf(1, 1));
  await submitAll(first, tasksOf(20, 5_000));
  await pagesOfEvents(admin);
  expect(await pagesOfEvents(admin)).toBeLessThan(2 * small);
});

describe("what a claim touches", () => {
  test("does not grow with the tasks or the agents that wait", async () => {
    const { first, admin } = await openNodes(1);
    await submitAll(first, tasksOf(3000, 20_000));
    await pagesOfClaim(admin);
    expect(await pagesOfClaim(admin)).toBeLessThan(2 * (await pagesOfSmallClaim()));
  });

  test("does not grow with agents that are busy, nor with urgent work of one that is full", async () => {
    const { first, admin } = await openNodes(1);
    await first.lanes.configure({
      lanes: [{ name: LANE, total: null, perAgent: 1, strategy: "fair-fifo", agingMs: 0 }],
    });
    await submitAll(first, tasksOf(2000, 4000));
    const claims = [{ lane: LANE, limit: 500 }];
    for (let busy = 0; busy < 2000; busy += 500) {
      await first.tasks.finishAndClaim({ node: "node-0", finishes: [], progress: [], claims });
    }
    await submitAll(first, tasksOf(1, 5000, { priority: 0 }));
    await submit(
      first,
      tasksOf(20, 100).map(({ agent }) => ({ agent: `idle-${agent}` })),
    );
    await pagesOfClaim(admin);
    expect(await pagesOfClaim(admin)).toBeLessThan(2 * (await pagesOfSmallClaim()));
  });

  test("grows by less than a page a task while somebody else's snapshot keeps dead rows from being removed", async () => {
    const { first, admin, url } = await openNodes(1);
    await submitAll(first, tasksOf(20, 6000));
    const reader = new Client({ connectionString: url });
    await reader.connect();
    onTestFinished(() => reader.end());
    await reader.query("begin isolation level repeatable read");
    await reader.query("select count(*) from rota.task");
    await pagesOfClaim(admin);
    const before = await pagesOfClaim(admin);
    const claims = [{ lane: LANE, limit: 50 }];
    let held = await first.tasks.finishAndClaim({ node: "node-0", finishes: [], progress: [], claims });
    let wentBy = 0;
    while (wentBy < 4000) {
      const finishes = settle(held.claimed);
      held = await first.tasks.finishAndClaim({ node: "node-0", finishes, progress: [], claims });
      wentBy += finishes.length;
    }
    // The changes of the lines themselves cost something; walking over every task that has left would cost its page too.
    expect(await pagesOfClaim(admin)).toBeLessThan(before + wentBy);
  });
});
