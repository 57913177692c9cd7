import { describe, expect, test } from "vitest";
import {
  allEvents,
  chance,
  done,
  drain,
  type Node,
  openNodes,
  prepareDatabases,
  settle,
} from "../../../../test/postgres/several-nodes.ts";
import { newDefinition } from "../../conformance/schedules/schedule-world.ts";
import { LANE, newTask, TENANT } from "../../conformance/world.ts";
import type {
  ClaimedTask,
  Fire,
  NewRun,
  RunRecord,
  ScheduleDefinition,
  ScheduleRecord,
  Storage,
  StorageSignal,
  StoredNotification,
} from "../../storage.ts";

prepareDatabases();

/** A schedule whose first due time is the number 1. */
function create(storage: Storage, definition: Partial<ScheduleDefinition> = {}): Promise<ScheduleRecord> {
  return storage.schedules.create({
    tenant: TENANT,
    definition: newDefinition(definition),
    status: "active",
    nextFireAt: 1,
    source: null,
  });
}

function running(
  { id, agent, nextFireAt }: ScheduleRecord,
  given: Partial<Omit<NewRun & { status: "running" }, "status" | "task">> = {},
): NewRun {
  const dueAt = nextFireAt ?? 0;
  return {
    status: "running",
    dueAt,
    firstDueAt: dueAt,
    moments: 1,
    forced: false,
    requestId: `run of ${id}`,
    replaces: false,
    task: newTask({
      agent,
      origin: "run",
      schedule: id,
      session: { key: `schedule:${id}`, maxConcurrent: 1 },
    }),
    ...given,
  };
}

/** Fires the due time of a schedule; its next one is the next number. */
function toFire(
  schedule: ScheduleRecord,
  { last = Number.MAX_SAFE_INTEGER, ...given }: FireOptions = {},
): Fire {
  const { tenant, id, revision, nextFireAt } = schedule;
  const next = (nextFireAt ?? 0) + 1;
  return {
    tenant,
    id,
    revision,
    runs: [running(schedule)],
    nextFireAt: next > last ? null : next,
    pauses: null,
    ...given,
  };
}

type FireOptions = Partial<Fire> & { last?: number };

async function allRuns(storage: Storage): Promise<RunRecord[]> {
  return (await storage.schedules.listRuns({ tenant: TENANT, limit: 100_000 })).runs;
}

async function allNotifications(storage: Storage): Promise<StoredNotification[]> {
  return (await storage.notifications.read({ after: 0, limit: 100_000 })).notifications;
}

/** Fires a schedule as it is by now, however often one of its runs is ended in between. */
async function fireNow(storage: Storage, id: number): Promise<void> {
  for (let fired = false; !fired; ) {
    const schedule = await storage.schedules.get({ tenant: TENANT, id });
    if (schedule === null) throw new Error(`There is no schedule ${id}.`);
    fired = (await storage.schedules.fire({ fires: [toFire(schedule)] })).some((each) => each.fired);
  }
}

describe("nodes that fire the same schedules at once", () => {
  test("fire each moment once, and make one task of it", async () => {
    const { nodes, first } = await openNodes(4);
    const [schedules, moments] = [40, 6];
    for (let count = 0; count < schedules; count += 1) await create(first, { agent: `agent-${count % 7}` });
    const fired = await Promise.all(nodes.map(({ storage }) => fireAll(storage, moments)));

    expect(fired.reduce((sum, count) => sum + count)).toBe(schedules * moments);
    const runs = await allRuns(first);
    const bySchedule = Map.groupBy(runs, ({ scheduleId }) => scheduleId);
    expect(bySchedule.size).toBe(schedules);
    for (const own of bySchedule.values()) {
      expect(own.map(({ dueAt }) => dueAt)).toEqual([6, 5, 4, 3, 2, 1]);
    }
    expect(new Set(runs.map(({ taskId }) => taskId)).size).toBe(runs.length);
    expect(await first.tasks.counts({ tenant: TENANT })).toEqual({ queued: runs.length });
    expect(await first.schedules.status({ tenant: TENANT })).toEqual({
      // Nothing more was due: the last fire has completed them.
      active: 0,
      paused: 0,
      running: runs.length,
      nextFireAt: null,
    });
    expect(await first.counters.recountAll()).toEqual([]);

    await drain(nodes[0] as Node, [LANE], 20);
    expect((await first.schedules.status({ tenant: TENANT })).running).toBe(0);
    expect(new Set((await allRuns(first)).map(({ status }) => status))).toEqual(new Set(["succeeded"]));
    // A session of its own keeps the runs of each in order.
    const ended = (await allEvents(first)).filter(({ type }) => type === "task.completed");
    const taskIds = new Map(runs.map(({ taskId, dueAt }) => [taskId, dueAt]));
    for (const own of Map.groupBy(ended, ({ schedule }) => schedule).values()) {
      expect(own.map(({ taskId }) => taskIds.get(taskId))).toEqual([1, 2, 3, 4, 5, 6]);
    }
  });

  /** Fires all that is due, as a node does. Returns how many runs this node made. */
  async function fireAll(storage: Storage, last: number): Promise<number> {
    let count = 0;
    for (;;) {
      const due = await storage.schedules.due({ limit: 25 });
      if (due.length === 0) return count;
      const fired = await storage.schedules.fire({
        fires: due.map((schedule) => toFire(schedule, { last })),
      });
      count += fired.filter((each) => each.fired).length;
    }
  }
});

