import { expect, test } from "vitest";
import { RequestSlots } from "./request-slots.ts";

const a = { key: "a", tenant: "one" };
const b = { key: "b", tenant: "one" };
const other = { key: "c", tenant: "other" };

function refusalOf(take: () => unknown): unknown {
  try {
    take();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("no key takes the slots of all others, and each gets its own again once it frees them", () => {
  const slots = new RequestSlots({ max: 5, maxEach: 2, what: "streams", hasSecondTenant: () => false });
  const [first] = [slots.take(a), slots.take(a)];
  expect(refusalOf(() => slots.take(a))).toMatchObject({
    code: "rate_limited",
    message: "2 streams are open with this API key, and there can be no more: close some",
    details: { open: 2, max: 2 },
  });
  slots.take(b);
  first?.();
  first?.();
  expect(slots.taken).toBe(2);
  slots.take(a);
  expect(refusalOf(() => slots.take(a))).toBeDefined();
});

test("a server without keys has one limit for all", () => {
  const slots = new RequestSlots({ max: 3, maxEach: 1, what: "streams", hasSecondTenant: () => false });
  for (let taken = 0; taken < 3; taken++) slots.take({ key: null, tenant: "one" });
  expect(refusalOf(() => slots.take({ key: null, tenant: "one" }))).toMatchObject({
    message: "3 streams are open, and there can be no more: close some",
  });
});

test("all keys of a tenant together take half of the slots if there is a second tenant", () => {
  const slots = new RequestSlots({ max: 6, maxEach: 2, what: "streams", hasSecondTenant: () => true });
  const free = slots.take(a);
  slots.take(a);
  slots.take(b);
  expect(refusalOf(() => slots.take(b))).toMatchObject({
    code: "rate_limited",
    message: "3 streams of this tenant are open, and there can be no more: close some",
    details: { open: 3, max: 3 },
  });
  slots.take(other);
  free();
  slots.take(b);
});
