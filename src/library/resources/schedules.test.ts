import { expect, test } from "vitest";
import { openTestRota } from "../../../test/support/rota.ts";
import { asSharedStorage, type Call, openMemory } from "../../../test/support/storages.ts";
import { STEPS_PER_TURN } from "../../services/work-turns.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const HOURLY = { schedule: "every hour", message: "look around", tz: "UTC" };

/** A Rota that calls `meddle` right before it writes an edit. */
async function openMeddled(meddle: (storage: Awaited<ReturnType<typeof openMemory>>) => Promise<unknown>) {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  let isMeddling = false;
  const before = async ({ operation }: Call) => {
    if (operation !== "schedules.update" || isMeddling) return;
    isMeddling = true;
    await meddle(storage);
    isMeddling = false;
  };
  return { ...(await openTestRota({ clock, storage, meddler: { before } })), storage };
}

test("an edit that comes second is worked out anew, from what the first one made of it", async () => {
  let edits = 0;
  const { rota, clock } = await openMeddled(async (storage) => {
    const record = await storage.schedules.get({ tenant: "default", id: 1 });
    if (record === null || ++edits > 1) return;
    await storage.schedules.update({
      tenant: "default",
      id: 1,
      revision: record.revision,
      changes: { name: "kept", overlap: "queue", retryPolicy: { ...record.retryPolicy, maxRetries: 9 } },
    });
  });
  await rota.schedules.create(HOURLY);
  await clock.advance(MINUTE);
  expect(await rota.schedules.update(1, { overlap: "allow", retry: { base_delay_ms: 1 } })).toMatchObject({
    name: "kept",
    overlap: "allow",
    retry: { max_retries: 9, base_delay_ms: 1, max_delay_ms: 30_000 },
  });
  expect(edits).toBe(2);
});

test("an edit that comes while it fires neither undoes the fire nor has the moment twice", async () => {
  const { rota, clock, storage } = await openMeddled(async (memory) => {
    const [due] = await memory.schedules.due({ limit: 1 });
    if (due === undefined) return;
    const { tenant, id, revision } = due;
    const dueAt = due.nextFireAt ?? 0;
    const missed = { status: "missed", reason: "a test", dueAt, firstDueAt: dueAt, moments: 1 } as const;
    const nextFireAt = dueAt + HOUR;
    const runs = [{ ...missed, forced: false }];
    await memory.schedules.fire({ fires: [{ tenant, id, revision, runs, nextFireAt, pauses: null }] });
  });
  await rota.schedules.create(HOURLY);
  await clock.advance(HOUR);
  await rota.schedules.update(1, { message: "another" });
  expect(await storage.schedules.get({ tenant: "default", id: 1 })).toMatchObject({
    work: { kind: "message", message: "another" },
    lastDueAt: clock.now(),
    nextFireAt: clock.now() + HOUR,
  });
  expect((await rota.schedules.runs(1)).count).toBe(1);
});

test.each([
  ["a pause", { enabled: false }],
  ["another rule", { schedule: "every 2 hours" }],
])("%s leaves no earlier due time without a row that no node fired", async (_name, changes) => {
  const { rota, clock } = await openTestRota();
  const { scheduled_task: made } = await rota.schedules.create(HOURLY);
  await clock.advance(2 * HOUR);
  await rota.schedules.update(1, changes);
  const { runs } = await rota.schedules.runs(1);
  expect(runs).toMatchObject([{ due_at: made.next_fire_at + 3_600, moments: 2, status: "running" }]);
});

test("an edit that gives an overdue schedule another agent, in place of one that is gone, sets it going", async () => {
  const { rota, clock } = await openTestRota();
  for (const id of ["gone", "there"]) await rota.agents.create({ id, executor: { type: "echo" } });
  await rota.schedules.create({ ...HOURLY, agent: "gone" });
  await rota.agents.delete("gone");
  await clock.advance(HOUR);
  expect(await rota.schedules.update(1, { agent: "there", schedule: "every 2 hours" })).toMatchObject({
    status: "active",
    next_fire_at: (clock.now() + 2 * HOUR) / 1_000,
  });
  expect((await rota.schedules.runs(1)).runs).toMatchObject([{ status: "failed" }]);
});

