import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HOUR, MINUTE, makeScheduler, SECOND } from "../../../test/support/schedules.ts";
import { asSharedStorage, openMemory } from "../../../test/support/storages.ts";
import { examineSchedules } from "../../library/resources/examine-schedules.ts";
import type { Rule } from "../../model/rule.ts";
import type { CatchUp, Overlap } from "../../model/schedule.ts";
import { nextMoment } from "../../schedules/moments.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";

type Scheduler = Awaited<ReturnType<typeof makeScheduler>>;

const forEver = () => new Promise(() => {});

/** What the doctor says of the schedules. */
async function findings({ storage, clock }: Scheduler): Promise<readonly string[]> {
  const { findings } = await examineSchedules({
    tenant: "default",
    storage,
    now: clock.now(),
    runRetentionMs: 90 * 24 * HOUR,
    fires: true,
    disabled: false,
    onSlice: async () => {},
  });
  return findings;
}

async function setClock({ clock }: Scheduler, byMs: number): Promise<void> {
  clock.set(clock.now() + byMs);
  await clock.advance(2 * SECOND);
}

describe("a clock that is set forward an hour and back again", () => {
  test("leaves a schedule of every second silent for two seconds at most", async () => {
    const scheduler = await makeScheduler();
    const { engine, clock, create, story, schedule } = scheduler;
    const { id } = await create({ everyMs: SECOND });
    await engine.start();
    await clock.advance(2 * SECOND);
    await setClock(scheduler, HOUR);
    expect((await story()).slice(0, 3)).toEqual(["succeeded 1", "succeeded 2", "succeeded 3–3602 ×3600"]);
    await setClock(scheduler, -HOUR);
    await clock.advance(3 * SECOND);
    expect((await story()).slice(2)).toEqual([
      "succeeded 3602",
      "succeeded 3603",
      "succeeded 3604",
      "missed 3–4 ×2",
      "succeeded 5",
      "succeeded 6",
      "succeeded 7",
      "succeeded 8",
      "succeeded 9",
    ]);
    expect(await schedule(id)).toMatchObject({ nextFireAt: clock.now() + SECOND });
    expect(await findings(scheduler)).toEqual([]);
  });

  test("starts no due time again that has run, and all others", async () => {
    const scheduler = await makeScheduler();
    const { engine, clock, anchor, create, runs } = scheduler;
    await create({ everyMs: 10 * SECOND });
    await engine.start();
    await setClock(scheduler, HOUR);
    await clock.advance(MINUTE);
    await setClock(scheduler, -HOUR);
    await clock.advance(2 * HOUR);
    const started = (await runs()).map(({ dueAt }) => (dueAt - anchor) / SECOND);
    expect(new Set(started).size).toBe(started.length);
    const expected = Array.from(
      { length: Math.floor((clock.now() - anchor) / (10 * SECOND)) },
      (_, n) => (n + 1) * 10,
    );
    // The first were caught up with while the clock was ahead, before it was set back.
    expect(expected.filter((dueAt) => !started.includes(dueAt)).every((dueAt) => dueAt <= 70)).toBe(true);
    expect(await findings(scheduler)).toEqual([]);
  });

  test("takes back what was missed, and what was skipped", async () => {
    const scheduler = await makeScheduler({ executor: forEver });
    const { engine, clock, create, story } = scheduler;
    await create({ everyMs: 10 * MINUTE, catchUp: "none", timeoutMs: 10 * HOUR });
    await engine.start();
    await clock.advance(10 * MINUTE);
    await setClock(scheduler, HOUR);
    await clock.advance(10 * MINUTE);
    expect(await story()).toEqual(["running 600", "missed 1200–3600 ×5", "skipped 4200", "skipped 4800"]);
    await setClock(scheduler, -HOUR);
    expect(await story()).toEqual(["running 600", "missed 1200"]);
    await clock.advance(10 * MINUTE);
    expect(await story()).toEqual(["running 600", "missed 1200", "skipped 1800"]);
    expect(await findings(scheduler)).toEqual([]);
  });

  test("lets a one-shot run that it had missed, and one that has run stay over", async () => {
    const scheduler = await makeScheduler();
    const { engine, clock, anchor, create, story, schedule } = scheduler;
    const rule = { kind: "once", atMs: anchor + 30 * MINUTE, phrase: "in 30 minutes", tz: "UTC" } as const;
    const missed = await create({ rule, nextFireAt: rule.atMs, catchUp: "none" });
    const ran = await create({ rule, nextFireAt: rule.atMs });
    await engine.start();
    await setClock(scheduler, HOUR);
    expect(await schedule(missed.id)).toMatchObject({ status: "failed", lastStatus: "missed" });
    expect(await schedule(ran.id)).toMatchObject({ status: "completed" });
    await setClock(scheduler, -HOUR);
    expect(await schedule(missed.id)).toMatchObject({ status: "active", nextFireAt: rule.atMs });
    await clock.advance(HOUR);
    expect(await story(missed.id)).toEqual(["succeeded 1800"]);
    expect(await story(ran.id)).toEqual(["succeeded 1800"]);
    expect(await schedule(missed.id)).toMatchObject({ status: "completed" });
  });

  test("is noticed at the next start, where no process ran meanwhile", async () => {
    const clock = new ManualClock();
    const storage = asSharedStorage(await openMemory(clock));
    const first = await makeScheduler({ clock, storage });
    await first.create({ everyMs: SECOND });
    await first.engine.start();
    clock.set(clock.now() + HOUR);
    await clock.advance(7 * SECOND);
    await Promise.all([first.engine.drain(0), clock.advance(SECOND)]);
    clock.set(clock.now() - HOUR);
    const second = await makeScheduler({ clock, storage, node: "second" });
    await second.engine.start();
    await settle();
    await clock.advance(2 * SECOND);
    expect((await second.story()).slice(-1)).toEqual(["succeeded 2"]);
  });

  test("takes back rows of any number in several transactions", async () => {
    const sizes: number[] = [];
    const scheduler = await makeScheduler({
      executor: forEver,
      meddler: {
        before: ({ operation, params }) => {
          if (operation === "schedules.rewind") sizes.push((params as { rows: unknown[] }).rows.length);
        },
      },
    });
    const { engine, clock, storage, create, schedule, runs } = scheduler;
    const { id } = await create({ everyMs: SECOND, timeoutMs: 10 * HOUR });
    await engine.start();
    clock.set(clock.now() + HOUR);
    await clock.advance(SECOND);
    // Each for a reason of its own: they share no row.
    const { tenant, revision, nextFireAt } = await schedule(id);
    const next = nextFireAt ?? 0;
    const skipped = Array.from({ length: 1_200 }, (_, n) => {
      const dueAt = next + n * SECOND;
      const row = { dueAt, firstDueAt: dueAt, moments: 1, forced: false, reason: `reason ${n}` };
      return { ...row, status: "skipped" } as const;
    });
    const fire = { tenant, id, revision, runs: skipped, nextFireAt: next + HOUR, pauses: null };
    await storage.schedules.fire({ fires: [fire] });
    expect((await runs()).length).toBeGreaterThan(1_000);
    await setClock(scheduler, -2 * HOUR);
    expect(sizes.length).toBeGreaterThan(2);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(500);
    expect((await runs()).filter(({ status }) => status === "skipped")).toEqual([]);
  });
});

