import { expect, test } from "vitest";
import { openKeyedServer } from "../../../test/support/keyed-server.ts";
import { createTenant } from "../../../test/support/tenants.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { RequestLimits } from "./request-limits.ts";

const OPTIONS = {
  ...{ perSecond: 10, burst: 10, maxExpensive: 2 },
  ofTenant: { perSecond: 15, burst: 15, maxExpensive: 3 },
};
const A = { key: "a", tenant: "one" };
const B = { key: "b", tenant: "one" };
const OTHER = { key: "c", tenant: "other" };

function openLimits(hasSecondTenant = true) {
  const clock = new ManualClock();
  const limits = new RequestLimits(OPTIONS, {
    clock,
    hasSecondTenant: () => hasSecondTenant,
    onRefused: () => {},
  });
  return { clock, limits };
}

test("all keys of a tenant share its bucket, and another tenant has its own", async () => {
  const { limits, clock } = openLimits();
  limits.take(A, 10);
  limits.take(B, 5);
  expect(() => limits.take(B)).toThrow(
    expect.objectContaining({
      code: "rate_limited",
      message: expect.stringContaining("the API keys of this tenant together make more than 15 requests"),
      details: { cost: 1, perSecond: 15, burst: 15 },
    }),
  );
  limits.take(OTHER, 10);
  await clock.advance(1_000);
  limits.take(B, 10);
});

test("a request that the tenant's bucket refuses takes nothing from the key's", () => {
  const { limits } = openLimits();
  limits.take(A, 10);
  expect(() => limits.take(B, 10)).toThrow(/have 15 a second/);
  limits.settle(A, -10);
  limits.take(B, 10);
});

test("unused units are given back to both buckets", () => {
  const { limits } = openLimits();
  limits.take(A, 10);
  limits.settle(A, -9);
  limits.take(B, 10);
  limits.take(A, 4);
  expect(() => limits.take(A)).toThrow(/of this tenant/);
});

test("the expensive requests of all keys of a tenant are few, and each that ends lets another begin", () => {
  const { limits } = openLimits();
  const leave = limits.enter(A);
  limits.enter(A);
  limits.enter(B);
  expect(() => limits.enter(B)).toThrow(/3 expensive requests of the API keys of this tenant together/);
  limits.enter(OTHER);
  leave();
  // Twice is once.
  leave();
  limits.enter(B);
  expect(() => limits.enter(A)).toThrow(/of this tenant/);
});

test("a tenant that is alone has the limits of its keys only", () => {
  const { limits } = openLimits(false);
  for (const key of ["a", "b", "c"]) limits.take({ key, tenant: "one" }, 10);
  for (const key of ["a", "b", "c"])
    for (let count = 0; count < 2; count += 1) limits.enter({ key, tenant: "one" });
});

test("more keys and task tokens give a tenant no larger part of the server", async () => {
  const rateLimit = { ...OPTIONS, ofTenant: { perSecond: 1, burst: 12, maxExpensive: 3 } };
  const { key, askWith, rota } = await openKeyedServer({ start: false, server: { rateLimit } });
  const { id } = await createTenant(rota);
  const keys = await Promise.all([1, 2, 3].map(() => key({ tenantId: id })));
  const statuses: number[] = [];
  for (const own of keys) {
    for (let count = 0; count < 5; count += 1) statuses.push((await askWith(own, "/tasks/stats")).status);
  }
  expect(statuses).toEqual([...Array(12).fill(200), ...Array(3).fill(429)]);
  expect((await askWith(await key({}), "/tasks/stats")).status).toBe(200);
});