test("an edit of the rule that comes second leaves a schedule paused that a caller has just paused", async () => {
  let edits = 0;
  const { rota, clock } = await openMeddled(async (storage) => {
    const record = await storage.schedules.get({ tenant: "default", id: 1 });
    if (record === null || ++edits > 1) return;
    const { tenant, id, revision } = record;
    await storage.schedules.update({ tenant, id, revision, changes: { status: "paused" } });
  });
  await rota.schedules.create(HOURLY);
  await clock.advance(MINUTE);
  expect(await rota.schedules.update(1, { schedule: "every 2 hours" })).toMatchObject({ status: "paused" });
});

test("a moment that comes while an edit is written has its row, too", async () => {
  let isSlow = true;
  const { rota, clock } = await openMeddled(async () => {
    if (isSlow) await clock.advance(HOUR);
    isSlow = false;
  });
  const { scheduled_task: made } = await rota.schedules.create(HOURLY);
  expect(await rota.schedules.update(1, { status: "paused" })).toMatchObject({ status: "paused" });
  const { runs } = await rota.schedules.runs(1);
  expect(runs).toMatchObject([{ due_at: made.next_fire_at, moments: 1 }]);
});

test("an edit of what never stays the same is given up with a sentence", async () => {
  let edits = 0;
  const { rota } = await openMeddled(async (storage) => {
    const record = await storage.schedules.get({ tenant: "default", id: 1 });
    if (record === null) return;
    edits += 1;
    const changes = { name: `edit ${edits}` };
    await storage.schedules.update({ tenant: "default", id: 1, revision: record.revision, changes });
  });
  await rota.schedules.create(HOURLY);
  await expect(rota.schedules.update(1, { overlap: "allow" })).rejects.toMatchObject({
    code: "conflict",
    message: "schedule 1 keeps changing while it is edited: try again",
  });
  expect(edits).toBe(20);
});

test("an edit of a schedule that is deleted meanwhile throws `not_found`", async () => {
  const { rota } = await openMeddled((storage) => storage.schedules.delete({ tenant: "default", id: 1 }));
  await rota.schedules.create(HOURLY);
  await expect(rota.schedules.update(1, { name: "x" })).rejects.toMatchObject({ code: "not_found" });
});

test("a schedule with very many runs is deleted a slice at a time, with everything of it", async () => {
  const slices: Call[] = [];
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  const after = (call: Call) => void (call.operation === "schedules.delete" && slices.push(call));
  const { rota } = await openTestRota({ clock, storage, meddler: { after } });
  const { id, next_fire_at } = (await rota.schedules.create(HOURLY)).scheduled_task;
  const runs = Array.from({ length: 1_200 }, (_, place) => {
    const dueAt = next_fire_at * 1_000 + place;
    const reason = `r${place}`;
    return { dueAt, firstDueAt: dueAt, moments: 1, forced: false, status: "skipped", reason } as const;
  });
  const fire = { tenant: "default", id, revision: 1, runs, nextFireAt: clock.now() + HOUR, pauses: null };
  await storage.schedules.fire({ fires: [fire] });
  expect(await rota.schedules.delete(id)).toEqual({ deleted: true });
  expect(slices).toHaveLength(3);
  expect((await rota.runs.list()).count).toBe(0);
  await expect(rota.schedules.delete(id)).rejects.toMatchObject({ code: "not_found" });
});

test("an agent that another node made a moment ago is listed", async () => {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  // It gets no notification: it has to poll.
  const deaf = { ...asSharedStorage(storage), subscribe: () => () => {} };
  const [first, second] = [
    await openTestRota({ clock, storage: asSharedStorage(storage) }),
    await openTestRota({ clock, storage: deaf }),
  ];
  await first.rota.agents.create({ id: "research" });
  const { scheduled_task } = await second.rota.schedules.create({ ...HOURLY, agent: "research" });
  expect(scheduled_task.agent_id).toBe("research");
  await first.rota.agents.delete("research");
  await expect(second.rota.schedules.create({ ...HOURLY, agent: "research" })).rejects.toMatchObject({
    code: "not_found",
  });
});

test("a schedule that begins to be made while it stops is not made", async () => {
  let onLook = () => {};
  const { rota } = await openTestRota({
    // Where others may have made agents, it looks at the storage first.
    storage: asSharedStorage(await openMemory(new ManualClock())),
    meddler: {
      after: ({ operation }) => {
        if (operation === "agents.changes") onLook();
      },
    },
  });
  await rota.agents.create({ id: "research" });
  await rota.start();
  onLook = () => void rota.drain();
  await expect(rota.schedules.create({ ...HOURLY, agent: "research" })).rejects.toMatchObject({
    code: "draining",
  });
  expect((await rota.schedules.list()).count).toBe(0);
});

