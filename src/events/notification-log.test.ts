import { describe, expect, onTestFinished, test } from "vitest";
import { RecordingLog } from "../../test/support/recording-log.ts";
import { type Meddler, meddle, openMemory } from "../../test/support/storages.ts";
import { notification as schema } from "../api/notifications.ts";
import { NOTIFICATION_KINDS, type Notification } from "../model/notification.ts";
import { Redactor } from "../model/redactor.ts";
import { RUN_RETRY_POLICY } from "../schedules/retry-input.ts";
import type { StoredScheduleNotification, StoredWorkerNotification } from "../storage/storage.ts";
import { ManualClock, settle } from "../testing/manual-clock.ts";
import type { LogReaderOptions } from "./log-reader.ts";
import { NotificationLog, NotificationReader } from "./notification-log.ts";
import { toNotification } from "./to-notification.ts";

const AT = Date.UTC(2026, 0, 1, 12, 0, 0, 900);
const SECONDS = Math.floor(AT / 1_000);

async function makeLog(meddler: Meddler = {}) {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  let reads = 0;
  const log = new NotificationLog({
    redactor: () => new Redactor([]),
    clock,
    log: new RecordingLog(),
    storage: meddle(storage, {
      ...meddler,
      before: (call) => {
        if (call.operation.startsWith("notifications.")) reads += 1;
        return meddler.before?.(call);
      },
    }),
  });
  storage.subscribe(({ kind }) => kind === "notifications" && log.wake());
  onTestFinished(() => log.close());
  /** Publishes that a schedule of the tenant was canceled: creates it and deletes it. */
  const publish = async (tenant = "default"): Promise<number> => {
    const { id } = await storage.schedules.create({
      tenant,
      status: "paused",
      nextFireAt: null,
      source: null,
      definition: {
        name: null,
        agent: "index",
        work: { kind: "message", message: "look" },
        phrase: "every hour",
        rule: { kind: "every", everyMs: 3_600_000, tz: "UTC" },
        anchorAt: clock.now(),
        conversationId: null,
        sessionKey: null,
        postToSession: false,
        deleteAfterRun: false,
        retryPolicy: RUN_RETRY_POLICY,
        overlap: "skip",
        catchUp: "one",
        usefulForMs: null,
        timeoutMs: null,
        lane: null,
        priority: null,
        metadata: null,
        callbackUrl: null,
        maxRuns: null,
        untilAt: null,
        pauseAfterFailures: null,
      },
    });
    await storage.schedules.delete({ tenant, id });
    return id;
  };
  const reader = (options: LogReaderOptions = {}, tenant = "default") =>
    new NotificationReader(log, { tenant }, options);
  return { clock, storage, log, publish, reader, reads: () => reads };
}

/** A reader that records notifications and gaps in the order in which they come. */
function note(reader: (options: LogReaderOptions) => NotificationReader): unknown[] {
  const seen: unknown[] = [];
  const notifications = reader({ onGap: (gap) => seen.push(gap) });
  void (async () => {
    for await (const { task_id } of notifications) seen.push(task_id);
  })();
  return seen;
}

async function take(reader: AsyncIterable<Notification>, count: number): Promise<number[]> {
  const ids: number[] = [];
  for await (const { task_id = 0 } of reader) if (ids.push(task_id) === count) break;
  return ids;
}

describe("a reader of notifications", () => {
  test("gets a gap when the database was restored, and goes on", async () => {
    const [lost, restored] = [await makeLog(), await makeLog()];
    const isRestored = { value: false };
    const current = () => (isRestored.value ? restored : lost).storage.notifications;
    const notifications = new Proxy(lost.storage.notifications, {
      get: (_group, name) => Reflect.get(current(), name),
    });
    const log = new NotificationLog({
      redactor: () => new Redactor([]),
      clock: lost.clock,
      log: new RecordingLog(),
      storage: { ...lost.storage, notifications },
    });
    onTestFinished(() => log.close());
    const seen = note((options) => new NotificationReader(log, { tenant: "default" }, options));
    await settle();
    const ids = [await lost.publish(), await lost.publish()];
    log.wake();
    await settle();
    isRestored.value = true;
    await restored.clock.advance(1_000);
    const [again] = [await restored.publish(), await restored.publish(), await restored.publish()];
    log.wake();
    await settle();
    expect(seen.slice(0, 4)).toEqual([...ids, { after: 2, oldest: 1 }, again]);
  });

  test("gets no gap because another tenant and all of its are gone", async () => {
    const { storage, log, publish, reader, clock } = await makeLog();
    const limits = {
      maxQueued: null,
      maxInflight: null,
      maxSchedules: null,
      maxSessions: null,
      maxStreams: null,
      maxAgents: null,
      maxStoredBytes: null,
    };
    await storage.tenants.create({ id: "ten_gone", name: "gone", limits });
    const seen = note((options) => reader(options));
    await settle();
    const mine = await publish();
    await publish("ten_gone");
    await settle();
    for (let slices = 0; slices < 20; slices += 1) {
      await storage.tenants.delete({ id: "ten_gone", limit: 100 });
    }
    expect(await storage.notifications.mark({ seq: 2 })).toBeNull();
    await clock.advance(10_000);
    expect([seen, log.position]).toEqual([[mine], 2]);
  });

  test("gets what concerns its tenant, live and from before, and nothing else", async () => {
    const { publish, reader } = await makeLog();
    const before = [await publish(), await publish("other"), await publish()];
    const [ours, theirs] = [reader({ after: 0 }), reader({ after: 0 }, "other")];
    expect(await take(theirs, 1)).toEqual([before[1]]);
    const live = reader();
    await live.ready;
    const after = [await publish("other"), await publish()];
    expect(await take(ours, 3)).toEqual([before[0], before[2], after[1]]);
    expect(await take(live, 1)).toEqual([after[1]]);
  });

  test("costs the storage nothing once it has caught up, however many there are", async () => {
    const { publish, reader, reads } = await makeLog();
    for (let n = 0; n < 3; n++) await publish();
    const readers = Array.from({ length: 200 }, () => reader({ after: 1 }));
    for (const each of readers) await each.next();
    await Promise.all(readers.map((each) => each.next()));
    const waiting = readers.map((each) => each.next());
    await settle();
    const before = reads();
    const id = await publish();
    for (const { value } of await Promise.all(waiting)) expect(value?.task_id).toBe(id);
    await settle();
    // Only the reader that follows for all listeners has read: the entries, and that there are no more.
    expect(reads() - before).toBeLessThanOrEqual(3);
    await Promise.all(readers.map((each) => each.return()));
  });

  test("learns once that more waits for it than is kept, and misses nothing", async () => {
    const { publish, reader } = await makeLog();
    let behind = 0;
    const slow = reader({
      onBehind: () => {
        behind += 1;
      },
    });
    await slow.ready;
    // Each takes about half a kibibyte.
    for (let n = 0; n < 2_100; n++) await publish();
    await settle();
    expect(behind).toBe(1);
    expect(await take(slow, 2_100)).toEqual(Array.from({ length: 2_100 }, (_, index) => index + 1));
  });
});