describe("a schedule that others change during each try", () => {
  test("is reported once, and tried again until its due times are due again", async () => {
    let changes = 12;
    const scheduler = await makeScheduler({
      executor: forEver,
      meddler: {
        before: async ({ operation }) => {
          if (operation !== "schedules.rewind" || changes === 0) return;
          changes -= 1;
          const { tenant, revision } = await scheduler.schedule(id);
          await scheduler.storage.schedules.update({ tenant, id, revision, changes: { name: `${changes}` } });
        },
      },
    });
    const { engine, clock, log, create, schedule, story } = scheduler;
    const { id } = await create({ everyMs: 10 * MINUTE, catchUp: "none", timeoutMs: 10 * HOUR });
    await engine.start();
    await clock.advance(10 * MINUTE);
    await setClock(scheduler, HOUR);
    await setClock(scheduler, -HOUR);
    await clock.advance(3 * SECOND);
    expect([changes, await story()]).toEqual([0, ["running 600"]]);
    expect(await schedule(id)).toMatchObject({ name: "0", nextFireAt: scheduler.anchor + 20 * MINUTE });
    expect(log.lines.filter(({ level }) => level === "warn")).toMatchObject([
      {
        message: expect.stringMatching(/^a schedule is changed too often .*; trying again$/),
        fields: { tenant: "default", schedule: id },
      },
    ]);
    expect(await findings(scheduler)).toEqual([]);
  });
});