describe("fires, changes, deletions and ends on four connections at once", () => {
  test("reach no caller as an error, and leave every counter right and every run with notifications up to its end", async () => {
    const { nodes, first } = await openNodes(4);
    const made: number[] = [];
    await Promise.all(nodes.map((node, index) => doAnything(node, chance(index + 1), made)));
    expect(await first.counters.recountAll()).toEqual([]);
    await finishEverything(nodes[0] as Node);
    expect(await first.counters.recountAll()).toEqual([]);
    expect((await first.schedules.status({ tenant: TENANT })).running).toBe(0);

    const runs = await allRuns(first);
    expect(runs.filter(({ status }) => status === "running")).toEqual([]);
    const notifications = await allNotifications(first);
    const kinds = new Set(notifications.map(({ kind }) => kind));
    expect([...kinds]).toEqual(
      expect.arrayContaining([
        "run.started",
        "run.completed",
        "run.failed",
        "run.missed",
        "schedule.canceled",
      ]),
    );
    for (const ofRun of Map.groupBy(notifications, ({ run }) => run?.id).values()) {
      if (ofRun[0]?.run?.status !== "running") continue;
      // It starts and ends, and starts again only after that.
      const starts = ofRun.map(({ kind }) => kind === "run.started");
      expect(starts).toEqual(starts.map((_, index) => index % 2 === 0));
      expect(starts.length % 2).toBe(0);
    }
  });

  const ROUNDS = 100;

  async function doAnything(
    { storage, node }: Node,
    random: (below: number) => number,
    made: number[],
  ): Promise<void> {
    const { schedules, tasks } = storage;
    const one = async () => {
      const id = made[random(made.length)] ?? 0;
      return schedules.get({ tenant: TENANT, id });
    };
    let held: readonly ClaimedTask[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      switch (random(9)) {
        case 0:
          if (made.length < 12) made.push((await create(storage, { agent: `agent-${random(3)}` })).id);
          break;
        case 1:
        case 2: {
          const due = await schedules.due({ limit: 5 });
          await schedules.fire({ fires: due.map((schedule) => toFire(schedule, anyFire(schedule, random))) });
          break;
        }
        case 3: {
          const schedule = await one();
          if (schedule === null) break;
          const status = random(3) === 0 ? "paused" : "active";
          const nextFireAt = (schedule.lastDueAt ?? 0) + 1;
          await schedules.update({ ...schedule, changes: { status, nextFireAt } });
          break;
        }
        case 4:
          if (random(3) === 0) await schedules.delete({ tenant: TENANT, id: made[random(made.length)] ?? 0 });
          break;
        case 5: {
          const { tasks: some } = await tasks.list({ tenant: TENANT, limit: 20 });
          const id = some[random(some.length)]?.id ?? "none";
          if (random(2) === 0) await tasks.cancel({ tenant: TENANT, ids: [id], error: null });
          else await tasks.retry({ tenant: TENANT, id });
          break;
        }
        default: {
          const ends = [done, { to: "failed", error: "no" }, { to: "queued", error: "again" }] as const;
          const finishes = settle(held).map((finish) => ({
            ...finish,
            settlement: ends[random(3)] ?? done,
            summary: "seen",
          }));
          const claims = [{ lane: LANE, limit: random(5) }];
          held = (await tasks.finishAndClaim({ node, finishes, progress: [], claims })).claimed;
        }
      }
    }
    await tasks.finishAndClaim({ node, finishes: settle(held), progress: [], claims: [] });
  }

  function anyFire(schedule: ScheduleRecord, random: (below: number) => number): FireOptions {
    const { nextFireAt: dueAt } = schedule;
    if (random(4) > 0 || dueAt === null) {
      return { runs: [running(schedule, { replaces: random(2) === 0, forced: random(5) === 0 })] };
    }
    const missed = {
      status: "missed",
      reason: "down",
      firstDueAt: dueAt,
      dueAt,
      moments: 1,
      forced: false,
    } as const;
    return { runs: [missed, { ...missed, firstDueAt: dueAt + 1, dueAt: dueAt + 1 }], nextFireAt: dueAt + 2 };
  }

  /** Runs all there is; what waits for nothing but a slot comes to its end. */
  async function finishEverything(node: Node): Promise<void> {
    await drain(node, [LANE], 20);
    expect(Object.keys(await node.storage.tasks.counts({ tenant: TENANT })).sort()).toEqual([
      "cancelled",
      "done",
      "failed",
    ]);
  }
});