const RUN = {
  id: 42,
  dueAt: AT - 1_000,
  moments: 2,
  reason: null,
  startedAt: AT,
  completedAt: null,
  resultSummary: null,
  error: null,
};

describe("a notification", () => {
  const stored = {
    seq: 7,
    at: AT,
    tenant: "default",
    scheduleId: 17,
    agent: "research",
    reason: null,
  } as const;
  const common = { id: 7, task_id: 17, agent_id: "research", timestamp: SECONDS };
  const ran = { run_id: 42, due_at: SECONDS - 1, moments: 2 };

  type Said = Pick<StoredScheduleNotification, "kind" | "run"> & { readonly reason?: string };
  const CASES: readonly (readonly [Said, object])[] = [
    [
      { kind: "run.started", run: { ...RUN, status: "running" } },
      { ...ran, status: "running", started_at: SECONDS, completed_at: 0 },
    ],
    [
      {
        kind: "run.completed",
        run: { ...RUN, status: "succeeded", completedAt: AT + 5_000, resultSummary: "x" },
      },
      { ...ran, status: "succeeded", started_at: SECONDS, completed_at: SECONDS + 5, result_summary: "x" },
    ],
    [
      {
        kind: "run.failed",
        run: { ...RUN, status: "failed", completedAt: AT, error: "cancelled", reason: "replaced" },
      },
      {
        ...ran,
        status: "failed",
        started_at: SECONDS,
        completed_at: SECONDS,
        error_message: "cancelled",
        reason: "replaced",
      },
    ],
    [
      {
        kind: "run.skipped",
        run: { ...RUN, status: "skipped", startedAt: null, completedAt: AT, reason: "busy" },
      },
      { ...ran, status: "skipped", started_at: 0, completed_at: SECONDS, reason: "busy" },
    ],
    [
      {
        kind: "run.missed",
        run: { ...RUN, status: "missed", startedAt: null, completedAt: AT, reason: "down" },
      },
      { ...ran, status: "missed", started_at: 0, completed_at: SECONDS, reason: "down" },
    ],
    [
      { kind: "schedule.paused", run: null, reason: "no agent" },
      { status: "paused", reason: "no agent" },
    ],
    [{ kind: "schedule.canceled", run: null }, { status: "canceled" }],
  ];

  test.each(CASES.map((each) => [each[0].kind, ...each] as const))(
    "%s says what there is to say, as the schema has it",
    (kind, said, expected) => {
      const shown = toNotification({ ...stored, ...said }, new Redactor([]));
      expect(shown).toEqual({ ...common, kind, ...expected });
      const { id: _id, ...data } = shown;
      expect(schema.parse(data)).toEqual(data);
    },
  );

  const worker = { id: "wrk_1", name: "py-1", agents: ["py"], slots: 4, attempts: null } as const;
  type SaidOfWorker = Pick<StoredWorkerNotification, "kind" | "worker" | "reason">;
  const ofWorker = { worker_id: "wrk_1", name: "py-1", agents: ["py"], slots: 4 };
  const WORKER_CASES: readonly (readonly [SaidOfWorker, object])[] = [
    [{ kind: "worker.registered", worker, reason: null }, ofWorker],
    [
      { kind: "worker.lost", worker: { ...worker, attempts: 0 }, reason: "silent" },
      { ...ofWorker, attempts: 0, reason: "silent" },
    ],
  ];

  test.each(WORKER_CASES.map((each) => [each[0].kind, ...each] as const))(
    "%s has the fields of a worker, and none of a schedule",
    (kind, said, expected) => {
      const shown = toNotification({ seq: 7, at: AT, tenant: "default", ...said }, new Redactor([]));
      expect(shown).toStrictEqual({ id: 7, kind, ...expected, timestamp: SECONDS });
      const { id: _id, ...data } = shown;
      expect(schema.parse(data)).toEqual(data);
    },
  );

  test("is of one of these kinds", () => {
    const kinds = [...CASES, ...WORKER_CASES].map(([{ kind }]) => kind);
    expect(kinds).toEqual([...NOTIFICATION_KINDS]);
  });
});
