import { describe, expect, test } from "vitest";
import type { Settlement } from "../../model/outcome.ts";
import { DEFAULT_RETRY_POLICY } from "../../model/retry-policy.ts";
import { REPLACED, SCHEDULE_DELETED } from "../../model/schedule.ts";
import type {
  Fire,
  FiredSchedule,
  ListRunsParams,
  NewRun,
  NewSchedule,
  NewTask,
  RunRecord,
  ScheduleDefinition,
  ScheduleRecord,
  StorageSignal,
  StoredNotification,
  UpdateScheduleParams,
} from "../storage.ts";
import { AGENT, LANE, NODE, newTask, type OpenWorld, only, TENANT, type World } from "./world.ts";

const HOUR = 60 * 60 * 1_000;

/** Every hour, for nothing in particular. */
export function newDefinition(overrides: Partial<ScheduleDefinition> = {}): ScheduleDefinition {
  return {
    name: null,
    agent: AGENT,
    message: "look around",
    phrase: "every hour",
    rule: { kind: "every", everyMs: HOUR, tz: "UTC" },
    anchorAt: 0,
    conversationId: null,
    sessionKey: null,
    deleteAfterRun: false,
    retryPolicy: DEFAULT_RETRY_POLICY,
    overlap: "skip",
    catchUp: "one",
    usefulForMs: null,
    timeoutMs: null,
    ...overrides,
  };
}

function create(
  world: World,
  {
    definition,
    ...rest
  }: Partial<Omit<NewSchedule, "definition">> & { definition?: Partial<ScheduleDefinition> } = {},
): Promise<ScheduleRecord> {
  return world.storage.schedules.create({
    tenant: TENANT,
    definition: newDefinition(definition),
    status: "active",
    nextFireAt: world.clock.now(),
    source: null,
    ...rest,
  });
}

/** One that is due once, now. */
function createOnce(world: World, definition: Partial<ScheduleDefinition> = {}): Promise<ScheduleRecord> {
  const rule = { kind: "once", atMs: world.clock.now(), phrase: "now", tz: "UTC" } as const;
  return create(world, { definition: { rule, ...definition } });
}

let runs = 0;

/** A run that fires now. */
function running(
  world: World,
  schedule: ScheduleRecord,
  { task, ...rest }: Partial<Omit<NewRun & { status: "running" }, "task">> & { task?: Partial<NewTask> } = {},
): NewRun {
  runs += 1;
  const dueAt = rest.dueAt ?? world.clock.now();
  const made = {
    origin: "run",
    schedule: schedule.id,
    tenant: schedule.tenant,
    agent: schedule.agent,
    ...task,
  } as const;
  return {
    status: "running",
    firstDueAt: dueAt,
    moments: 1,
    forced: false,
    requestId: `req-${runs}`,
    replaces: false,
    task: newTask(made),
    ...rest,
    dueAt,
  };
}

function unfired(status: "skipped" | "missed", dueAt: number, moments = 1): NewRun {
  const firstDueAt = dueAt - (moments - 1) * HOUR;
  return { status, reason: `was ${status}`, dueAt, firstDueAt, moments, forced: false };
}

/** Fires on what the schedule is by now. */
async function fire(
  world: World,
  { id, tenant }: ScheduleRecord,
  given: Partial<Fire>,
): Promise<FiredSchedule> {
  const schedule = await world.storage.schedules.get({ tenant, id });
  const { revision = 0, nextFireAt = null } = schedule ?? {};
  const whole = { tenant, id, revision, runs: [], nextFireAt, pauses: null, ...given };
  return only(await world.storage.schedules.fire({ fires: [whole] }));
}

async function read(world: World, { tenant, id }: ScheduleRecord): Promise<ScheduleRecord> {
  const schedule = await world.storage.schedules.get({ tenant, id });
  if (schedule === null) throw new Error(`There is no schedule ${id}.`);
  return schedule;
}

async function runsOf(world: World, params: Partial<ListRunsParams> = {}): Promise<RunRecord[]> {
  const { runs } = await world.storage.schedules.listRuns({ tenant: TENANT, limit: 100, ...params });
  return runs;
}

async function told(world: World, after = 0): Promise<StoredNotification[]> {
  return (await world.storage.notifications.read({ after, limit: 1_000 })).notifications;
}

async function runOnce(world: World, settlement: Settlement, summary?: string): Promise<void> {
  const { token, task } = only(await world.claim());
  const finishes = [{ seq: task.seq, token, settlement, ...(summary === undefined ? {} : { summary }) }];
  await world.storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
}

const DONE: Settlement = { to: "done", result: "all quiet" };
const FAILED: Settlement = { to: "failed", error: "no luck" };

