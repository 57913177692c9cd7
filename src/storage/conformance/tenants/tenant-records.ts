import { describe, expect, test } from "vitest";
import { DEFAULT_TENANT } from "../../../model/tenant.ts";
import type { NewAuditEntry, NewTenant, StorageSignal } from "../../storage.ts";
import { newDefinition } from "../schedules/schedule-world.ts";
import { LANE, NODE, newTask, type OpenWorld, OTHER_LANE, only, ROOMY, type World } from "../world.ts";
import { UNBOUNDED } from "./share-out.ts";

export function describeTenantRecords(open: OpenWorld): void {
  const acme: NewTenant = { id: "ten_1", name: "Acme", limits: { ...UNBOUNDED, maxQueued: 5 } };

  /** The signals that are published during `work`. */
  async function signalsOf({ storage }: World, work: () => Promise<unknown>): Promise<StorageSignal[]> {
    const signals: StorageSignal[] = [];
    const unsubscribe = storage.subscribe((signal) => signals.push(signal));
    await work();
    unsubscribe();
    return signals;
  }

  describe("tenants", () => {
    test("are created, found and listed by id, the default one always among them", async () => {
      const { storage, clock } = await open();
      const created = {
        ...acme,
        storedBytes: null,
        disabled: false,
        deleting: false,
        createdAt: clock.now(),
        updatedAt: clock.now(),
      };
      expect(await storage.tenants.create(acme)).toEqual({ taken: null, tenant: created });
      expect(await storage.tenants.get({ id: "ten_1" })).toEqual(created);
      expect(await storage.tenants.get({ id: "ten_2" })).toBeNull();
      const [first, second, ...others] = await storage.tenants.list();
      expect(first).toMatchObject({
        id: DEFAULT_TENANT,
        name: "default",
        disabled: false,
        limits: UNBOUNDED,
      });
      expect([second, others]).toEqual([created, []]);
    });

    test("have ids and names of their own", async () => {
      const { storage } = await open();
      await storage.tenants.create(acme);
      expect(await storage.tenants.create({ ...acme, name: "Other" })).toEqual({ taken: "id" });
      expect(await storage.tenants.create({ ...acme, id: "ten_2" })).toEqual({ taken: "name" });
      await storage.tenants.create({ id: "ten_3", name: "Zeta", limits: UNBOUNDED });
      const update = (id: string, name: string) => storage.tenants.update({ id, name });
      expect(await update("ten_3", "Acme")).toEqual({ found: true, taken: "name" });
      expect(await update("ten_3", "Zeta")).toMatchObject({ found: true, taken: null });
      expect(await update("ten_4", "Acme")).toEqual({ found: false });
      expect((await storage.tenants.list()).map(({ name }) => name)).toEqual(["default", "Acme", "Zeta"]);
    });

    test("change in what is named alone", async () => {
      const { storage, clock } = await open();
      const createdAt = clock.now();
      await storage.tenants.create(acme);
      clock.step(10);
      const updated = await storage.tenants.update({
        id: "ten_1",
        limits: { maxInflight: 2, maxQueued: null },
      });
      const limits = { ...UNBOUNDED, maxInflight: 2 };
      const tenant = {
        ...acme,
        limits,
        storedBytes: null,
        disabled: false,
        deleting: false,
        createdAt,
        updatedAt: clock.now(),
      };
      expect(updated).toEqual({ found: true, taken: null, tenant });
      await storage.tenants.update({ id: "ten_1", name: "Acme Ltd" });
      expect(await storage.tenants.get({ id: "ten_1" })).toEqual({ ...tenant, name: "Acme Ltd" });
    });

    test("are disabled and enabled, and one that was never created is not found", async () => {
      const { storage } = await open();
      await storage.tenants.create(acme);
      expect(await storage.tenants.setDisabled({ id: "ten_1", disabled: true })).toMatchObject({
        disabled: true,
      });
      expect(await storage.tenants.get({ id: "ten_1" })).toMatchObject({ disabled: true });
      expect(await storage.tenants.setDisabled({ id: "ten_1", disabled: false })).toMatchObject({
        disabled: false,
      });
      expect(await storage.tenants.setDisabled({ id: "ten_2", disabled: true })).toBeNull();
    });

    test("are signalled when they change, and that something may start", async () => {
      const world = await open();
      const { tenants } = world.storage;
      const kinds = async (work: () => Promise<unknown>) =>
        (await signalsOf(world, work)).map(({ kind }) => kind);
      expect(await kinds(() => tenants.create(acme))).toContain("tenants");
      expect(await kinds(() => tenants.update({ id: "ten_1", limits: { maxInflight: 1 } }))).toEqual(
        expect.arrayContaining(["tenants", "work"]),
      );
      expect(await kinds(() => tenants.setDisabled({ id: "ten_1", disabled: false }))).toEqual(
        expect.arrayContaining(["tenants", "work"]),
      );
      expect(await kinds(() => tenants.delete({ id: "ten_1", limit: 10 }))).toEqual(
        expect.arrayContaining(["tenants", "keys"]),
      );
      expect(await kinds(() => tenants.delete({ id: "ten_1", limit: 10 }))).toEqual([]);
    });
  });

  describe("a tenant's bound on what waits", () => {
    test("rejects what comes beyond it, over all agents and lanes, and nothing of other tenants", async () => {
      const { storage, claim } = await open();
      await storage.tenants.create({ ...acme, limits: { ...UNBOUNDED, maxQueued: 2 } });
      const tenant = "ten_1";
      const tasks = [{ tenant }, { tenant, agent: "b", lane: OTHER_LANE }, { tenant, agent: "c" }, {}];
      const inserted = await storage.tasks.insert({ tasks: tasks.map(newTask), limits: ROOMY });
      expect(inserted.map(({ rejection }) => rejection)).toEqual([
        null,
        null,
        { full: "global", queued: 2 },
        null,
      ]);
      const [rejected] = (await storage.tasks.list({ tenant, limit: 1 })).tasks;
      expect(rejected).toMatchObject({ state: "rejected", error: "rejected: global queue full" });
      await claim();
      expect(only(await storage.tasks.insert({ tasks: [newTask({ tenant })], limits: ROOMY })).state).toBe(
        "queued",
      );
    });

    test("is looked at after the queue of all tenants and before the agent's share", async () => {
      const { storage, submit } = await open();
      await storage.tenants.create({ ...acme, limits: { ...UNBOUNDED, maxQueued: 1 } });
      const insert = (limits: Partial<typeof ROOMY>) =>
        storage.tasks.insert({ tasks: [newTask({ tenant: "ten_1" })], limits: { ...ROOMY, ...limits } });
      const full = async (limits: Partial<typeof ROOMY>) => only(await insert(limits)).rejection?.full;
      expect(await full({ maxPerAgent: 0 })).toBe("agent");
      expect(await full({})).toBeUndefined();
      expect(await full({ maxPerAgent: 0 })).toBe("global");
      await submit({});
      expect(await full({ maxPerAgent: 0, maxQueueSizeTotal: 2 })).toBe("server");
    });

    test("answers a repeated insert as the first time", async () => {
      const { storage } = await open();
      await storage.tenants.create({ ...acme, limits: { ...UNBOUNDED, maxQueued: 0 } });
      const tasks = [newTask({ tenant: "ten_1" })];
      await storage.tasks.insert({ tasks, limits: ROOMY });
      const again = only(await storage.tasks.insert({ tasks, limits: ROOMY }));
      expect([again.state, again.rejection?.full]).toEqual(["rejected", "global"]);
    });

    test("neither counts nor refuses messages and runs", async () => {
      const { storage, submit } = await open();
      await storage.tenants.create({ ...acme, limits: { ...UNBOUNDED, maxQueued: 1 } });
      const tenant = "ten_1";
      await submit({ tenant, origin: "run" }, { tenant, origin: "message" });
      const inserted = await submit({ tenant }, { tenant }, { tenant, origin: "run" });
      expect(inserted.map(({ state }) => state)).toEqual(["queued", "rejected", "queued"]);
    });

    test("counts each of a call as if it came alone, beside those that others' bounds refuse", async () => {
      const { storage } = await open();
      await storage.tenants.create({ ...acme, limits: { ...UNBOUNDED, maxQueued: 3 } });
      const tenant = "ten_1";
      const few = { tenant, agent: "few", maxQueued: 1 };
      const zeta = { tenant: "zeta" };
      const tasks = [few, few, { tenant }, zeta, few, { tenant }, { tenant }, few, zeta, zeta, zeta, few];
      const limits = { ...ROOMY, maxQueueSizeTotal: 6 };
      const inserted = await storage.tasks.insert({ tasks: tasks.map(newTask), limits });
      expect(inserted.map(({ rejection }) => rejection?.full ?? null)).toEqual([
        null,
        "agent",
        null,
        null,
        "agent",
        null,
        "global",
        "global",
        null,
        null,
        "server",
        "server",
      ]);
    });
  });

  describe("deleting a tenant", () => {
    /** One of everything that a tenant can own, some of it running. */
    async function fill(world: World, tenant: string) {
      const { storage, submit, claim } = world;
      const batch = { id: `batch-of-${tenant}`, tenant, parallelism: 1, callbackUrl: "https://example.com/" };
      const session = { key: "talk", maxConcurrent: 1 };
      const tasks: Parameters<typeof newTask>[0][] = [
        { id: `${tenant}-runs`, callbackUrl: "https://example.com/" },
        { id: `${tenant}-waits`, dependsOn: [`${tenant}-runs`] },
        { batch: batch.id },
        { batch: batch.id, agent: "b" },
        { session },
        { session, origin: "message" },
        { runAt: world.clock.now() + 1_000 },
        { lane: OTHER_LANE, priority: 0 },
        { idempotency: { key: "once", hash: "h" } },
      ];
      await storage.tasks.insert({
        tasks: tasks.map((task) => newTask({ tenant, ...task })),
        batches: [batch],
        limits: ROOMY,
      });
      const claimed = await claim({ limit: 3 });
      await fireSchedules(world, tenant);
      await storage.tasks.cancel({ tenant, ids: [`${tenant}-runs`], error: null });
      await submit({ id: `${tenant}-again`, tenant });
      await storage.sessions.update({
        tenant,
        key: "pinned",
        defaultMax: 1,
        changes: { maxConcurrent: 2 },
      });
      await storage.agents.create({ tenant, agent: "b", maxInflight: 2, definition: {} });
      await storage.keys.create({
        ...{ id: `key-${tenant}`, tenant, name: "one", role: "operator", agent: null },
        ...{ hash: `hash-${tenant}`, expiresAt: null },
      });
      await storage.audit.append({
        entries: [
          auditEntry(tenant, { subject: "tsk_1" }),
          auditEntry(tenant, { subject: "front desk", subjectDigest: "digest", subjectSalt: "salt" }),
        ],
      });
      return claimed;
    }

    let auditNumber = 0;

    function auditEntry(tenant: string, about: Partial<NewAuditEntry>): NewAuditEntry {
      auditNumber += 1;
      return {
        ...{
          at: 5,
          tenant,
          keyId: null,
          route: "POST /x",
          subject: null,
          subjectDigest: null,
          subjectSalt: null,
          address: null,
          provenance: null,
        },
        ...{ status: null, count: 1, chain: "node-1", number: auditNumber, previousHash: "", hash: "h" },
        ...about,
      };
    }

    /** One schedule with an open run, one with an ended run, and one with a due time to come. */
    async function fireSchedules({ storage, clock }: World, tenant: string): Promise<void> {
      const now = clock.now();
      const create = (nextFireAt: number) =>
        storage.schedules.create({
          tenant,
          definition: newDefinition(),
          status: "active",
          nextFireAt,
          source: null,
        });
      const { id, revision } = await create(now);
      await create(now + 1_000);
      const once = { firstDueAt: now, moments: 1, forced: false };
      const task = newTask({ tenant, origin: "run", schedule: id });
      await storage.schedules.fire({
        fires: [
          {
            ...{ tenant, id, revision, nextFireAt: now, pauses: null },
            runs: [
              { ...once, dueAt: now, status: "running", requestId: "r", task, replaces: false },
              { ...once, dueAt: now + 1, status: "skipped", reason: "no" },
            ],
          },
        ],
      });
    }

    async function see({ storage }: World, tenant: string) {
      const { notifications } = await storage.notifications.read({ after: 0, limit: 100 });
      return {
        tasks: (await storage.tasks.list({ tenant, limit: 100 })).tasks.length,
        counts: await storage.tasks.counts({ tenant }),
        depth: await storage.tasks.queueDepth({ tenant }),
        batch: await storage.tasks.getBatch({ tenant, id: `batch-of-${tenant}` }),
        sessions: (await storage.sessions.list({ tenant, limit: 10 })).sessions.length,
        deliveries: (await storage.deliveries.list({ tenant, limit: 10 })).deliveries.length,
        agents: (await storage.agents.list()).filter((agent) => agent.tenant === tenant).length,
        bounded: (await storage.agents.bounded()).filter((agent) => agent.tenant === tenant).length,
        keys: (await storage.keys.list({ tenant })).length,
        schedules: await storage.schedules.list({ tenant, limit: 10 }),
        runs: (await storage.schedules.listRuns({ tenant, limit: 10 })).runs,
        notifications: notifications.filter((each) => each.tenant === tenant),
        audit: (await storage.audit.list({ tenant, limit: 10 })).entries.map(({ subject, subjectSalt }) => [
          subject,
          subjectSalt,
        ]),
      };
    }

    async function deleteAll({ storage }: World, id: string, limit: number): Promise<number> {
      for (let slices = 1; slices < 100; slices += 1) {
        const answer = await storage.tenants.delete({ id, limit });
        if (!answer.found || answer.was !== null) throw new Error("There is such a tenant.");
        expect(await storage.counters.recountAll()).toEqual([]);
        if (!answer.more) return slices;
      }
      throw new Error("Deleting comes to no end.");
    }

    test("keeps no name that comes late into the audit log", async () => {
      const { storage } = await open();
      const note = (subject: string, subjectDigest: string | null) =>
        storage.audit.append({
          entries: ["gone", "stays"].map((tenant) =>
            auditEntry(tenant, { subject, subjectDigest, subjectSalt: subjectDigest && "salt" }),
          ),
        });
      const names = async (tenant: string) =>
        (await storage.audit.list({ tenant, limit: 10 })).entries
          .map(({ subject, subjectDigest, subjectSalt }) => [subject, subjectDigest, subjectSalt])
          .reverse();
      for (const id of ["gone", "stays"]) await storage.tenants.create({ id, name: id, limits: UNBOUNDED });
      await storage.tenants.delete({ id: "gone", limit: 0 });
      await note("while it goes", "digest");
      await storage.tenants.delete({ id: "gone", limit: 1_000 });
      await note("afterwards", "digest");
      await note("tsk_1", null);
      expect(await names("gone")).toEqual([
        [null, "digest", null],
        [null, "digest", null],
        ["tsk_1", null, null],
      ]);
      expect(await names("stays")).toEqual([
        ["while it goes", "digest", "salt"],
        ["afterwards", "digest", "salt"],
        ["tsk_1", null, null],
      ]);
    });

    test.each([1, 4, 1_000])(
      "takes everything it owns, %i at a time, and nothing of another",
      async (limit) => {
        const world = await open();
        const { storage } = world;
        for (const tenant of ["gone", "stays"]) {
          await storage.tenants.create({ id: tenant, name: tenant, limits: UNBOUNDED });
          await fill(world, tenant);
        }
        await storage.agents.configure({ tenant: "gone", agent: "c", maxInflight: 1 });
        const before = await see(world, "stays");
        expect(before).toMatchObject({ runs: { length: 2 }, notifications: { length: 2 } });
        await fireSchedules(world, "gone");
        const { newest } = await storage.notifications.range();
        const slices = await deleteAll(world, "gone", limit);
        expect(slices).toBeGreaterThan(limit === 1_000 ? 0 : 1);
        expect(await see(world, "gone")).toEqual({
          tasks: 0,
          counts: {},
          depth: { queued: 0, inflight: 0, agents: {}, ready: {} },
          batch: null,
          sessions: 0,
          deliveries: 0,
          agents: 0,
          bounded: 0,
          keys: 0,
          schedules: [],
          runs: [],
          notifications: [],
          // The names that callers chose are deleted, ids and routes stay.
          audit: [
            [null, null],
            ["tsk_1", null],
          ],
        });
        expect(await see(world, "stays")).toEqual(before);
        expect((await storage.schedules.due({ limit: 10 })).map(({ tenant }) => tenant)).toEqual(["stays"]);
        // Readers of notifications continue from there.
        expect((await storage.notifications.range()).newest).toBeGreaterThan(newest);
        expect(await storage.tenants.get({ id: "gone" })).toBeNull();
        expect((await world.events()).every(({ tenant }) => tenant === "stays")).toBe(true);
      },
    );

    test("stops what runs, and lets nothing of it start meanwhile", async () => {
      const world = await open();
      const { storage, claim } = world;
      await storage.tenants.create({ id: "gone", name: "gone", limits: UNBOUNDED });
      const claimed = await fill(world, "gone");
      const [runs, ...others] = claimed;
      const tokens: number[] = [];
      storage.subscribe((signal) => signal.kind === "fenced" && tokens.push(...signal.tokens));
      await storage.tenants.delete({ id: "gone", limit: 1 });
      expect(await claim({ limit: 10 })).toEqual([]);
      expect(await storage.keys.findByHashes({ hashes: ["hash-gone"] })).toEqual([]);
      await deleteAll(world, "gone", 2);
      expect(runs?.task.id).toBe("gone-runs");
      expect(tokens.sort((a, b) => a - b)).toEqual(others.map(({ token }) => token));
      const finishes = others.map(({ token, task: { seq } }) => ({
        ...{ seq, token },
        settlement: { to: "done", result: null } as const,
      }));
      const step = { node: NODE, finishes, progress: [], claims: [{ lane: LANE, limit: 9 }] };
      // Some drivers add `durable`.
      expect(await storage.tasks.finishAndClaim(step)).toEqual({ finished: [], claimed: [], expired: [] });
    });

    test("begins by locking it: nothing at a time takes its keys and deletes nothing", async () => {
      const { storage, submit, task } = await open();
      await storage.tenants.create({ id: "gone", name: "gone", limits: UNBOUNDED });
      await submit({ id: "t", tenant: "gone" });
      const key = {
        id: "k",
        tenant: "gone",
        name: "k",
        role: "viewer",
        agent: null,
        hash: "h",
        expiresAt: null,
      };
      await storage.keys.create(key);
      const begun = { found: true, was: null, more: true };
      expect(await storage.tenants.delete({ id: "gone", limit: 0 })).toEqual(begun);
      expect(await storage.keys.findByHashes({ hashes: ["h"] })).toEqual([]);
      expect(await storage.tenants.get({ id: "gone" })).toMatchObject({ disabled: true });
      expect((await task("t", "gone")).state).toBe("queued");
    });

    test("locks it for good: it is not found to be changed, and gets no keys", async () => {
      const { storage } = await open();
      await storage.tenants.create({ id: "gone", name: "gone", limits: UNBOUNDED });
      expect(await storage.tenants.get({ id: "gone" })).toMatchObject({ disabled: false, deleting: false });
      await storage.tenants.delete({ id: "gone", limit: 0 });
      const locked = { id: "gone", disabled: true, deleting: true };
      expect(await storage.tenants.get({ id: "gone" })).toMatchObject(locked);
      expect(await storage.tenants.list()).toContainEqual(expect.objectContaining(locked));
      expect(await storage.tenants.setDisabled({ id: "gone", disabled: false })).toBeNull();
      expect(await storage.tenants.setDisabled({ id: "gone", disabled: true })).toBeNull();
      expect(await storage.tenants.update({ id: "gone", name: "other" })).toEqual({ found: false });
      const key = { id: "k", tenant: "gone", name: "k", role: "viewer", agent: null, hash: "h" };
      expect(await storage.keys.create({ ...key, expiresAt: null })).toBeNull();
      expect(await storage.tenants.get({ id: "gone" })).toMatchObject(locked);
    });

    test("says with each slice that it is under way", async () => {
      const { storage, clock } = await open();
      await storage.tenants.create({ id: "gone", name: "gone", limits: UNBOUNDED });
      for (const limit of [0, 0]) {
        clock.step(7);
        await storage.tenants.delete({ id: "gone", limit });
        expect(await storage.tenants.get({ id: "gone" })).toMatchObject({ updatedAt: clock.now() });
      }
    });

    test("leaves the numbers of its events in the log, which therefore does not look restored", async () => {
      const world = await open();
      const { storage } = world;
      await world.submit({ tenant: "default" });
      await storage.tenants.create({ id: "gone", name: "gone", limits: UNBOUNDED });
      await world.submit({ tenant: "gone" });
      const { newest, oldest } = await storage.events.range();
      const mark = await storage.events.mark({ seq: newest });
      expect(mark).not.toBeNull();
      await deleteAll(world, "gone", 1);
      await world.submit({ tenant: "default" });
      expect(await storage.events.mark({ seq: newest })).toEqual(mark);
      expect((await storage.events.range()).oldest).toBe(oldest);
      const { events } = await storage.events.read({ after: 0, limit: 99, bytesMax: 1e6 });
      expect(events.map(({ tenant }) => tenant)).toEqual(["default", "default"]);
    });

    test("leaves an id that can be used again, as if it had never been", async () => {
      const world = await open();
      const { storage } = world;
      await storage.tenants.create({ id: "gone", name: "gone", limits: { ...UNBOUNDED, maxInflight: 1 } });
      await fill(world, "gone");
      await deleteAll(world, "gone", 3);
      await storage.tenants.create({ id: "gone", name: "gone", limits: UNBOUNDED });
      await world.submit({ tenant: "gone" }, { tenant: "gone", idempotency: { key: "once", hash: "other" } });
      expect(await world.claim({ limit: 5 })).toHaveLength(2);
      expect(await storage.counters.recountAll()).toEqual([]);
    });

    test("spares the default tenant, and finds none that was never created", async () => {
      const world = await open();
      const { storage, submit } = world;
      await submit({ tenant: DEFAULT_TENANT }, { tenant: "unknown" });
      expect(await storage.tenants.delete({ id: DEFAULT_TENANT, limit: 9 })).toEqual({
        found: true,
        was: "default",
      });
      expect(await storage.tenants.delete({ id: "unknown", limit: 9 })).toEqual({ found: false });
      expect(await storage.tenants.get({ id: DEFAULT_TENANT })).toMatchObject({ disabled: false });
      expect(await world.claim({ limit: 9 })).toHaveLength(2);
    });
  });
}
