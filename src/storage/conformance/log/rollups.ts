import { describe, expect, test } from "vitest";
import {
  BUCKETS,
  bucketOf,
  OTHER_KEYS,
  ROLLUP_COUNTS,
  ROLLUP_STEPS,
  type RollupKind,
  type RollupStep,
} from "../../../model/rollup.ts";
import { ROLLUP_SLICE_OF_PRUNE, type RollupRow, type Storage } from "../../storage.ts";
import { UNBOUNDED } from "../tenants/share-out.ts";
import {
  LANE,
  NODE,
  newTask,
  type OpenWorld,
  OTHER_LANE,
  only,
  ROOMY,
  TENANT,
  type World,
} from "../world.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

interface Asked {
  readonly tenant?: string;
  readonly kind?: RollupKind;
  readonly step?: RollupStep;
}

/** Counts all events, a slice at a time. */
export async function countAll({ rollups }: Pick<Storage, "rollups">, limit = 1_000): Promise<number> {
  let counted = 0;
  for (let slices = 0; slices < 10_000; slices += 1) {
    const { events, more } = await rollups.advance({ limit });
    counted += events;
    if (!more) return counted;
  }
  throw new Error("Counting comes to no end.");
}

export async function allRollups(
  { rollups }: Pick<Storage, "rollups">,
  { tenant = TENANT, kind = "lane", step = 60 }: Asked = {},
): Promise<RollupRow[]> {
  const { rows } = await rollups.read({ tenant, kind, step, from: 0, to: 9e15, limit: 100_000 });
  return rows;
}

/** The values of a row that are not zero. */
function shown({ at: _at, wait, run, ...row }: RollupRow) {
  const counts = Object.fromEntries(Object.entries(row).filter(([, value]) => value !== 0));
  return {
    ...counts,
    ...(wait.buckets.some((n) => n > 0) ? { wait: nonEmpty(wait) } : {}),
    ...(run.buckets.some((n) => n > 0) ? { run: nonEmpty(run) } : {}),
  };
}

function nonEmpty({ buckets, max }: RollupRow["wait"]) {
  expect(buckets).toHaveLength(BUCKETS);
  return { buckets: Object.fromEntries([...buckets.entries()].filter(([, n]) => n > 0)), max };
}

