import { describe, expect, test } from "vitest";
import type { MakerLimit, NewSchedule, ScheduleRecord } from "../../storage.ts";
import { type OpenWorld, TENANT, type World } from "../world.ts";
import { create, read, readNotifications } from "./schedule-world.ts";

/** Schedules of one key or one agent. */
export function describeMakers(open: OpenWorld): void {
  describe("the maker of schedules", () => {
    function make(
      world: World,
      { keyId = null, agentId = null }: { keyId?: string | null; agentId?: string | null },
      more: Partial<NewSchedule> = {},
    ): Promise<ScheduleRecord> {
      const { definition: _none, ...others } = more;
      const provenance = { createdBy: { keyId, agentId, via: "http" as const }, within: null };
      return create(world, { provenance, ...others });
    }

    const ofKey: MakerLimit = { by: "key", id: "key_1", max: 2 };
    const ofAgent: MakerLimit = { by: "agent", id: "scout", max: 1 };

    test("has no more than it may, active and paused ones together, and learns which are the oldest", async () => {
      const world = await open();
      const key = { keyId: "key_1" };
      const first = await make(world, key);
      const second = await make(world, key, {
        status: "paused",
        nextFireAt: null,
        source: "s",
        ofMaker: ofKey,
      });
      await make(world, { keyId: "key_2" }, { ofMaker: { ...ofKey, id: "key_2" } });
      await expect(make(world, key, { ofMaker: ofKey })).rejects.toMatchObject({
        code: "quota_exceeded",
        details: { bound: "maxActiveSchedules", max: 2, oldest: [first.id, second.id] },
      });
      expect(await make(world, key, { source: "s", ofMaker: ofKey })).toMatchObject({ id: second.id });
      await world.storage.schedules.delete(first);
      await make(world, key, { ofMaker: ofKey });
    });

    test("is said to have so many, the oldest first, and only those that count", async () => {
      const world = await open();
      const count = (limit: MakerLimit) => world.storage.schedules.ofMaker({ tenant: TENANT, limit });
      const first = await make(world, { keyId: "key_1", agentId: "scout" });
      const second = await make(world, { keyId: "key_1" }, { status: "paused", nextFireAt: null });
      const third = await make(world, {});
      expect(await count({ ...ofKey, max: 9 })).toEqual([first.id, second.id]);
      expect(await count({ ...ofKey, max: 1 })).toEqual([first.id]);
      expect(await count({ ...ofAgent, max: 9 })).toEqual([first.id]);
      expect(await count({ by: "tenant", id: TENANT, max: 9 })).toEqual([first.id, second.id, third.id]);
      await world.storage.schedules.delete(second);
      expect(await count({ ...ofKey, max: 9 })).toEqual([first.id]);
    });

    test("stays when an edit takes rights away", async () => {
      const world = await open();
      const made = await make(world, { keyId: "key_1", agentId: "scout" });
      const { tenant, id, revision, provenance } = made;
      if (provenance === null) throw new Error("It has a maker.");
      const narrower = { ...provenance, reach: ["scout"] };
      await world.storage.schedules.update({ tenant, id, revision, changes: { provenance: narrower } });
      expect(await read(world, made)).toEqual({ ...made, provenance: narrower, revision: revision + 1 });
      expect(await world.storage.schedules.ofMaker({ tenant, limit: ofKey })).toEqual([id]);
    });

    test("is counted by agent, and callers without either by tenant", async () => {
      const world = await open();
      await make(world, { agentId: "scout" }, { ofMaker: ofAgent });
      await expect(make(world, { agentId: "scout" }, { ofMaker: ofAgent })).rejects.toMatchObject({
        code: "quota_exceeded",
      });
      const ofTenant: MakerLimit = { by: "tenant", id: TENANT, max: 2 };
      await make(world, {}, { ofMaker: ofTenant });
      await expect(make(world, {}, { ofMaker: ofTenant })).rejects.toMatchObject({ code: "quota_exceeded" });
    });

    test("has exactly so many, however many are made at once", async () => {
      const world = await open();
      const made = await Promise.allSettled(
        Array.from({ length: 7 }, () => make(world, { keyId: "key_1" }, { ofMaker: ofKey })),
      );
      expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    });

    test("takes none up again beyond that", async () => {
      const world = await open();
      const key = { keyId: "key_1" };
      const over = await make(world, key);
      const change = async (status: "completed" | "active") => {
        const { tenant, id, revision } = await read(world, over);
        return world.storage.schedules.update({ tenant, id, revision, changes: { status }, ofMaker: ofKey });
      };
      await change("completed");
      await make(world, key);
      await make(world, key);
      await expect(change("active")).rejects.toMatchObject({ code: "quota_exceeded" });
      expect((await read(world, over)).status).toBe("completed");
    });

    test("of which the key is deleted: its active schedules pause, in slices, each with a notification", async () => {
      const world = await open();
      const own = [];
      for (let n = 0; n < 3; n += 1) own.push(await make(world, { keyId: "key_1" }));
      const other = await make(world, { keyId: "key_2" });
      const paused = await make(world, { keyId: "key_1" }, { status: "paused", nextFireAt: null });
      const pause = () =>
        world.storage.schedules.pauseOfKey({ tenant: TENANT, key: "key_1", reason: "gone", limit: 2 });
      expect(await pause()).toEqual({ paused: 2, more: true });
      expect(await pause()).toEqual({ paused: 1, more: false });
      expect(await pause()).toEqual({ paused: 0, more: false });
      for (const each of own)
        expect(await read(world, each)).toMatchObject({
          ...{ status: "paused", pausedReason: "gone", nextFireAt: null, revision: each.revision + 1 },
        });
      expect(await read(world, other)).toMatchObject({ status: "active", revision: other.revision });
      expect((await read(world, paused)).pausedReason).toBeNull();
      const notified = (await readNotifications(world)).filter(({ kind }) => kind === "schedule.paused");
      expect(notified).toHaveLength(3);
    });
  });
}
