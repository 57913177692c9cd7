import { describe, expect, test } from "vitest";
import { SILENT_FOR, type StoredNotification, WORKER_BACK, WORKER_NOTIFICATIONS_MAX } from "../../storage.ts";
import { create, readNotifications } from "../schedules/schedule-world.ts";
import { AGENT, type OpenWorld, TENANT, type World } from "../world.ts";
import { loseWorker, newPoll, openForWorkers, registerWorker } from "./workers.ts";

const INSTANCE = "8a0b7e0e-0000-4000-8000-000000000005";

/** A tenant without limits, which can be deleted. */
const LIMITS = {
  ...{ maxQueued: null, maxInflight: null, maxSchedules: null, maxSessions: null },
  ...{ maxStreams: null, maxAgents: null, maxStoredBytes: null },
};

function expected(
  world: World,
  kind: StoredNotification["kind"],
  id: string,
  fields: { readonly attempts?: number; readonly reason?: string; readonly slots?: number } = {},
) {
  const { attempts = null, reason = null, slots = 10 } = fields;
  return {
    seq: expect.any(Number),
    at: world.clock.now(),
    tenant: TENANT,
    kind,
    worker: { id, name: "py", agents: [AGENT], slots, attempts },
    reason,
  };
}

export function describeWorkerNotifications(openWorld: OpenWorld): void {
  describe("notifications about workers", () => {
    test("a worker that registers is one, and what it says again is none", async () => {
      const world = await openForWorkers(openWorld);
      const { promise: signalled, resolve } = Promise.withResolvers<void>();
      world.storage.subscribe(({ kind }) => kind === "notifications" && resolve());
      const id = await registerWorker(world, { instance: INSTANCE });
      expect(await readNotifications(world)).toEqual([expected(world, "worker.registered", id)]);
      await signalled;
      await registerWorker(world, { instance: INSTANCE, slots: 3 });
      await world.storage.workers.renew({ signs: [{ worker: id, polls: true }] });
      expect(await readNotifications(world)).toHaveLength(1);
    });

    test("a worker that is lost is one, with the number of its attempts, and no second time", async () => {
      const world = await openForWorkers(openWorld);
      const id = await registerWorker(world);
      await world.submit({ id: "a" }, { id: "b" });
      await world.storage.workers.exchange({ finishes: [], progress: [], polls: [newPoll(id)] });
      world.clock.step(15_000);
      await loseWorker(world, id);
      const lost = expected(world, "worker.lost", id, { attempts: 2, reason: `${SILENT_FOR}15000 ms` });
      expect((await readNotifications(world)).slice(1)).toEqual([lost]);
      await loseWorker(world, id);
      await world.storage.workers.markLost({ worker: id, beat: 0 });
      await world.storage.workers.markLost({ worker: "unknown", beat: 0 });
      expect(await readNotifications(world)).toHaveLength(2);
    });

    test("a lost worker that registers again, or gives a sign of life, is back", async () => {
      const world = await openForWorkers(openWorld);
      const id = await registerWorker(world, { instance: INSTANCE });
      await loseWorker(world, id);
      world.clock.step(1_000);
      expect(await registerWorker(world, { instance: INSTANCE, slots: 3 })).toBe(id);
      const back = expected(world, "worker.registered", id, { slots: 3, reason: WORKER_BACK });
      expect((await readNotifications(world)).slice(2)).toEqual([back]);
      await loseWorker(world, id);
      await world.storage.workers.renew({
        signs: [
          { worker: id, polls: true },
          { worker: id, polls: false },
        ],
      });
      expect((await readNotifications(world)).slice(4)).toEqual([back]);
    });

    test("a worker that is removed is none, and registers as a new one after that", async () => {
      const world = await openForWorkers(openWorld);
      const id = await registerWorker(world, { instance: INSTANCE });
      await world.storage.workers.remove({ tenant: TENANT, id });
      expect(await readNotifications(world)).toHaveLength(1);
      const again = await registerWorker(world, { instance: INSTANCE });
      expect((await readNotifications(world)).slice(1)).toEqual([
        expected(world, "worker.registered", again),
      ]);
    });

    test("a draining worker that falls silent has left, and is lost only if it holds attempts", async () => {
      const world = await openForWorkers(openWorld);
      const { workers } = world.storage;
      const [idle, busy] = [await registerWorker(world), await registerWorker(world)];
      await world.submit({ id: "a" });
      await workers.exchange({ finishes: [], progress: [], polls: [newPoll(busy)] });
      for (const id of [idle, busy]) {
        await workers.drain({ tenant: TENANT, id });
        expect(await loseWorker(world, id)).toEqual([AGENT]);
      }
      expect((await readNotifications(world)).slice(2)).toEqual([
        expected(world, "worker.lost", busy, { attempts: 1, reason: `${SILENT_FOR}15000 ms` }),
      ]);
    });

    test("they are those of a tenant, and of no agent", async () => {
      const world = await openForWorkers(openWorld);
      const { notifications, schedules } = world.storage;
      const own = await registerWorker(world);
      const other = await registerWorker(world, { tenant: "other" });
      const { id, revision } = await create(world);
      await schedules.update({ tenant: TENANT, id, revision, changes: { status: "paused" } });
      const read = async (scope: { tenant?: string; agent?: string }) => {
        const page = await notifications.read({ after: 0, limit: 10, ...scope });
        return page.notifications.map((each) => each.worker?.id ?? each.kind);
      };
      expect(await read({})).toEqual([own, other, "schedule.paused"]);
      expect(await read({ tenant: TENANT })).toEqual([own, "schedule.paused"]);
      expect(await read({ tenant: "other" })).toEqual([other]);
      expect(await read({ tenant: TENANT, agent: AGENT })).toEqual(["schedule.paused"]);
      expect(await read({ tenant: "other", agent: AGENT })).toEqual([]);
    });

    test("they are deleted with others that are old, and with their tenant", async () => {
      const world = await openForWorkers(openWorld);
      const { notifications, schedules, tenants } = world.storage;
      await tenants.create({ id: TENANT, name: TENANT, limits: LIMITS });
      await registerWorker(world);
      world.clock.step(60_000);
      const id = await registerWorker(world);
      await schedules.prune({ retentionMs: 30_000, limit: 10 });
      expect(await readNotifications(world)).toEqual([expected(world, "worker.registered", id)]);
      const { newest } = await notifications.range();
      for (let more = true; more; ) {
        const deleted = await tenants.delete({ id: TENANT, limit: 2 });
        more = deleted.found && deleted.was === null && deleted.more;
      }
      expect(await readNotifications(world)).toEqual([]);
      expect(await notifications.range()).toEqual({ oldest: newest + 1, newest });
    });

    test("of a tenant that registers workers without end the newest are kept", async () => {
      const world = await openForWorkers(openWorld);
      const { notifications, workers } = world.storage;
      const other = await registerWorker(world, { tenant: "other" });
      const count = WORKER_NOTIFICATIONS_MAX / 4;
      const ids = await Promise.all(Array.from({ length: count }, () => registerWorker(world)));
      const loseAll = async () => {
        const { workers: watched } = await workers.watch();
        await Promise.all(watched.filter(({ tenant }) => tenant === TENANT).map(workers.markLost));
      };
      await loseAll();
      await workers.renew({ signs: ids.map((worker) => ({ worker, polls: false })) });
      await loseAll();
      const all = async () =>
        (await notifications.read({ after: 0, limit: 2 * WORKER_NOTIFICATIONS_MAX })).notifications;
      expect(await all()).toHaveLength(WORKER_NOTIFICATIONS_MAX + 1);
      const [, first, second] = await all();
      const newest = await registerWorker(world);
      const kept = await all();
      expect(kept).toHaveLength(WORKER_NOTIFICATIONS_MAX + 1);
      expect(kept[0]?.worker?.id).toBe(other);
      expect(kept[1]).toEqual(second);
      expect(kept.at(-1)?.worker?.id).toBe(newest);
      expect(await notifications.mark({ seq: first?.seq ?? 0 })).toBeNull();
    });
  });
}