test("a schedule that is due sooner than all others is fired at its moment, by the node that made it", async () => {
  const { rota, clock } = await openTestRota();
  await rota.start();
  await rota.schedules.create(HOURLY);
  await settle();
  await rota.schedules.create({ ...HOURLY, schedule: { kind: "every", everyMs: 1_000 } });
  await clock.advance(1_000);
  expect((await rota.schedules.runs(2)).runs).toMatchObject([{ due_at: Math.floor(clock.now() / 1_000) }]);
});

test("runs are kept as long as the configuration says, which can change while it runs", async () => {
  const { rota, clock } = await openTestRota();
  await rota.start();
  await rota.schedules.create({ ...HOURLY, enabled: false });
  await rota.schedules.run(1);
  await settle();
  clock.set(clock.now() + 3 * DAY);
  await clock.advance(MINUTE);
  expect((await rota.runs.list()).count).toBe(1);
  expect(await rota.reload({ schedules: { runRetentionDays: 2 } })).toEqual({
    changed: ["schedules.runRetentionDays"],
    needsRestart: [],
  });
  await clock.advance(MINUTE);
  expect((await rota.runs.list()).count).toBe(0);
  expect((await rota.schedules.get(1)).last_run_id).toBe(1);
  await expect(rota.reload({ schedules: { runRetentionDays: 0 } })).rejects.toThrow(
    "`schedules.runRetentionDays` must be an integer of days from 1 to 36500, not 0",
  );
});

test("a schedule that is resumed after the clock was set back continues with its next due time that has not run", async () => {
  const { rota, clock } = await openTestRota({ clock: new ManualClock() });
  await rota.start();
  const made = clock.now();
  await rota.schedules.create(HOURLY);
  await clock.advance(HOUR);
  await clock.advance(HOUR);
  clock.set(made + 30 * MINUTE);
  await clock.advance(2_000);
  await rota.schedules.update(1, { enabled: false });
  expect(await rota.schedules.update(1, { enabled: true })).toMatchObject({
    next_fire_at: (made + 3 * HOUR) / 1_000,
  });
});

test("a preview of many due times lets other work through again and again", async () => {
  const { rota } = await openTestRota();
  let over = false;
  const previewed = rota.schedules.preview({ schedule: "0 9 * * 1", count: 1_000 }).finally(() => {
    over = true;
  });
  let turns = 0;
  for (; !over; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  expect((await previewed).next).toHaveLength(1_000);
  expect(turns).toBeGreaterThanOrEqual(1_000 / STEPS_PER_TURN - 1);
});

test("so does a list of many due times to come", async () => {
  const { rota, clock } = await openTestRota();
  for (const minute of [1, 2, 3])
    await rota.schedules.create({
      schedule: { kind: "cron", expr: `${minute} 9 * * 1`, tz: "UTC" },
      message: "x",
    });
  let over = false;
  const listed = rota.schedules
    .upcoming({ limit: 1_500, to: (clock.now() + 20 * 365 * DAY) / 1_000 })
    .finally(() => {
      over = true;
    });
  let turns = 0;
  for (; !over; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  expect((await listed).moments).toHaveLength(1_500);
  expect(turns).toBeGreaterThanOrEqual(1_500 / STEPS_PER_TURN - 1);
});

test("a page ends early if its schedules are large, and the pages after it have the others, each once", async () => {
  const { rota } = await openTestRota();
  const sizes = [10, 700_000, 10, 1_000_000, 600_000, 10, 10];
  for (const size of sizes)
    await rota.schedules.create({ schedule: "every day", message: "x".repeat(size), enabled: false });
  const pages: number[][] = [];
  let cursor: string | undefined;
  do {
    const page = await rota.schedules.list({ limit: 3, ...(cursor === undefined ? {} : { cursor }) });
    pages.push(page.schedules.map(({ id }) => id));
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  expect(pages.flat().sort()).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(pages[0]).toEqual([7, 6, 5]);
  expect(pages.every(({ length }) => length <= 3)).toBe(true);
  expect(pages.some((page) => page.includes(4) && page.includes(5))).toBe(false);
});