describe("any steps of the clock", () => {
  const rules: readonly Rule[] = [
    { kind: "every", everyMs: 7 * SECOND, tz: "UTC" },
    { kind: "every", everyMs: 40 * SECOND, tz: "UTC" },
    { kind: "cron", expr: "* * * * *", tz: "Europe/Berlin" },
    { kind: "cron", expr: "*/5 * * * * *", tz: "UTC" },
  ];
  const step = fc.record({
    advanceMs: fc.integer({ min: 0, max: 40 * SECOND }),
    setMs: fc.integer({ min: -4 * MINUTE, max: 4 * MINUTE }),
  });

  /** More due times are skipped in a row than have rows of their own. */
  const ELEVEN_SKIPPED: [Rule, Overlap, CatchUp, boolean, { advanceMs: number; setMs: number }[]] = [
    { kind: "cron", expr: "*/5 * * * * *", tz: "UTC" },
    "skip",
    "one",
    true,
    [{ advanceMs: 0, setMs: 48_001 }],
  ];

  test("start no due time twice, lose none, and silence nothing that has not run", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...rules),
        fc.constantFrom<Overlap>("skip", "queue", "allow", "replace"),
        fc.constantFrom<CatchUp>("one", "none", "all"),
        fc.boolean(),
        fc.array(step, { minLength: 1, maxLength: 5 }),
        async (rule, overlap, catchUp, isSlow, steps) => {
          const clock = new ManualClock();
          const executor = isSlow
            ? () => new Promise<void>((resolve) => clock.setTimer(11 * SECOND, resolve))
            : undefined;
          const scheduler = await makeScheduler({ clock, ...(executor && { executor }) });
          const { engine, anchor, create, runs, schedule } = scheduler;
          const nextFireAt = nextMoment(rule, { after: anchor, anchor }) as number;
          const { id } = await create({ rule, nextFireAt, overlap, catchUp });
          await engine.start();
          for (const { advanceMs, setMs } of steps) {
            await clock.advance(advanceMs);
            clock.set(Math.max(clock.now() + setMs, anchor));
          }
          await clock.advance(2 * SECOND);
          const corrected = clock.now();
          const before = new Set((await runs()).filter(hasStarted).map(({ dueAt }) => dueAt));
          await clock.advance(2 * MINUTE);
          const rows = await runs();
          const dueAts = rows.map(({ dueAt }) => dueAt);
          expect(new Set(dueAts).size).toBe(dueAts.length);
          const afterwards = new Set(dueAts);
          for (let at = nextMoment(rule, { after: corrected, anchor }); at !== null && at <= clock.now(); ) {
            expect(before.has(at) || afterwards.has(at) || isShared(at, rows)).toBe(true);
            at = nextMoment(rule, { after: at, anchor });
          }
          expect((await schedule(id)).nextFireAt).toBeLessThanOrEqual(
            latestNext(rule, anchor, clock.now(), before),
          );
          expect(await findings(scheduler)).toEqual([]);
          await Promise.all([engine.drain(0), clock.advance(SECOND)]);
        },
      ),
      { numRuns: 20, examples: [ELEVEN_SKIPPED] },
    );
  }, 120_000);

  /** Whether the row that follows is shared by several due times in a row: the doctor checks how many they are. */
  function isShared(at: number, rows: readonly { dueAt: number; moments: number }[]): boolean {
    const [next] = rows.filter(({ dueAt }) => dueAt > at).sort((one, other) => one.dueAt - other.dueAt);
    return next !== undefined && next.moments > 1;
  }

  function hasStarted({ startedAt }: { readonly startedAt: number | null }): boolean {
    return startedAt !== null;
  }

  /** The first moment to come that has not run yet. */
  function latestNext(rule: Rule, anchor: number, now: number, started: ReadonlySet<number>): number {
    let at = nextMoment(rule, { after: now, anchor });
    while (at !== null && started.has(at)) at = nextMoment(rule, { after: at, anchor });
    return at ?? Number.POSITIVE_INFINITY;
  }
});