export function describeRollups(open: OpenWorld): void {
  describe("rollups", () => {
    /** Submits a task, waits, starts it, waits, and ends it. */
    async function runOne(world: World, { waitMs = 0, runMs = 0, agent = "scout", lane = LANE } = {}) {
      await world.submit({ agent, lane });
      world.clock.step(waitMs);
      const claimed = only(await world.claim({ lane }));
      world.clock.step(runMs);
      await world.finish(claimed, { to: "done", result: null });
      return claimed;
    }

    test("count what happened by lane and by agent, in its minute, hour and day", async () => {
      const world = await open();
      const start = world.clock.now();
      await runOne(world, { agent: "a" });
      world.clock.step(MINUTE_MS);
      await runOne(world, { agent: "b", lane: OTHER_LANE });
      world.clock.step(HOUR_MS);
      await world.submit({ id: "waits", agent: "a" });
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["waits"], error: null });
      await world.submit({ agent: "b" });
      await world.finish(only(await world.claim()), { to: "failed", error: "no" });
      expect(await countAll(world.storage)).toBe(3 + 3 + 2 + 3);

      const ran = { wait: { buckets: { 0: 1 }, max: 0 }, run: { buckets: { 0: 1 }, max: 0 } };
      const done = { submitted: 1, started: 1, done: 1, ...ran };
      const later = start + MINUTE_MS + HOUR_MS;
      const byLane = await allRollups(world.storage);
      expect(byLane.map((row) => [row.at, shown(row)])).toEqual([
        [start, { key: LANE, ...done }],
        [start + MINUTE_MS, { key: OTHER_LANE, ...done }],
        [later, { key: LANE, submitted: 2, started: 1, failed: 1, cancelled: 1, ...ran }],
      ]);
      const byAgent = await allRollups(world.storage, { kind: "agent" });
      expect(byAgent.map((row) => [row.at, shown(row)])).toEqual([
        [start, { key: "a", ...done }],
        [start + MINUTE_MS, { key: "b", ...done }],
        [later, { key: "a", submitted: 1, cancelled: 1 }],
        [later, { key: "b", submitted: 1, started: 1, failed: 1, ...ran }],
      ]);
      const hours = await allRollups(world.storage, { step: 3_600 });
      expect(hours.map(({ at, key, submitted }) => [at, key, submitted])).toEqual([
        [start, OTHER_LANE, 1],
        [start, LANE, 1],
        [start + HOUR_MS, LANE, 2],
      ]);
      const days = await allRollups(world.storage, { step: 86_400, kind: "agent" });
      expect(days.map(({ at, key, submitted, done }) => [at, key, submitted, done])).toEqual([
        [start, "a", 2, 1],
        [start, "b", 2, 1],
      ]);
    });

    test.each([1, 2, 1_000])("count every event once, in slices of about %d", async (limit) => {
      const world = await open();
      for (let n = 0; n < 3; n += 1) {
        await runOne(world);
        await countAll(world.storage, limit);
        await countAll(world.storage, limit);
      }
      const [row, ...others] = await allRollups(world.storage);
      expect(others).toEqual([]);
      expect(row).toMatchObject({ submitted: 3, started: 3, done: 3 });
    });

    test("work in slices and say when there is more", async () => {
      const world = await open();
      for (let n = 0; n < 3; n += 1) await runOne(world);
      expect(await world.storage.rollups.advance({ limit: 4 })).toEqual({ events: 4, more: true });
      expect(await world.storage.rollups.advance({ limit: 100 })).toEqual({ events: 5, more: false });
      expect(await world.storage.rollups.advance({ limit: 100 })).toEqual({ events: 0, more: false });
    });

    test("are no later than the oldest event that is not counted", async () => {
      const world = await open();
      expect(await world.storage.rollups.lateMs()).toBe(0);
      await world.submit({});
      world.clock.step(70);
      await world.submit({});
      expect(await world.storage.rollups.lateMs()).toBe(70);
      await countAll(world.storage);
      expect(await world.storage.rollups.lateMs()).toBe(0);
    });

    test("have how long tasks waited and ran, in buckets that double", async () => {
      const world = await open();
      await runOne(world, { waitMs: 63, runMs: 64 });
      await runOne(world, { waitMs: 127, runMs: 128 });
      await runOne(world, { waitMs: 5, runMs: 30 * MINUTE_MS });
      await countAll(world.storage);
      const [day] = await allRollups(world.storage, { step: 86_400 });
      expect(day?.wait).toEqual({ buckets: [2, 1, ...Array(14).fill(0)], max: 127 });
      expect(day?.run).toEqual({ buckets: [0, 1, 1, ...Array(12).fill(0), 1], max: 30 * MINUTE_MS });
      for (const ms of [0, 63, 64, 127, 128, 1_048_575]) expect(bucketOf(ms)).toBeLessThan(BUCKETS - 1);
      expect([1_048_576, 2 ** 40].map(bucketOf)).toEqual([BUCKETS - 1, BUCKETS - 1]);
    });

    test("do not count the wait for `runAt`, nor that before another attempt", async () => {
      const world = await open();
      await world.submit({ id: "later", runAt: world.clock.now() + 5_000 });
      world.clock.step(5_000);
      await world.storage.tasks.promoteDue({ limit: 10 });
      world.clock.step(100);
      const first = only(await world.claim());
      await countAll(world.storage);
      await world.finish(first, { to: "delayed", error: "again", runAt: world.clock.now() + 1_000 });
      world.clock.step(1_000);
      await world.storage.tasks.promoteDue({ limit: 10 });
      const second = only(await world.claim());
      world.clock.step(200);
      await world.finish(second, { to: "done", result: null });
      await countAll(world.storage);
      const [row] = await allRollups(world.storage);
      expect(row && shown(row)).toEqual({
        key: LANE,
        submitted: 1,
        started: 2,
        done: 1,
        wait: { buckets: { 1: 1 }, max: 100 },
        run: { buckets: { 2: 1 }, max: 200 },
      });
    });

    test("know how long an attempt ran whose task was retried before it was counted", async () => {
      const world = await open();
      await world.submit({ id: "t" });
      const claimed = only(await world.claim());
      world.clock.step(500);
      await world.finish(claimed, { to: "failed", error: "no" });
      world.clock.step(1);
      await world.storage.tasks.retry({ tenant: TENANT, id: "t" });
      await countAll(world.storage);
      const [row] = await allRollups(world.storage);
      expect(row?.run).toMatchObject({ max: 500 });
    });

    test("count each token of every attempt once", async () => {
      const world = await open();
      const finish = async (settlement: Parameters<World["finish"]>[1], tokens: number) => {
        const { token, task } = only(await world.claim());
        const usage = { inputTokens: tokens, outputTokens: 1 };
        const finishes = [{ seq: task.seq, token, settlement, usage }];
        await world.storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
      };
      const tokens = async () => (await allRollups(world.storage))[0]?.tokens;
      await world.submit({ id: "t" });
      await finish({ to: "queued", error: "interrupted" }, 9);
      await countAll(world.storage);
      expect(await tokens()).toBe(0);
      await finish({ to: "failed", error: "no" }, 99);
      await countAll(world.storage);
      expect(await tokens()).toBe(110);
      await world.storage.tasks.retry({ tenant: TENANT, id: "t" });
      await finish({ to: "failed", error: "no" }, 999);
      await world.storage.tasks.retry({ tenant: TENANT, id: "t" });
      await finish({ to: "done", result: null }, 9_999);
      await countAll(world.storage);
      expect(await tokens()).toBe(11_110);
    });

    test("give the busiest hundred agents a row of their own, and all others one together", async () => {
      const world = await open();
      const agents = Array.from({ length: 130 }, (_, n) => `agent-${String(n).padStart(3, "0")}`);
      await world.submit(...agents.slice(0, 110).map((agent) => ({ agent })));
      await countAll(world.storage);
      const count = async () => await allRollups(world.storage, { kind: "agent" });
      expect((await count()).map(({ key, submitted }) => [key, submitted])).toEqual([
        [OTHER_KEYS, 10],
        ...agents.slice(0, 100).map((agent) => [agent, 1]),
      ]);
      await world.submit(...agents.slice(120).flatMap((agent) => [{ agent }, { agent }]));
      await countAll(world.storage);
      const rows = await count();
      expect(rows).toHaveLength(101);
      expect(rows.map(({ key, submitted }) => [key, submitted])).toEqual([
        [OTHER_KEYS, 20],
        ...agents.slice(0, 90).map((agent) => [agent, 1]),
        ...agents.slice(120).map((agent) => [agent, 2]),
      ]);
      expect(await allRollups(world.storage)).toMatchObject([{ key: LANE, submitted: 130 }]);
    });

    test("are each tenant's own", async () => {
      const world = await open();
      await world.submit({ tenant: "acme" }, { tenant: "zeta" }, { tenant: "zeta" });
      await countAll(world.storage);
      const submitted = async (tenant: string) =>
        (await allRollups(world.storage, { tenant })).map((row) => row.submitted);
      expect([await submitted("acme"), await submitted("zeta"), await submitted("tiny")]).toEqual([
        [1],
        [2],
        [],
      ]);
    });

    test("are read from a moment to another, page by page, by time and key", async () => {
      const world = await open();
      const start = world.clock.now();
      for (let minute = 0; minute < 4; minute += 1) {
        await world.submit({ agent: "b" }, { agent: "a" });
        world.clock.step(MINUTE_MS);
      }
      await countAll(world.storage);
      const params = {
        tenant: TENANT,
        kind: "agent",
        step: 60,
        from: start + MINUTE_MS,
        to: start + 3 * MINUTE_MS,
        limit: 3,
      } as const;
      const first = await world.storage.rollups.read(params);
      expect(first.rows.map(({ at, key }) => [at, key])).toEqual([
        [start + MINUTE_MS, "a"],
        [start + MINUTE_MS, "b"],
        [start + 2 * MINUTE_MS, "a"],
      ]);
      const { next } = first;
      if (next === null) throw new Error("There is more.");
      const second = await world.storage.rollups.read({ ...params, after: next });
      expect(second.rows.map(({ at, key }) => [at, key])).toEqual([[start + 2 * MINUTE_MS, "b"]]);
      expect(second.next).toBeNull();
    });

    test("lose nothing to pruning: what is not counted is counted first", async () => {
      const world = await open();
      await runOne(world, { runMs: 100 });
      world.clock.step(5_000);
      const params = { retentionMs: 1_000, rejectedMax: 100, limit: 100 };
      expect(await world.storage.tasks.prune(params)).toEqual({ tasks: 1, more: false });
      expect(await world.events()).toEqual([]);
      expect(await countAll(world.storage)).toBe(0);
      expect(await allRollups(world.storage)).toMatchObject([
        { key: LANE, submitted: 1, started: 1, done: 1, run: { max: 100 } },
      ]);
    });

    test("keep pruning waiting while more is to be counted than goes into one slice", async () => {
      const world = await open();
      for (let n = 0; n < 5; n += 1) {
        const tasks = Array.from({ length: ROLLUP_SLICE_OF_PRUNE / 2 }, () => newTask());
        await world.storage.tasks.insert({ tasks, limits: ROOMY });
      }
      world.clock.step(5_000);
      const params = { retentionMs: 1_000, rejectedMax: 100, limit: 100_000 };
      const { oldest } = await world.storage.events.range();
      expect(await world.storage.tasks.prune(params)).toEqual({ tasks: 0, more: true });
      expect(await world.storage.tasks.prune(params)).toEqual({ tasks: 0, more: true });
      expect((await world.storage.events.range()).oldest).toBe(oldest);
      expect(await world.storage.tasks.prune(params)).toEqual({ tasks: 0, more: false });
      expect(await world.events()).toEqual([]);
      expect(await allRollups(world.storage)).toMatchObject([{ submitted: 2.5 * ROLLUP_SLICE_OF_PRUNE }]);
    });

    test("keep minutes for 48 hours, hours and days for 90 days", async () => {
      const world = await open();
      await world.submit({});
      await countAll(world.storage);
      const prune = (limit = 100) => world.storage.rollups.prune({ limit });
      const left = async () => {
        const rows = await Promise.all(ROLLUP_STEPS.map((step) => allRollups(world.storage, { step })));
        return rows.map(({ length }) => length);
      };
      world.clock.step(2 * DAY_MS);
      expect([await prune(), await left()]).toEqual([{ more: false }, [1, 1, 1]]);
      world.clock.step(1);
      expect(await prune(1)).toEqual({ more: true });
      expect([await prune(), await left()]).toEqual([{ more: false }, [0, 1, 1]]);
      world.clock.step(88 * DAY_MS);
      expect([await prune(), await left()]).toEqual([{ more: false }, [0, 0, 0]]);
    });

    test("are not kept back by what was counted while the clock was ahead", async () => {
      const world = await open();
      world.clock.step(1_000 * DAY_MS);
      await world.submit({});
      await countAll(world.storage);
      world.clock.step(-1_000 * DAY_MS);
      expect(await world.storage.rollups.prune({ limit: 100 })).toEqual({ more: false });
      expect(await allRollups(world.storage, { step: 86_400 })).toEqual([]);
    });

    test("go with their tenant, and what is counted afterwards leaves none", async () => {
      const world = await open();
      await world.storage.tenants.create({ id: "ten_1", name: "Acme", limits: UNBOUNDED });
      await world.submit({ tenant: "ten_1" }, { tenant: "ten_1" });
      await countAll(world.storage);
      await world.submit({ tenant: "ten_1" });
      expect(await world.storage.tenants.delete({ id: "ten_1", limit: 100 })).toMatchObject({ more: false });
      await countAll(world.storage);
      expect(await allRollups(world.storage, { tenant: "ten_1" })).toEqual([]);
    });

    test("count what happened to a task that is gone for the others", async () => {
      const world = await open();
      await world.storage.tenants.create({ id: "ten_1", name: "Acme", limits: UNBOUNDED });
      await world.submit(...["a", "b", "c"].map((id) => ({ id, tenant: "ten_1" })));
      expect(await world.storage.tenants.delete({ id: "ten_1", limit: 1 })).toMatchObject({ more: true });
      await countAll(world.storage);
      const rows = await allRollups(world.storage, { tenant: "ten_1" });
      expect(rows.map(({ key, submitted, cancelled }) => [key, submitted, cancelled])).toEqual([
        [OTHER_KEYS, 1, 1],
        [LANE, 2, 0],
      ]);
    });
  });
}

/** All rollups of a tenant, in comparable form. */
export async function lookAtRollups(storage: Storage, tenant: string) {
  const kinds = ["lane", "agent"] as const;
  return Promise.all(
    kinds.flatMap((kind) => ROLLUP_STEPS.map((step) => allRollups(storage, { tenant, kind, step }))),
  );
}

/** The sums over all keys and times, which are equal for every kind and step. */
export function totals(rows: readonly RollupRow[]) {
  return Object.fromEntries(
    ROLLUP_COUNTS.map((count) => [count, rows.reduce((sum, row) => sum + row[count], 0)]),
  );
}
