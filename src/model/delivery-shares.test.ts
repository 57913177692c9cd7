import fc from "fast-check";
import { expect, test } from "vitest";
import { DeliveryCount, type DeliveryShares, type HeldDelivery } from "./delivery-shares.ts";

const SHARES: DeliveryShares = {
  slots: 16,
  tenantFactor: 3,
  unprovenSlots: 8,
  unprovenFactor: 1,
  perHost: 4,
  perUnprovenHost: 1,
};

/** Adds each of these in turn, again and again, until the shares allow no more. Returns all deliveries that are held then. */
function fill(held: readonly HeldDelivery[], wanted: readonly HeldDelivery[]): HeldDelivery[] {
  const all = [...held];
  const count = new DeliveryCount(SHARES, held);
  for (let changed = true; changed; ) {
    changed = false;
    for (const each of wanted) {
      if (count.isOver(each) || count.fullTenants(each).has(each.tenant)) continue;
      if (count.fullHosts(each).has(each.host)) continue;
      count.add(each);
      all.push(each);
      changed = true;
    }
  }
  return all;
}

function hosts(tenant: string, proven: boolean, number = 20): HeldDelivery[] {
  return Array.from({ length: number }, (_, index) => ({ tenant, host: `host-${index}`, proven }));
}

/** Tenants take turns. */
function inTurn(...tenants: readonly HeldDelivery[][]): HeldDelivery[] {
  return (tenants[0] ?? []).flatMap((_, index) => tenants.flatMap((wanted) => wanted[index] ?? []));
}

function held(all: readonly HeldDelivery[], tenant: string): number {
  return all.filter((each) => each.tenant === tenant).length;
}

test("a single tenant gets most slots, each of its hosts few, and its new hosts few together", () => {
  expect(fill([], hosts("a", true))).toHaveLength(12);
  expect(fill([], hosts("a", true, 1))).toHaveLength(4);
  expect(fill([], hosts("a", false))).toHaveLength(4);
  expect(fill([], hosts("a", false, 1))).toHaveLength(1);
});

test("hosts that respond get slots beside hosts that do not", () => {
  const hostile = fill([], hosts("a", false));
  const both = fill(hostile, hosts("a", true));
  expect(both.filter(({ proven }) => proven)).toHaveLength(8);
});

test("another tenant gets slots, and several tenants get equal shares", () => {
  const alone = fill([], hosts("a", true));
  expect(held(fill(alone, hosts("b", true)), "b")).toBe(3);
  const together = fill([], inTurn(hosts("a", true), hosts("b", true)));
  expect([held(together, "a"), held(together, "b")]).toEqual([7, 7]);
  expect(held(fill(together, hosts("c", true)), "c")).toBeGreaterThan(0);
});

test("the same is true of hosts that do not respond", () => {
  const alone = fill([], hosts("a", false));
  expect(held(fill(alone, hosts("b", false)), "b")).toBe(2);
  const many = fill(
    [],
    ["a", "b", "c", "d", "e", "f"].flatMap((tenant) => hosts(tenant, false)),
  );
  expect(many.length).toBeLessThanOrEqual(8);
  expect(fill(many, hosts("z", true)).length, "those that answer have the other half").toBeGreaterThan(12);
});

test("two tenants that follow one get about equal shares once its deliveries have ended", () => {
  let all = fill([], hosts("a", true));
  const both = inTurn(hosts("a", true), hosts("b", true));
  for (let ended = 0; ended < 40; ended += 1) all = fill(all.slice(1), both);
  expect(Math.abs(held(all, "a") - held(all, "b"))).toBeLessThanOrEqual(2);
});

test("never more than all slots are held, and a tenant without any gets a free one", () => {
  const delivery = fc.record({
    tenant: fc.constantFrom("a", "b", "c", "d"),
    host: fc.constantFrom("x", "y", "z"),
    proven: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.array(delivery, { maxLength: 16 }),
      fc.array(delivery, { maxLength: 30 }),
      (before, wanted) => {
        const start = fill([], before);
        const all = fill(start, wanted);
        expect(all.length).toBeLessThanOrEqual(SHARES.slots);
        expect(all.filter(({ proven }) => !proven).length).toBeLessThanOrEqual(SHARES.unprovenSlots);
        const isLeft = all.length < SHARES.slots;
        const newcomer = { tenant: "new", host: "new", proven: true };
        expect(fill(all, [newcomer]).length > all.length).toBe(isLeft);
      },
    ),
  );
});