export function describeSchedules(open: OpenWorld): void {
  describe("a schedule", () => {
    test("is kept with all that was said of it", async () => {
      const world = await open();
      const definition = newDefinition({
        name: "häufig 🕐",
        conversationId: "c1",
        sessionKey: "user:1",
        overlap: "queue",
        catchUp: "all",
        usefulForMs: 1_000,
        timeoutMs: 5_000,
        deleteAfterRun: true,
        rule: { kind: "weeks", every: 2, on: ["Mon", "Fri"], at: "09:00", tz: "Europe/Berlin" },
      });
      const made = await world.storage.schedules.create({
        tenant: TENANT,
        definition,
        status: "active",
        nextFireAt: 7,
        source: null,
      });
      const now = world.clock.now();
      expect(made).toEqual({
        ...definition,
        id: made.id,
        tenant: TENANT,
        status: "active",
        revision: 1,
        createdAt: now,
        updatedAt: now,
        nextFireAt: 7,
        lastDueAt: null,
        lastRunAt: null,
        lastRunId: null,
        runCount: 0,
        lastStatus: null,
        lastError: null,
        openRuns: 0,
        held: false,
      });
      expect(await read(world, made)).toEqual(made);
      expect(await world.storage.schedules.get({ tenant: "zeta", id: made.id })).toBeNull();
    });

    test("is made once for the same source of a tenant", async () => {
      const world = await open();
      const first = await create(world, { source: "writ:1" });
      const again = await create(world, { source: "writ:1", definition: { message: "another" } });
      expect(again).toEqual(first);
      const others = [await create(world, { source: "writ:1", tenant: "zeta" }), await create(world)];
      expect(new Set([first, ...others].map(({ id }) => id)).size).toBe(3);
    });

    test("is listed by its last change, with filters, and by id", async () => {
      const world = await open();
      const [a, b, c] = [
        await create(world),
        await create(world, { definition: { agent: "other" } }),
        await create(world, { status: "paused", nextFireAt: null }),
      ];
      await create(world, { tenant: "zeta" });
      world.clock.step(5);
      await world.storage.schedules.update({ ...a, changes: { name: "first" } });
      const list = async (filter: { status?: "paused"; agent?: string } = {}) =>
        (await world.storage.schedules.list({ tenant: TENANT, limit: 10, ...filter })).map(({ id }) => id);
      expect(await list()).toEqual([a.id, c.id, b.id]);
      expect(await list({ status: "paused" })).toEqual([c.id]);
      expect(await list({ agent: "other" })).toEqual([b.id]);
      const pages = await world.storage.schedules.page({ tenant: TENANT, after: a.id, limit: 1 });
      expect(pages.map(({ id }) => id)).toEqual([b.id]);
      expect(await world.storage.schedules.status({ tenant: TENANT })).toEqual({
        active: 2,
        paused: 1,
        running: 0,
        nextFireAt: b.nextFireAt,
      });
    });

    test("is changed only by whoever knows it as it is", async () => {
      const world = await open();
      const made = await create(world);
      world.clock.step(3);
      const changed = await world.storage.schedules.update({
        ...made,
        changes: { message: "new", nextFireAt: 99 },
      });
      expect(changed).toMatchObject({
        message: "new",
        nextFireAt: 99,
        revision: 2,
        createdAt: made.createdAt,
        updatedAt: world.clock.now(),
      });
      expect(await world.storage.schedules.update({ ...made, changes: { message: "late" } })).toBeNull();
      expect(await world.storage.schedules.update({ ...made, tenant: "zeta", changes: {} })).toBeNull();
      expect((await read(world, made)).message).toBe("new");
    });

    test("has nothing due while it is paused, and tells why it is", async () => {
      const world = await open();
      const made = await create(world);
      const paused = await world.storage.schedules.update({
        ...made,
        changes: { status: "paused" },
        pauseReason: "asked to",
      });
      expect(paused).toMatchObject({ status: "paused", nextFireAt: null });
      expect(await world.storage.schedules.nextDueAt()).toBeNull();
      await world.storage.schedules.update({
        ...made,
        revision: 2,
        changes: { status: "paused", name: "x" },
      });
      expect(await told(world)).toMatchObject([
        {
          kind: "schedule.paused",
          scheduleId: made.id,
          agent: AGENT,
          tenant: TENANT,
          run: null,
          reason: "asked to",
        },
      ]);
      const resumed = await world.storage.schedules.update({
        ...made,
        revision: 3,
        changes: { status: "active", nextFireAt: 500 },
      });
      expect(resumed).toMatchObject({ status: "active", nextFireAt: 500 });
      expect(await world.storage.schedules.nextDueAt()).toBe(500);
    });

    test("is due when its moment comes, the longest due first, of all tenants", async () => {
      const world = await open();
      const now = world.clock.now();
      const later = await create(world, { nextFireAt: now + 10 });
      const soon = await create(world, { nextFireAt: now + 5, tenant: "zeta" });
      await create(world, { nextFireAt: null, status: "paused" });
      await create(world, { nextFireAt: now + 11 });
      expect(await world.storage.schedules.due({ limit: 9 })).toEqual([]);
      expect(await world.storage.schedules.nextDueAt()).toBe(now + 5);
      world.clock.step(10);
      expect(await world.storage.schedules.due({ limit: 9 })).toEqual([soon, later]);
      expect(await world.storage.schedules.due({ limit: 1 })).toEqual([soon]);
    });

    test("goes with its runs, whose tasks are cancelled", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { overlap: "allow" } });
      await fire(world, schedule, { runs: [running(world, schedule, { task: { id: "r1" } })] });
      const held = only(await world.claim());
      world.clock.step(1);
      await fire(world, schedule, { runs: [running(world, schedule, { task: { id: "r2" } })] });
      expect(await world.storage.schedules.delete({ ...schedule, tenant: "zeta" })).toBeNull();
      const signals: StorageSignal[] = [];
      world.storage.subscribe((signal) => signals.push(signal));
      const deleted = await world.storage.schedules.delete(schedule);
      expect(deleted?.cancelled).toMatchObject([
        { id: "r1", token: held.token },
        { id: "r2", token: null },
      ]);
      expect(await world.task("r1")).toMatchObject({ state: "cancelled", error: SCHEDULE_DELETED });
      expect(await world.storage.schedules.get(schedule)).toBeNull();
      expect(await runsOf(world)).toEqual([]);
      expect((await told(world)).map(({ kind }) => kind)).toEqual([
        "run.started",
        "run.started",
        "run.failed",
        "run.failed",
        "schedule.canceled",
      ]);
      expect(await world.storage.schedules.delete(schedule)).toBeNull();
      const tokens = { kind: "fenced", tokens: [held.token], reason: "cancelled" };
      await expect.poll(() => signals).toContainEqual(tokens);
      await world.storage.tasks.retry({ tenant: TENANT, id: "r1" });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });
  });

  describe("a schedule that is deleted with care", () => {
    test("lets what runs come to its end, and cancels the rest", async () => {
      const world = await open();
      const schedule = await create(world, { definition: { overlap: "allow" } });
      await fire(world, schedule, { runs: [running(world, schedule, { task: { id: "r1" } })] });
      const held = only(await world.claim());
      world.clock.step(1);
      await fire(world, schedule, { runs: [running(world, schedule, { task: { id: "r2" } })] });
      const deleted = await world.storage.schedules.delete({ ...schedule, sparesRunning: true });
      expect(deleted?.cancelled).toMatchObject([{ id: "r2", token: null }]);
      expect(await runsOf(world)).toEqual([]);
      expect((await world.finish(held, DONE)).finished).toMatchObject([{ state: "done" }]);
      expect((await told(world)).at(-1)).toMatchObject({ kind: "schedule.canceled" });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });
  });

  describe("a fire", () => {
    test("writes the run, makes the task and moves the schedule on, all at once", async () => {
      const world = await open();
      const schedule = await create(world);
      const now = world.clock.now();
      const given = running(world, schedule, {
        task: { id: "r1", session: { key: `schedule:${schedule.id}`, maxConcurrent: 1 } },
        requestId: "req-a",
      });
      world.clock.step(2);
      const { fired, runs } = await fire(world, schedule, {
        runs: [{ ...given, dueAt: now, firstDueAt: now }],
        nextFireAt: now + HOUR,
      });
      expect(fired).toBe(true);
      const { id, task } = only(runs);
      expect(task).toMatchObject({ id: "r1", state: "queued", position: 1 });
      expect(await read(world, schedule)).toEqual({
        ...schedule,
        revision: 2,
        nextFireAt: now + HOUR,
        lastDueAt: now,
        lastRunAt: now + 2,
        lastRunId: id,
        runCount: 1,
        openRuns: 1,
      });
      const run = await world.storage.schedules.getRun({ tenant: TENANT, id });
      expect(run).toEqual({
        id,
        tenant: TENANT,
        scheduleId: schedule.id,
        agent: AGENT,
        taskId: "r1",
        dueAt: now,
        firstDueAt: now,
        moments: 1,
        forced: false,
        status: "running",
        reason: null,
        startedAt: now + 2,
        completedAt: null,
        requestId: "req-a",
        resultSummary: null,
        error: null,
        inputTokens: 0,
        outputTokens: 0,
        attempt: 0,
      });
      expect(await world.task("r1")).toMatchObject({
        schedule: schedule.id,
        session: `schedule:${schedule.id}`,
        state: "queued",
      });
      const { tasks } = await world.storage.tasks.list({ tenant: TENANT, schedule: schedule.id, limit: 9 });
      expect(tasks.map((each) => each.id)).toEqual(["r1"]);
      expect((await world.events()).map(({ type, schedule: of }) => [type, of])).toEqual([
        ["task.created", schedule.id],
      ]);
      expect(await told(world)).toMatchObject([
        {
          kind: "run.started",
          scheduleId: schedule.id,
          agent: AGENT,
          at: now + 2,
          run: { id, status: "running", dueAt: now, moments: 1, startedAt: now + 2, completedAt: null },
        },
      ]);
      expect(only(await world.claim()).task).toMatchObject({ id: "r1", schedule: schedule.id });
      expect(await world.storage.schedules.getRun({ tenant: TENANT, id })).toMatchObject({ attempt: 1 });
      expect(await world.storage.schedules.getRun({ tenant: "zeta", id })).toBeNull();
    });

    test("does nothing for a schedule that was fired or changed since, or is gone", async () => {
      const world = await open();
      const schedule = await create(world);
      const stale = { revision: schedule.revision, runs: [running(world, schedule)] };
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: 5_000 });
      expect(await fire(world, schedule, stale)).toMatchObject({ fired: false, runs: [], cancelled: [] });
      await world.storage.schedules.update({ ...schedule, revision: 2, changes: { name: "x" } });
      expect(await fire(world, schedule, { ...stale, revision: 2 })).toMatchObject({ fired: false });
      await world.storage.schedules.delete(schedule);
      expect(await fire(world, schedule, { ...stale, revision: 3 })).toMatchObject({ fired: false });
      expect(await fire(world, { ...schedule, tenant: "zeta" }, stale)).toMatchObject({ fired: false });
    });

    test("fires others of the same call whatever becomes of one", async () => {
      const world = await open();
      const [gone, there] = [await create(world), await create(world)];
      await world.storage.schedules.delete(gone);
      const fires = [gone, there].map((schedule) => ({
        tenant: TENANT,
        id: schedule.id,
        revision: 1,
        runs: [running(world, schedule)],
        nextFireAt: null,
        pauses: null,
      }));
      const answers = await world.storage.schedules.fire({ fires });
      expect(answers.map(({ id, fired }) => [id, fired])).toEqual([
        [gone.id, false],
        [there.id, true],
      ]);
    });

    test("never gives a moment that has its row another, whatever the clock says", async () => {
      const world = await open();
      const schedule = await create(world);
      const dueAt = world.clock.now();
      await fire(world, schedule, { runs: [running(world, schedule, { dueAt })], nextFireAt: dueAt });
      const again = await fire(world, schedule, {
        runs: [running(world, schedule, { dueAt }), unfired("skipped", dueAt + HOUR)],
        nextFireAt: dueAt + 2 * HOUR,
      });
      expect(again).toMatchObject({ fired: true, runs: [{ task: null }] });
      expect((await runsOf(world)).map(({ status, dueAt: at }) => [status, at - dueAt])).toEqual([
        ["skipped", HOUR],
        ["running", 0],
      ]);
      expect(await read(world, schedule)).toMatchObject({
        runCount: 1,
        nextFireAt: dueAt + 2 * HOUR,
        lastDueAt: dueAt + HOUR,
      });
    });

    test("out of turn has no moment, and may come at any", async () => {
      const world = await open();
      const schedule = await create(world);
      const dueAt = world.clock.now();
      await fire(world, schedule, { runs: [running(world, schedule, { dueAt, forced: true })] });
      await fire(world, schedule, { runs: [running(world, schedule, { dueAt, forced: true })] });
      await fire(world, schedule, { runs: [running(world, schedule, { dueAt })] });
      expect((await runsOf(world)).map(({ forced }) => forced)).toEqual([false, true, true]);
      expect(await read(world, schedule)).toMatchObject({ runCount: 3, openRuns: 3, nextFireAt: dueAt });
    });

    test("leaves rows of what did not run, which count as no run", async () => {
      const world = await open();
      const schedule = await create(world);
      const now = world.clock.now();
      const { runs } = await fire(world, schedule, {
        runs: [unfired("missed", now - HOUR, 3), unfired("skipped", now)],
        nextFireAt: now + HOUR,
      });
      expect(runs.map(({ task }) => task)).toEqual([null, null]);
      expect(await runsOf(world)).toMatchObject([
        {
          status: "skipped",
          reason: "was skipped",
          startedAt: null,
          completedAt: now,
          taskId: null,
          moments: 1,
        },
        { status: "missed", reason: "was missed", dueAt: now - HOUR, firstDueAt: now - 3 * HOUR, moments: 3 },
      ]);
      expect(await read(world, schedule)).toMatchObject({
        runCount: 0,
        lastRunAt: null,
        lastRunId: null,
        lastStatus: null,
        lastDueAt: now,
        status: "active",
      });
      expect((await told(world)).map(({ kind }) => kind)).toEqual(["run.missed", "run.skipped"]);
    });

    test("adds what was missed to what was missed right before it", async () => {
      const world = await open();
      const schedule = await create(world);
      const now = world.clock.now();
      await fire(world, schedule, { runs: [unfired("missed", now, 2)] });
      world.clock.step(4);
      const { runs } = await fire(world, schedule, { runs: [unfired("missed", now + HOUR)] });
      expect(await runsOf(world)).toMatchObject([
        {
          id: only(runs).id,
          status: "missed",
          dueAt: now + HOUR,
          firstDueAt: now - HOUR,
          moments: 3,
          completedAt: now + 4,
        },
      ]);
      await fire(world, schedule, { runs: [unfired("skipped", now + 2 * HOUR)] });
      await fire(world, schedule, { runs: [unfired("missed", now + 3 * HOUR)] });
      expect((await runsOf(world)).map(({ status }) => status)).toEqual(["missed", "skipped", "missed"]);
      expect((await told(world)).map(({ run }) => run?.moments)).toEqual([2, 3, 1, 1]);
    });

    test("that cannot start is a failed run, and may pause the schedule", async () => {
      const world = await open();
      const schedule = await create(world);
      const now = world.clock.now();
      const error = 'agent "scout" not found';
      const failed = { ...unfired("missed", now), status: "failed", requestId: "req-f", error } as const;
      await fire(world, schedule, { runs: [failed], pauses: error, nextFireAt: now + HOUR });
      expect(await runsOf(world)).toMatchObject([
        { status: "failed", error, startedAt: now, completedAt: now, taskId: null, requestId: "req-f" },
      ]);
      expect(await read(world, schedule)).toMatchObject({
        status: "paused",
        nextFireAt: null,
        runCount: 1,
        lastStatus: "failed",
        lastError: error,
        openRuns: 0,
      });
      expect(await told(world)).toMatchObject([
        { kind: "run.failed", run: { error } },
        { kind: "schedule.paused", run: null, reason: error },
      ]);
    });

    test("can move a schedule on, or pause it, without a row", async () => {
      const world = await open();
      const [moves, pauses] = [await create(world), await createOnce(world)];
      const nextFireAt = world.clock.now() + HOUR;
      const common = { tenant: TENANT, revision: 1, runs: [] };
      const answers = await world.storage.schedules.fire({
        fires: [
          { ...common, id: moves.id, nextFireAt, pauses: null },
          { ...common, id: pauses.id, nextFireAt: null, pauses: "tenant disabled" },
        ],
      });
      expect(answers.map(({ fired, runs: rows }) => [fired, rows])).toEqual([
        [true, []],
        [true, []],
      ]);
      expect(await runsOf(world)).toEqual([]);
      const untouched = { lastDueAt: null, runCount: 0, revision: 2 };
      expect(await read(world, moves)).toMatchObject({ status: "active", nextFireAt, ...untouched });
      expect(await read(world, pauses)).toMatchObject({ status: "paused", nextFireAt: null, ...untouched });
      expect(await told(world)).toMatchObject([{ kind: "schedule.paused", reason: "tenant disabled" }]);
    });

    describe("while its tenant is disabled", () => {
      const held = { status: "paused", held: true, nextFireAt: null };

      async function openDisabled(): Promise<World> {
        const world = await open();
        const limits = { maxQueued: null, maxInflight: null, maxSchedules: null, maxStreams: null };
        await world.storage.tenants.create({ id: TENANT, name: TENANT, limits });
        await world.storage.tenants.setDisabled({ id: TENANT, disabled: true });
        return world;
      }

      const hold = (world: World, schedule: ScheduleRecord) =>
        fire(world, schedule, { nextFireAt: null, pauses: "tenant disabled", whileDisabled: true });

      test("holds what it pauses, until its status is named, and not what anything else pauses", async () => {
        const world = await openDisabled();
        const [once, other] = [await createOnce(world), await createOnce(world)];
        expect(once.held).toBe(false);
        await hold(world, once);
        await fire(world, other, { nextFireAt: null, pauses: "no agent" });
        expect(await read(world, other)).toMatchObject({ status: "paused", held: false });
        const update = async (changes: UpdateScheduleParams["changes"]) => {
          const { tenant, id, revision } = await read(world, once);
          return world.storage.schedules.update({ tenant, id, revision, changes });
        };
        expect(await update({ message: "another" })).toMatchObject(held);
        expect(await read(world, once)).toMatchObject(held);
        expect(await update({ status: "paused" })).toMatchObject({ status: "paused", held: false });
        expect(await update({ status: "active", nextFireAt: 5 })).toMatchObject({ held: false });
        await hold(world, once);
        expect(await read(world, once)).toMatchObject(held);
        expect(await update({ status: "active", nextFireAt: 5 })).toMatchObject({ held: false });
      });

      test("does nothing once that is enabled, or gone", async () => {
        const world = await openDisabled();
        const { storage, clock } = world;
        const [once, recurring] = [await createOnce(world), await create(world)];
        await storage.tenants.setDisabled({ id: TENANT, disabled: false });
        const pushed = {
          runs: [unfired("skipped", clock.now())],
          nextFireAt: clock.now() + HOUR,
          whileDisabled: true,
        };
        expect((await hold(world, once)).fired).toBe(false);
        expect((await fire(world, recurring, pushed)).fired).toBe(false);
        expect(await read(world, once)).toEqual(once);
        expect(await read(world, recurring)).toEqual(recurring);
        expect(await runsOf(world)).toEqual([]);
        const stranger = await create(world, { tenant: "unknown" });
        expect((await fire(world, stranger, pushed)).fired).toBe(false);
        await storage.tenants.setDisabled({ id: TENANT, disabled: true });
        expect((await fire(world, recurring, pushed)).fired).toBe(true);
        expect(await read(world, recurring)).toMatchObject({ status: "active", held: false });
      });

      test("holds nothing that is over", async () => {
        const world = await openDisabled();
        const once = await createOnce(world);
        await hold(world, once);
        await fire(world, once, { runs: [unfired("missed", world.clock.now())], nextFireAt: null });
        expect(await read(world, once)).toMatchObject({ status: "failed", held: false });
      });
    });

    test("that replaces ends the runs that go, in the same moment", async () => {
      const world = await open();
      const schedule = await create(world);
      const session = { key: "s", maxConcurrent: 1 };
      await fire(world, schedule, { runs: [running(world, schedule, { task: { id: "r1", session } })] });
      const held = only(await world.claim());
      world.clock.step(1);
      const { cancelled } = await fire(world, schedule, {
        runs: [running(world, schedule, { task: { id: "r2", session }, replaces: true })],
      });
      expect(cancelled).toMatchObject([{ id: "r1", token: held.token, lane: LANE, agent: AGENT }]);
      expect(await world.task("r1")).toMatchObject({ state: "cancelled", error: REPLACED });
      expect(await runsOf(world)).toMatchObject([
        { status: "running", taskId: "r2" },
        { status: "failed", taskId: "r1", reason: REPLACED, error: REPLACED, attempt: 1 },
      ]);
      expect(await read(world, schedule)).toMatchObject({
        openRuns: 1,
        lastStatus: "failed",
        status: "active",
      });
      expect((await world.finish(held, DONE)).finished).toEqual([]);
      expect(only(await world.claim()).task.id).toBe("r2");
      expect((await told(world)).map(({ kind }) => kind)).toEqual([
        "run.started",
        "run.failed",
        "run.started",
      ]);
    });

    test("is told to whoever waits for moments, notifications and work", async () => {
      const world = await open();
      const signals: StorageSignal["kind"][] = [];
      world.storage.subscribe(({ kind }) => signals.push(kind));
      const schedule = await create(world);
      await expect.poll(() => signals).toContain("schedules");
      signals.length = 0;
      await fire(world, schedule, { runs: [running(world, schedule)] });
      await expect.poll(() => signals).toContain("notifications");
      await expect.poll(() => signals).toContain("events");
    });
  });

  describe("a run", () => {
    test("ends with its task, and tells how", async () => {
      const world = await open();
      const schedule = await create(world);
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: 9_999 });
      const { token, task } = only(await world.claim());
      world.clock.step(7);
      const usage = { inputTokens: 10, outputTokens: 3, contextTokens: 13 };
      const finishes = [{ seq: task.seq, token, settlement: DONE, usage, summary: "all quiet" }];
      await world.storage.tasks.finishAndClaim({ node: NODE, finishes, progress: [], claims: [] });
      const now = world.clock.now();
      expect(await runsOf(world)).toMatchObject([
        {
          status: "succeeded",
          completedAt: now,
          resultSummary: "all quiet",
          error: null,
          inputTokens: 10,
          outputTokens: 3,
          attempt: 1,
        },
      ]);
      expect(await read(world, schedule)).toMatchObject({
        status: "active",
        nextFireAt: 9_999,
        lastStatus: "succeeded",
        lastError: null,
        openRuns: 0,
        revision: 3,
        updatedAt: schedule.updatedAt,
      });
      expect((await told(world)).at(-1)).toMatchObject({
        kind: "run.completed",
        at: now,
        run: { status: "succeeded", completedAt: now, resultSummary: "all quiet" },
      });
    });

    test("goes on while its task is tried again, and fails when that does", async () => {
      const world = await open();
      const schedule = await create(world);
      await fire(world, schedule, { runs: [running(world, schedule)] });
      await runOnce(world, { to: "delayed", error: "no luck", runAt: world.clock.now() + 5 });
      expect(await runsOf(world)).toMatchObject([{ status: "running", attempt: 1, completedAt: null }]);
      world.clock.step(5);
      await world.storage.tasks.promoteDue({ limit: 9 });
      await runOnce(world, FAILED);
      expect(await runsOf(world)).toMatchObject([
        { status: "failed", error: "no luck", reason: null, attempt: 2, resultSummary: null },
      ]);
      expect(await read(world, schedule)).toMatchObject({
        status: "active",
        lastStatus: "failed",
        lastError: "no luck",
      });
      expect((await told(world)).at(-1)).toMatchObject({ kind: "run.failed", run: { error: "no luck" } });
    });

    test.each([
      [
        "was cancelled",
        (world: World, id: string) => world.storage.tasks.cancel({ tenant: TENANT, ids: [id], error: null }),
        "cancelled",
        "cancelled",
      ],
      [
        "was overdue",
        (world: World) => {
          world.clock.step(100);
          return world.storage.tasks.expire({ limit: 9 });
        },
        "deadline exceeded while queued",
        null,
      ],
      [
        "was cleared from its lane",
        (world: World) =>
          world.storage.lanes.clear({ tenant: TENANT, name: LANE, error: "lane_cleared", limit: 9 }),
        "lane_cleared",
        "lane_cleared",
      ],
      [
        "was stopped in its session",
        (world: World) => world.storage.sessions.stop({ tenant: TENANT, key: "s", scope: "all", limit: 9 }),
        "stopped",
        "stopped",
      ],
    ])("fails when its task %s while it waited", async (_what, end, error, reason) => {
      const world = await open();
      const schedule = await create(world);
      const task = { id: "r1", session: { key: "s", maxConcurrent: 1 }, deadline: world.clock.now() + 50 };
      await fire(world, schedule, { runs: [running(world, schedule, { task })] });
      await end(world, "r1");
      expect(await runsOf(world)).toMatchObject([{ status: "failed", error, reason, attempt: 0 }]);
      expect(await read(world, schedule)).toMatchObject({ openRuns: 0, lastStatus: "failed" });
      expect(await world.storage.counters.recountAll()).toEqual([]);
    });

    test("fails with its node when it has no retries left", async () => {
      const world = await open();
      const schedule = await create(world);
      await fire(world, schedule, { runs: [running(world, schedule, { task: { maxRetriesIfLost: 0 } })] });
      await world.claim();
      await world.crash(NODE);
      await world.storage.tasks.rescue({ node: NODE, limit: 9 });
      expect(await runsOf(world)).toMatchObject([{ status: "failed", error: "worker lost", attempt: 1 }]);
    });

    test("is taken up again with its task", async () => {
      const world = await open();
      const schedule = await createOnce(world);
      await fire(world, schedule, {
        runs: [running(world, schedule, { task: { id: "r1" } })],
        nextFireAt: null,
      });
      await runOnce(world, FAILED);
      expect((await read(world, schedule)).status).toBe("failed");
      await world.storage.tasks.retry({ tenant: TENANT, id: "r1" });
      expect(await runsOf(world)).toMatchObject([{ status: "running", completedAt: null, error: null }]);
      expect(await read(world, schedule)).toMatchObject({ status: "active", openRuns: 1, nextFireAt: null });
      await runOnce(world, DONE, "at last");
      expect(await runsOf(world)).toMatchObject([
        { status: "succeeded", resultSummary: "at last", attempt: 2 },
      ]);
      expect(await read(world, schedule)).toMatchObject({ status: "completed", openRuns: 0, runCount: 1 });
      expect((await told(world)).map(({ kind }) => kind)).toEqual([
        "run.started",
        "run.failed",
        "run.started",
        "run.completed",
      ]);
    });

    test("is found by schedule, status and time, newest first, page by page", async () => {
      const world = await open();
      const schedule = await create(world);
      const other = await create(world);
      await create(world, { tenant: "zeta" });
      const begin = world.clock.now();
      await fire(world, schedule, { runs: [running(world, schedule, { dueAt: 1, firstDueAt: 1 })] });
      world.clock.step(10);
      await fire(world, other, { runs: [unfired("skipped", 2)] });
      world.clock.step(10);
      await fire(world, schedule, { runs: [running(world, schedule, { dueAt: 3, firstDueAt: 3 })] });
      const dueAts = async (params: Partial<ListRunsParams>) =>
        (await runsOf(world, params)).map(({ dueAt }) => dueAt);
      expect(await dueAts({})).toEqual([3, 2, 1]);
      expect(await dueAts({ schedule: schedule.id })).toEqual([3, 1]);
      expect(await dueAts({ status: "skipped" })).toEqual([2]);
      expect(await dueAts({ since: begin + 10 })).toEqual([3, 2]);
      expect(await dueAts({ since: begin + 10, status: "running", schedule: schedule.id })).toEqual([3]);
      await runOnce(world, DONE);
      expect(await dueAts({ since: begin + 20 })).toEqual([3, 1]);
      expect(await dueAts({ tenant: "zeta" })).toEqual([]);
      const first = await world.storage.schedules.listRuns({ tenant: TENANT, limit: 2 });
      expect(first.runs.map(({ dueAt }) => dueAt)).toEqual([3, 2]);
      const cursor = first.nextCursor ?? 0;
      const rest = await world.storage.schedules.listRuns({ tenant: TENANT, limit: 2, cursor });
      expect([rest.runs.map(({ dueAt }) => dueAt), rest.nextCursor]).toEqual([[1], null]);
    });

    test("goes when it has been over for long enough, and so do the notifications", async () => {
      const world = await open();
      const schedule = await create(world);
      await fire(world, schedule, { runs: [unfired("skipped", 1), running(world, schedule)] });
      world.clock.step(100);
      await fire(world, schedule, { runs: [unfired("skipped", 2)] });
      let more = true;
      while (more) ({ more } = await world.storage.schedules.prune({ retentionMs: 50, limit: 1 }));
      expect((await runsOf(world)).map(({ status }) => status)).toEqual(["skipped", "running"]);
      expect((await told(world)).map(({ kind }) => kind)).toEqual(["run.skipped"]);
      await world.storage.schedules.prune({ retentionMs: -1, limit: 100 });
      const { oldest, newest } = await world.storage.notifications.range();
      expect(oldest).toBe(newest + 1);
      await fire(world, schedule, { runs: [unfired("skipped", 3)] });
      expect(only(await told(world)).seq).toBeGreaterThan(newest);
    });

    test("takes numbers that were never used, whatever was deleted", async () => {
      const world = await open();
      const first = await create(world);
      const { runs } = await fire(world, first, { runs: [unfired("skipped", 1)] });
      await world.storage.schedules.delete(first);
      const second = await create(world);
      const again = await fire(world, second, { runs: [unfired("skipped", 1)] });
      expect(second.id).toBeGreaterThan(first.id);
      expect(only(again.runs).id).toBeGreaterThan(only(runs).id);
    });
  });

  describe("a schedule that is due once", () => {
    test.each([
      [DONE, "completed", "succeeded"],
      [FAILED, "failed", "failed"],
    ] as const)("is over when its run is: %o", async (settlement, status, lastStatus) => {
      const world = await open();
      const schedule = await createOnce(world);
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: null });
      expect(await read(world, schedule)).toMatchObject({ status: "active", nextFireAt: null });
      world.clock.step(5);
      await runOnce(world, settlement);
      expect(await read(world, schedule)).toMatchObject({ status, lastStatus, updatedAt: world.clock.now() });
    });

    test("is not over while it has a moment to come or another run goes", async () => {
      const world = await open();
      const schedule = await createOnce(world);
      await fire(world, schedule, { runs: [running(world, schedule, { forced: true })] });
      await runOnce(world, DONE);
      expect((await read(world, schedule)).status).toBe("active");
      await fire(world, schedule, { runs: [running(world, schedule)], nextFireAt: null });
      await fire(world, schedule, { runs: [running(world, schedule, { forced: true })], nextFireAt: null });
      await runOnce(world, DONE);
      expect((await read(world, schedule)).status).toBe("active");
    });

    test("stays paused before its moment whatever is run out of turn, and is over once that has come", async () => {
      const world = await open();
      const rule = { kind: "once", atMs: world.clock.now() + 5, phrase: "soon", tz: "UTC" } as const;
      const schedule = await create(world, { definition: { rule, deleteAfterRun: true } });
      const pause = async () => {
        const { revision } = await read(world, schedule);
        await world.storage.schedules.update({ ...schedule, revision, changes: { status: "paused" } });
      };
      await pause();
      await fire(world, schedule, { runs: [running(world, schedule, { forced: true })] });
      await runOnce(world, DONE);
      expect(await read(world, schedule)).toMatchObject({ status: "paused", openRuns: 0 });
      world.clock.step(5);
      const { revision } = await read(world, schedule);
      const changes = { status: "active", nextFireAt: rule.atMs } as const;
      await world.storage.schedules.update({ ...schedule, revision, changes });
      await fire(world, schedule, {
        runs: [running(world, schedule, { task: { id: "r" } })],
        nextFireAt: null,
      });
      await pause();
      await runOnce(world, FAILED);
      expect(await read(world, schedule)).toMatchObject({ status: "failed", openRuns: 0 });
      await world.storage.tasks.retry({ tenant: TENANT, id: "r" });
      await pause();
      await runOnce(world, DONE);
      expect(await world.storage.schedules.get(schedule)).toBeNull();
    });

    test("goes after it has succeeded, if that was asked for", async () => {
      const world = await open();
      const schedule = await createOnce(world, { deleteAfterRun: true });
      await fire(world, schedule, {
        runs: [running(world, schedule, { task: { id: "r1" } })],
        nextFireAt: null,
      });
      await runOnce(world, FAILED);
      expect((await read(world, schedule)).status).toBe("failed");
      await world.storage.tasks.retry({ tenant: TENANT, id: "r1" });
      await runOnce(world, DONE, "done");
      expect(await world.storage.schedules.get(schedule)).toBeNull();
      expect(await runsOf(world)).toEqual([]);
      expect((await told(world)).at(-1)).toMatchObject({
        kind: "run.completed",
        run: { resultSummary: "done" },
      });
    });

    test("has failed when it was missed", async () => {
      const world = await open();
      const schedule = await createOnce(world);
      await fire(world, schedule, { runs: [unfired("missed", world.clock.now())], nextFireAt: null });
      expect(await read(world, schedule)).toMatchObject({
        status: "failed",
        lastStatus: "missed",
        lastError: "was missed",
        runCount: 0,
      });
    });

    test("ends as the run does that was going when its moment was skipped", async () => {
      const world = await open();
      const schedule = await createOnce(world);
      await fire(world, schedule, { runs: [running(world, schedule, { forced: true })] });
      await fire(world, schedule, { runs: [unfired("skipped", world.clock.now())], nextFireAt: null });
      expect((await read(world, schedule)).status).toBe("active");
      await runOnce(world, DONE);
      expect((await read(world, schedule)).status).toBe("completed");
    });
  });
}
