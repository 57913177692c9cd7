import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { callbackHost } from "../../../model/callback-host.ts";
import type { DeliveryStatus } from "../../../model/delivery.ts";
import {
  type DeliveryShares,
  FAILURES_MAX,
  type HeldDelivery,
  IDLE_HOSTS_MAX,
} from "../../../model/delivery-shares.ts";
import { openOracle } from "../../oracle/connection/open.ts";
import type { ClaimedDelivery, Storage } from "../../storage.ts";
import { SteppedClock } from "../connection/clock.ts";
import { UNBOUNDED } from "../tenants/share-out.ts";
import { newTask, type OpenWorld, ROOMY, ROOMY_SHARES, type StorageHarness, type World } from "../world.ts";

const HOLD_MS = 30_000;
export function describeClaimDeliveries(harness: StorageHarness, open: OpenWorld): void {
  describe("claims of deliveries", () => {
    /** Ends tasks one after the other, each with a callback to one of these hosts, written `tenant/host`. */
    async function end({ storage }: Pick<World, "storage">, ...receivers: string[]): Promise<void> {
      for (const receiver of receivers) {
        const [tenant = "", host = ""] = receiver.split("/");
        const task = newTask({ tenant, callbackUrl: `https://${host}/hook` });
        await storage.tasks.insert({ tasks: [task], limits: ROOMY });
        await storage.tasks.cancel({ tenant, ids: [task.id], error: null });
      }
    }

    /** The same for one tenant, all at once. */
    async function endTogether({ storage }: World, tenant: string, hosts: readonly string[]): Promise<void> {
      const tasks = hosts.map((host) => newTask({ tenant, callbackUrl: `https://${host}/hook` }));
      await storage.tasks.insert({ tasks, limits: ROOMY });
      await storage.tasks.cancel({ tenant, ids: tasks.map(({ id }) => id), error: null });
    }

    async function claim(
      { storage }: Pick<World, "storage">,
      shares: Partial<DeliveryShares> = {},
      held: readonly HeldDelivery[] = [],
    ) {
      return storage.deliveries.claim({ shares: { ...ROOMY_SHARES, ...shares }, held, holdMs: HOLD_MS });
    }

    function receiversOf(claimed: readonly ClaimedDelivery[]): string[] {
      return claimed.map(({ delivery: { tenant, host } }) => `${tenant}/${host}`);
    }

    async function settle(
      { storage, clock }: World,
      claimed: readonly ClaimedDelivery[],
      status: DeliveryStatus,
    ) {
      const dueAt = status === "pending" ? clock.now() + 1_000 : null;
      await storage.deliveries.settle({
        tries: claimed.map(({ delivery: { seq, tries } }) => ({
          seq,
          tries,
          status,
          dueAt,
          responseStatus: null,
          error: null,
        })),
      });
    }

    /** Delivers once to each of these hosts, so that they are proven. */
    async function prove(world: World, ...receivers: string[]): Promise<void> {
      await end(world, ...receivers);
      const { claimed } = await claim(world);
      expect(claimed).toHaveLength(receivers.length);
      await settle(world, claimed, "delivered");
    }

    function heldBy(claimed: readonly ClaimedDelivery[]): HeldDelivery[] {
      return claimed.map(({ delivery: { tenant, host, hostProven: proven } }) => ({ tenant, host, proven }));
    }

    test("go by turns of tenants, whatever each has pending and since when", async () => {
      const world = await open();
      await end(world, "a/x", "a/x", "a/y", "a/x", "b/x", "b/x", "c/z");
      const { claimed } = await claim(world, { slots: 5 });
      expect(receiversOf(claimed).map((receiver) => receiver[0])).toEqual(["a", "b", "c", "a", "b"]);
      world.clock.step(1);
      await end(world, "d/x");
      world.clock.step(1);
      const next = await claim(world, { slots: 2 });
      expect(receiversOf(next.claimed), "it came after all others were served").toEqual(["a/x", "d/x"]);
    });

    test("go by turns of a tenant's hosts, and of a host the longest due goes first", async () => {
      const world = await open();
      await end(world, "a/x", "a/x", "a/x", "a/y", "a/z", "a/z");
      const { claimed } = await claim(world, { slots: 5 });
      expect(receiversOf(claimed)).toEqual(["a/x", "a/y", "a/z", "a/x", "a/z"]);
      const ofX = claimed.filter(({ delivery }) => delivery.host === "x").map(({ delivery }) => delivery.seq);
      expect(ofX).toEqual(ofX.toSorted((a, b) => a - b));
    });

    test("count any port and any spelling of a host as that host", async () => {
      const world = await open();
      const urls = [
        "http://x.test/",
        "https://x.test:8443/",
        "http://X.Test./a",
        "http://x.test:1/?b",
        "http://[::1]:9/",
      ];
      for (const callbackUrl of urls) {
        const task = newTask({ tenant: "a", callbackUrl });
        await world.storage.tasks.insert({ tasks: [task], limits: ROOMY });
        await world.storage.tasks.cancel({ tenant: "a", ids: [task.id], error: null });
      }
      const { claimed } = await claim(world, { perUnprovenHost: 1 });
      expect(receiversOf(claimed).sort()).toEqual(["a/[::1]", "a/x.test"]);
    });

    test.each(URLS)("read the host off %j as the program does", async (callbackUrl) => {
      const world = await open();
      const task = newTask({ tenant: "a", callbackUrl });
      await world.storage.tasks.insert({ tasks: [task], limits: ROOMY });
      await world.storage.tasks.cancel({ tenant: "a", ids: [task.id], error: null });
      const { claimed } = await claim(world);
      expect(claimed.map(({ delivery }) => delivery.host)).toEqual([callbackHost(callbackUrl)]);
    });

    test("give a tenant less the less is free, so that the next finds room", async () => {
      const world = await open();
      const shares = { slots: 16, tenantFactor: 3 };
      await end(world, ...Array.from({ length: 20 }, (_, n) => `a/${n}`));
      const alone = await claim(world, shares);
      expect(alone.claimed).toHaveLength(12);
      await end(world, ...Array.from({ length: 20 }, (_, n) => `b/${n}`));
      const second = await claim(world, shares, heldBy(alone.claimed));
      expect(receiversOf(second.claimed).map((receiver) => receiver[0])).toEqual(["b", "b", "b"]);
      await end(world, "c/x");
      const held = [...heldBy(alone.claimed), ...heldBy(second.claimed)];
      expect(receiversOf((await claim(world, shares, held)).claimed)).toEqual(["c/x"]);
    });

    test("give hosts that are new a small part, one each, and count them by tenant and in all", async () => {
      const world = await open();
      const shares = { slots: 16, unprovenSlots: 8, unprovenFactor: 1, perUnprovenHost: 1 };
      await end(world, "a/0", "a/0", ...Array.from({ length: 20 }, (_, n) => `a/${n}`));
      const first = await claim(world, shares);
      expect(receiversOf(first.claimed)).toEqual(["a/0", "a/1", "a/10", "a/11"]);
      await end(
        world,
        ...["b", "c", "d", "e"].flatMap((tenant) => [`${tenant}/x`, `${tenant}/y`, `${tenant}/z`]),
      );
      const second = await claim(world, shares, heldBy(first.claimed));
      expect(second.claimed).toHaveLength(4);
      const held = [...heldBy(first.claimed), ...heldBy(second.claimed)];
      const third = await claim(world, shares, held);
      expect(third, "until one that is held ends").toEqual({ claimed: [], nextAt: null });
    });

    test("know a host that was reached, for that tenant alone, until it failed several times in a row", async () => {
      const world = await open();
      await prove(world, "a/x");
      const isProven = async (tenant: string) => {
        await end(world, `${tenant}/x`);
        const { claimed } = await claim(world, { slots: 1 });
        return claimed;
      };
      expect(heldBy(await isProven("b"))).toEqual([{ tenant: "b", host: "x", proven: false }]);
      for (let failures = 0; failures < FAILURES_MAX; failures += 1) {
        const claimed = await isProven("a");
        expect(heldBy(claimed)).toEqual([{ tenant: "a", host: "x", proven: true }]);
        await settle(world, claimed, failures === 0 ? "pending" : "failed");
      }
      const failing = await isProven("a");
      expect(heldBy(failing)).toEqual([{ tenant: "a", host: "x", proven: false }]);
      await settle(world, failing, "delivered");
      const again = await isProven("a");
      expect(heldBy(again), "once is enough to be known again").toEqual([
        { tenant: "a", host: "x", proven: true },
      ]);
    });

    test("are not held up by a host that has its share", async () => {
      const world = await open();
      await prove(world, "a/good", "a/slow");
      const shares = { slots: 16, perHost: 4, unprovenSlots: 8, unprovenFactor: 1, perUnprovenHost: 1 };
      await end(
        world,
        ...Array.from({ length: 30 }, () => "a/slow"),
        ...Array.from({ length: 30 }, () => "a/hangs"),
      );
      const { claimed } = await claim(world, shares);
      expect(receiversOf(claimed).sort()).toEqual(["a/hangs", ...Array(4).fill("a/slow")]);
      world.clock.step(1_000);
      await end(world, "a/good", "a/new", "b/any");
      const next = await claim(world, shares, heldBy(claimed));
      expect(receiversOf(next.claimed).sort()).toEqual(["a/good", "a/new", "b/any"]);
    });

    test("say when the next is due that may be claimed", async () => {
      const world = await open();
      const { clock } = world;
      expect(await claim(world)).toEqual({ claimed: [], nextAt: null });
      await end(world, "a/x", "a/x", "a/y");
      const shares = { perUnprovenHost: 1 };
      const { claimed } = await claim(world, shares);
      expect(receiversOf(claimed)).toEqual(["a/x", "a/y"]);
      const [x, y] = claimed as [ClaimedDelivery, ClaimedDelivery];
      await settle(world, [y], "pending");
      const waiting = await claim(world, shares, heldBy([x]));
      expect(waiting, "the other of x has to wait for the first").toEqual({
        claimed: [],
        nextAt: clock.now() + 1_000,
      });
      clock.step(1_000);
      expect(receiversOf((await claim(world, shares, heldBy([x]))).claimed)).toEqual(["a/y"]);
      expect((await claim(world, { ...shares, slots: 1 }, heldBy([x]))).nextAt).toBeNull();
    });

    test("pass over a tenant that is disabled, and go on once it is enabled", async () => {
      const world = await open();
      const { tenants } = world.storage;
      await tenants.create({ id: "a", name: "a", limits: UNBOUNDED });
      await end(world, "a/x");
      await tenants.setDisabled({ id: "a", disabled: true });
      await end(world, "a/y", "b/x");
      expect(receiversOf((await claim(world)).claimed)).toEqual(["b/x"]);
      const heard = new Set<string>();
      world.storage.subscribe(({ kind }) => heard.add(kind));
      await tenants.setDisabled({ id: "a", disabled: false });
      expect([...heard]).toContain("deliveries");
      expect(receiversOf((await claim(world)).claimed)).toEqual(["a/x", "a/y"]);
    });

    test("find nothing of a tenant that was deleted, nor of tasks that are gone", async () => {
      const world = await open();
      await world.storage.tenants.create({ id: "a", name: "a", limits: UNBOUNDED });
      await end(world, "a/x", "a/y", "b/x");
      await world.storage.tenants.delete({ id: "a", limit: 1_000 });
      world.clock.step(1_000);
      await end(world, "b/y");
      await world.storage.tasks.prune({ retentionMs: 500, rejectedMax: 10, limit: 100 });
      const { claimed, nextAt } = await claim(world);
      expect([receiversOf(claimed), nextAt]).toEqual([["b/y"], world.clock.now() + HOLD_MS]);
      await settle(world, claimed, "delivered");
      expect((await claim(world)).nextAt).toBeNull();
    });

    test("go on after the clock was set back, as soon as there is something new for a host", async () => {
      const world = await open();
      await end(world, "a/x", "a/x");
      world.clock.step(10_000);
      expect((await claim(world, { slots: 1 })).claimed).toHaveLength(1);
      world.clock.step(-5_000);
      await end(world, "a/x");
      expect((await claim(world)).claimed).toHaveLength(2);
    });

    test("remember the hosts that were served last, and no more than so many", async () => {
      const world = await open();
      const deliver = async (tenant: string, hosts: readonly string[]) => {
        await endTogether(world, tenant, hosts);
        await settle(world, (await claim(world)).claimed, "delivered");
        world.clock.step(1);
      };
      const hosts = Array.from({ length: IDLE_HOSTS_MAX + 2 }, (_, n) => `host-${1_000 + n}`);
      await deliver("b", ["other"]);
      await deliver("a", hosts.slice(0, 2));
      await deliver("a", hosts.slice(2));
      await endTogether(world, "a", hosts.slice(0, 4));
      await end(world, "b/other");
      const proven = (await claim(world)).claimed.filter(({ delivery }) => delivery.hostProven);
      expect(receiversOf(proven).sort()).toEqual([`a/${hosts[2]}`, `a/${hosts[3]}`, "b/other"]);
    }, 60_000);

    test("are what the rules say, whatever is done in which order", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
          const sides = [await openSide(harness.open), await openSide(openOracleSide)];
          try {
            for (const each of steps) {
              const [real, model] = await Promise.all(sides.map((side) => take(side, each)));
              expect(real).toEqual(model);
            }
          } finally {
            for (const { dispose } of sides) await dispose();
          }
        }),
        { numRuns: Math.ceil(harness.propertyRuns / 10), interruptAfterTimeLimit: 20_000 },
      );
    }, 60_000);

    type Side = Awaited<ReturnType<typeof openSide>>;

    async function openOracleSide(
      clock: SteppedClock,
    ): Promise<{ storage: Storage; dispose(): Promise<void> }> {
      const storage = openOracle({ clock });
      return { storage, dispose: () => storage.close() };
    }

    async function openSide(openStorage: (clock: SteppedClock) => ReturnType<StorageHarness["open"]>) {
      const clock = new SteppedClock();
      const { storage, dispose } = await openStorage(clock);
      await storage.lanes.configure({
        lanes: [
          { name: "tasks", total: null, perAgent: null, perTenant: null, strategy: "fair-fifo", agingMs: 0 },
        ],
      });
      for (const id of TENANTS) await storage.tenants.create({ id, name: id, limits: UNBOUNDED });
      return { clock, storage, dispose, held: [] as ClaimedDelivery[] };
    }

    async function take(side: Side, each: Step): Promise<unknown> {
      const { storage, clock } = side;
      const one = side.held[each.pick % Math.max(side.held.length, 1)];
      switch (each.do) {
        case "end":
          await end(side, `${each.tenant}/${each.host}`);
          clock.step(each.ms % 2);
          return undefined;
        case "claim": {
          const { claimed, nextAt } = await claim(side, each.shares, heldBy(side.held));
          side.held.push(...claimed);
          return {
            claimed: claimed.map(({ delivery: { seq: _, taskSeq: __, taskId: ___, ...rest } }) => rest),
            nextAt,
          };
        }
        case "settle": {
          if (one === undefined) return undefined;
          side.held = side.held.filter((other) => other !== one);
          const { seq, tries } = one.delivery;
          const dueAt = each.status === "pending" ? clock.now() + each.ms : null;
          const tried = { seq, tries, status: each.status, dueAt, responseStatus: null, error: null };
          return storage.deliveries.settle({ tries: [tried] });
        }
        case "putBack": {
          if (one === undefined) return undefined;
          side.held = side.held.filter((other) => other !== one);
          const { seq, tries, dueAt } = one.delivery;
          const claims = [{ seq, tries, heldUntil: dueAt ?? 0, dueAt: clock.now() + each.ms }];
          return storage.deliveries.putBack({ claims });
        }
        case "step":
          return void clock.step(each.back ? -each.ms : 7 * each.ms);
        case "disable":
          return (await storage.tenants.setDisabled({ id: each.tenant, disabled: each.back }))?.disabled;
        case "prune":
          await storage.tasks.prune({ retentionMs: 20 * each.ms, rejectedMax: 10, limit: 1_000 });
          return undefined;
      }
    }
  });
}

