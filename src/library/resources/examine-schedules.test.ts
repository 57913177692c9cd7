import { expect, onTestFinished, test } from "vitest";
import { SteppedClock } from "../../storage/conformance/connection/clock.ts";
import { newDefinition } from "../../storage/conformance/schedules/schedule-world.ts";
import { openSqlite } from "../../storage/sqlite/connection/open.ts";
import type { NewRun, ScheduleDefinition, ScheduleRecord, Storage } from "../../storage/storage.ts";
import { examineSchedules } from "./examine-schedules.ts";

const HOUR = 60 * 60 * 1_000;
const TENANT = "default";

async function open() {
  const clock = new SteppedClock();
  const storage = await openSqlite({ path: ":memory:", clock });
  onTestFinished(() => storage.close());
  const start = clock.now();

  async function create(definition: Partial<ScheduleDefinition> = {}): Promise<ScheduleRecord> {
    return storage.schedules.create({
      tenant: TENANT,
      definition: newDefinition({ anchorAt: start, ...definition }),
      status: "active",
      nextFireAt: start + HOUR,
      source: null,
    });
  }

  return { clock, storage, start, create };
}

/** Leaves rows as they are given, whether or not they make sense. */
async function leave(storage: Storage, { id }: ScheduleRecord, rows: NewRun[], nextFireAt: number) {
  const schedule = await storage.schedules.get({ tenant: TENANT, id });
  const revision = schedule?.revision ?? 0;
  await storage.schedules.fire({
    fires: [{ tenant: TENANT, id, revision, runs: rows, nextFireAt, pauses: null }],
  });
}

function skipped(dueAt: number, firstDueAt = dueAt): NewRun {
  const moments = (dueAt - firstDueAt) / HOUR + 1;
  return { status: "skipped", reason: "busy", dueAt, firstDueAt, moments, forced: false };
}

function examine(
  storage: Storage,
  now: number,
  options: { fires?: boolean; runRetentionMs?: number; disabled?: boolean } = {},
) {
  return examineSchedules({
    tenant: TENANT,
    storage,
    now,
    runRetentionMs: 90 * 24 * HOUR,
    fires: true,
    disabled: false,
    onSlice: async () => {},
    ...options,
  });
}

test("finds nothing wrong with schedules whose every moment has its row", async () => {
  const { storage, start, create } = await open();
  const schedule = await create();
  await create({ agent: "other" });
  await leave(
    storage,
    schedule,
    [skipped(start + HOUR), skipped(start + 3 * HOUR, start + 2 * HOUR)],
    start + 4 * HOUR,
  );
  expect(await examine(storage, start)).toEqual({ schedules: 2, moments: 3, findings: [] });
});

test("names a moment that left no run, by schedule and time", async () => {
  const { storage, start, create } = await open();
  const schedule = await create();
  await leave(storage, schedule, [skipped(start + HOUR), skipped(start + 3 * HOUR)], start + 5 * HOUR);
  const { findings } = await examine(storage, start);
  expect(findings).toEqual([
    `Schedule #${schedule.id} (every hour): 2030-01-01T02:00:00+00:00 has no run.`,
    `Schedule #${schedule.id} (every hour): 2030-01-01T04:00:00+00:00 has no run.`,
  ]);
});

test("names a moment that two runs stand for, and a next one that is none", async () => {
  const { storage, start, create } = await open();
  const schedule = await create();
  const rows = [skipped(start + 2 * HOUR, start + HOUR), skipped(start + 3 * HOUR, start + 2 * HOUR)];
  await leave(storage, schedule, rows, start + 4 * HOUR + 1);
  const { findings } = await examine(storage, start);
  expect(findings).toEqual([
    expect.stringContaining("04:00:00+00:00 has no run"),
    expect.stringContaining("is stored as the next due time, but the rule does not have it"),
    expect.stringContaining("02:00:00+00:00 has two runs"),
  ]);
});

test("checks from the last change on, and only what the retention keeps", async () => {
  const { clock, storage, start, create } = await open();
  const schedule = await create();
  await leave(storage, schedule, [], start + 5 * HOUR);
  expect((await examine(storage, start)).findings).toHaveLength(4);
  clock.step(4 * HOUR);
  const { revision } = (await storage.schedules.get(schedule)) as ScheduleRecord;
  await storage.schedules.update({ ...schedule, revision, changes: { name: "new" } });
  expect((await examine(storage, start + 4 * HOUR)).findings).toEqual([]);
  await leave(storage, schedule, [], start + 9 * HOUR);
  const kept = await examine(storage, start + 8 * HOUR, { runRetentionMs: 2 * HOUR });
  expect(kept.findings).toEqual([expect.stringContaining("08:00:00+00:00 has no run")]);
});

test("reports that no node fires a schedule that is long due, unless none should", async () => {
  const { storage, start, create } = await open();
  await create();
  const now = start + HOUR + 10_001;
  expect((await examine(storage, now)).findings).toEqual([
    expect.stringContaining("is overdue, and no node fires it"),
  ]);
  expect((await examine(storage, now, { fires: false })).findings).toEqual([]);
});

test("takes the moment at which a one-shot goes on for what it is", async () => {
  const { storage, start, create } = await open();
  const rule = { kind: "once", atMs: start, phrase: "in 1 hour", tz: "UTC" } as const;
  await create({ rule });
  expect((await examine(storage, start)).findings).toEqual([]);
});

test("asks nothing of a schedule that is paused", async () => {
  const { storage, start, create } = await open();
  const schedule = await create();
  await storage.schedules.update({ ...schedule, changes: { status: "paused" } });
  expect(await examine(storage, start + 100 * HOUR)).toEqual({ schedules: 1, moments: 0, findings: [] });
});

test("names a schedule that is active although it has reached its limits", async () => {
  const { storage, start, create } = await open();
  await create({ maxRuns: 1, untilAt: start + HOUR });
  expect((await examine(storage, start)).findings).toEqual([]);
  const meddle = (changes: Partial<ScheduleRecord>): Storage => {
    const page: Storage["schedules"]["page"] = async (params) =>
      (await storage.schedules.page(params)).map((schedule) => ({ ...schedule, ...changes }));
    return { ...storage, schedules: { ...storage.schedules, page } };
  };
  const findings = async (changes: Partial<ScheduleRecord>) =>
    (await examine(meddle(changes), start)).findings;
  expect(await findings({ nextFireAt: null })).toEqual([
    "Schedule #1 (every hour) is active, but has no next due time.",
  ]);
  expect(await findings({ runCount: 1 })).toEqual([
    "Schedule #1 (every hour) is active, but has had 1 runs of at most 1.",
  ]);
  expect(await findings({ untilAt: start })).toEqual([
    "Schedule #1 (every hour) is next due at 2030-01-01T01:00:00+00:00, which is after its `until`.",
  ]);
});

test("reports nothing about a schedule that is deleted, with its rows, during the check", async () => {
  const { storage, start, create } = await open();
  const schedule = await create();
  await leave(storage, schedule, [skipped(start + HOUR)], start + 2 * HOUR);
  const dueRows: Storage["schedules"]["dueRows"] = async (params) => {
    await storage.schedules.delete({ tenant: TENANT, id: schedule.id, sparesRunning: false });
    return storage.schedules.dueRows(params);
  };
  const meddled = { ...storage, schedules: { ...storage.schedules, dueRows } };
  expect((await examine(meddled, start)).findings).toEqual([]);
});