describe("readers of notifications", () => {
  test("miss nothing while four nodes write, and see at once every write that has returned", async () => {
    const { nodes, first } = await openNodes(6);
    const readers = nodes.slice(4);
    let writing = true;
    const seen = readers.map(async ({ storage }) => {
      const mine: StoredNotification[] = [];
      for (let wasWriting = true; wasWriting; ) {
        wasWriting = writing;
        for (let more = true; more; ) {
          const page = await storage.notifications.read({ after: mine.at(-1)?.seq ?? 0, limit: 7 });
          mine.push(...page.notifications);
          more = page.more;
        }
      }
      return mine;
    });
    await Promise.all(
      nodes.slice(0, 4).map(async (node, index) => {
        const { id } = await create(node.storage);
        for (let round = 0; round < 15; round += 1) {
          const { newest } = await node.storage.notifications.range();
          await fireNow(node.storage, id);
          const reader = readers[index % 2] as Node;
          const { notifications } = await reader.storage.notifications.read({ after: newest, limit: 1_000 });
          expect(notifications.map(({ scheduleId }) => scheduleId)).toContain(id);
          await drain(node, [LANE], 3);
        }
      }),
    );
    writing = false;
    const log = await allNotifications(first);
    expect(log).toHaveLength(4 * 15 * 2);
    for (const mine of await Promise.all(seen)) expect(mine).toEqual(log);
  });
});

describe("other nodes", () => {
  /** The signals that a node gets. */
  function listen({ storage }: Node): StorageSignal["kind"][] {
    const heard: StorageSignal["kind"][] = [];
    storage.subscribe(({ kind }) => heard.push(kind));
    return heard;
  }

  test("get signals of nearer due times and of notifications, whatever has ended a run", async () => {
    const { nodes, first } = await openNodes(2);
    const heard = listen(nodes[1] as Node);
    const schedule = await create(first);
    await expect.poll(() => heard).toContain("schedules");
    await first.schedules.fire({ fires: [toFire(schedule)] });
    await expect.poll(() => heard).toContain("notifications");
    await expect.poll(() => heard).toContain("work");

    heard.length = 0;
    await drain(nodes[0] as Node, [LANE], 1);
    await expect.poll(() => heard).toContain("notifications");

    await fireNow(first, schedule.id);
    await expect.poll(() => heard).toContain("schedules");
    heard.length = 0;
    await first.lanes.clear({ tenant: TENANT, name: LANE, error: "lane_cleared", limit: 9 });
    await expect.poll(() => heard).toContain("notifications");
    expect((await allNotifications(first)).map(({ kind }) => kind)).toEqual([
      "run.started",
      "run.completed",
      "run.started",
      "run.failed",
    ]);
  });
});

test("the message for an agent comes back as it was given, and other text that a database cannot hold spoils nothing", async () => {
  const { nodes, first } = await openNodes(1);
  const tricky = 'before \u0000 \ud83d \udc69 after \\u0000 " \\';
  const shown = /^before . . . after/s;
  const made = await create(first, {
    name: tricky,
    work: { kind: "message", message: tricky },
    metadata: { tricky },
    lane: tricky,
    phrase: tricky,
    conversationId: tricky,
    sessionKey: tricky,
  });
  const schedule = await first.schedules.update({
    ...made,
    changes: { work: { kind: "instruction", instruction: `${tricky}!` }, name: tricky },
  });
  if (schedule === null) throw new Error("Nothing else has changed it.");
  expect(schedule).toMatchObject({
    work: { kind: "instruction", instruction: `${tricky}!` },
    metadata: { tricky },
    name: expect.stringMatching(shown),
  });
  const missed = {
    status: "missed",
    reason: tricky,
    dueAt: 1,
    firstDueAt: 1,
    moments: 1,
    forced: false,
  } as const;
  const spec = { ...newTask().spec, work: { kind: "message", message: tricky } } as const;
  const started = running(schedule, { requestId: tricky, forced: true });
  const runs = [
    missed,
    { ...started, task: newTask({ origin: "run", schedule: schedule.id, spec }) },
  ] as NewRun[];
  await first.schedules.fire({ fires: [toFire(schedule, { runs })] });
  const step = { node: (nodes[0] as Node).node, progress: [] };
  const { claimed } = await first.tasks.finishAndClaim({
    ...step,
    finishes: [],
    claims: [{ lane: LANE, limit: 1 }],
  });
  expect(claimed[0]?.task.spec).toEqual(spec);
  const finishes = settle(claimed).map((finish) => ({ ...finish, summary: tricky }));
  await first.tasks.finishAndClaim({ ...step, finishes, claims: [] });
  expect(await allRuns(first)).toMatchObject([
    {
      status: "succeeded",
      resultSummary: expect.stringMatching(shown),
      requestId: expect.stringMatching(shown),
    },
    { status: "missed", reason: expect.stringMatching(shown) },
  ]);
  expect((await allNotifications(first)).at(-1)?.run?.resultSummary).toMatch(shown);
});