/** Some URLs were stored before hosts had to be plain. */
const URLS = [
  "https://Hooks.Example.:8443/a:b?c#d",
  "http://hooks.example?a/b",
  "http://hooks.example\\a",
  "http://[2001:DB8::1]:80/",
  "http://[::1",
  "http:hooks.example",
  "http://bücher.example/",
  `http://${"long.".repeat(400)}example/`,
];

const TENANTS = ["a", "b", "c"];

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

const step = fc.record({
  do: fc.oneof(
    { weight: 6, arbitrary: fc.constant("end" as const) },
    { weight: 4, arbitrary: fc.constant("claim" as const) },
    { weight: 4, arbitrary: fc.constant("settle" as const) },
    { weight: 1, arbitrary: fc.constant("putBack" as const) },
    { weight: 2, arbitrary: fc.constant("step" as const) },
    { weight: 1, arbitrary: fc.constant("disable" as const) },
    { weight: 1, arbitrary: fc.constant("prune" as const) },
  ),
  tenant: fc.constantFrom(...TENANTS),
  host: fc.constantFrom("x", "y", "z"),
  pick: fc.nat({ max: 20 }),
  ms: fc.nat({ max: 10 }),
  back: fc.oneof({ weight: 1, arbitrary: fc.constant(true) }, { weight: 4, arbitrary: fc.constant(false) }),
  status: fc.constantFrom<DeliveryStatus>("delivered", "delivered", "pending", "failed"),
  shares: fc.record({
    slots: fc.integer({ min: 1, max: 12 }),
    tenantFactor: fc.constantFrom(1, 3, 100),
    unprovenSlots: fc.integer({ min: 0, max: 6 }),
    unprovenFactor: fc.constantFrom(1, 100),
    perHost: fc.integer({ min: 1, max: 4 }),
    perUnprovenHost: fc.integer({ min: 1, max: 2 }),
  }),
});
