import { expect, test } from "vitest";
import { withLazyJson } from "../../storage/lazy-json.ts";
import { FirePace } from "./fire-pace.ts";

function makePace(perSecond: number | null = 2) {
  const state = { now: 0, perSecond };
  const pace = new FirePace({ perSecond: () => state.perSecond, monotonic: () => state.now });
  const fire = (...tenants: string[]) => {
    const allowed = pace.allowed(tenants.map((tenant) => ({ tenant })));
    pace.used(allowed);
    return allowed.map(({ tenant }) => tenant).join("");
  };
  return { state, fire };
}

test("a tenant fires ten seconds' worth at once, then at its pace, and others are not held up", () => {
  const { state, fire } = makePace();
  expect(fire(..."aaaaaaaaaaaaaaaaaaaaaaaabb")).toBe(`${"a".repeat(20)}bb`);
  expect(fire("a", "b", "a")).toBe("b");
  state.now = 500;
  expect(fire("a", "a")).toBe("a");
  state.now = 3_600_000;
  expect(fire(..."a".repeat(30))).toBe("a".repeat(20));
});

test("a tenant that has used up its bucket fires a tenth of a second's worth together", () => {
  const { state, fire } = makePace(100);
  expect(fire(..."a".repeat(1_200))).toBe("a".repeat(1_000));
  state.now = 90;
  expect(fire(..."aaaaaaaaaaaab")).toBe("b");
  state.now = 100;
  expect(fire(..."aaaaaaaaaaaab")).toBe(`${"a".repeat(10)}b`);
});

test("what may fire but did not costs nothing", () => {
  const pace = new FirePace({ perSecond: () => 1, monotonic: () => 0 });
  const due = Array.from({ length: 10 }, () => ({ tenant: "a" }));
  expect(pace.allowed(due)).toHaveLength(10);
  expect(pace.allowed(due)).toHaveLength(10);
  pace.used(due.slice(0, 4));
  expect(pace.allowed(due)).toHaveLength(6);
});

test("without a pace everything may fire, and earlier fires do not count once there is one", () => {
  const { state, fire } = makePace(null);
  expect(fire(..."a".repeat(100))).toBe("a".repeat(100));
  state.perSecond = 1;
  expect(fire(..."a".repeat(100))).toBe("a".repeat(10));
});

test("tenants that are idle again are forgotten", () => {
  const { state, fire } = makePace(1);
  for (let n = 0; n < 3_000; n++) {
    state.now += 1_000;
    expect(fire(`t${n} `)).toBe(`t${n} `);
  }
  expect(fire("t0 ")).toBe("t0 ");
});

test("a large schedule counts as many, and one fires even if it counts more than the bucket holds", () => {
  const state = { now: 0 };
  const pace = new FirePace({ perSecond: () => 1, monotonic: () => state.now });
  const large = withLazyJson<{ tenant: string; work: unknown }, "work">(
    { tenant: "a" },
    { work: JSON.stringify("x".repeat(40_000)) },
  );
  expect(pace.allowed([large, { tenant: "a" }])).toEqual([large]);
  pace.used([large]);
  // 40 000 bytes are 20 fires: ten more than were in the bucket.
  state.now = 10_900;
  expect(pace.allowed([{ tenant: "a" }])).toEqual([]);
  state.now = 11_000;
  expect(pace.allowed([{ tenant: "a" }])).toHaveLength(1);
});
