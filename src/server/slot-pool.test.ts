import { expect, test } from "vitest";
import { SlotPool } from "./slot-pool.ts";

function refusalOf(take: () => unknown): unknown {
  try {
    take();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("no key takes the slots of all others, and each has its own back once it gives them back", () => {
  const slots = new SlotPool({ max: 5, maxEach: 2, what: "streams" });
  const [first] = [slots.take("a"), slots.take("a")];
  expect(refusalOf(() => slots.take("a"))).toMatchObject({
    code: "rate_limited",
    message: "2 streams are open with this API key, and there can be no more: close some",
    details: { open: 2, max: 2 },
  });
  slots.take("b");
  first?.();
  first?.();
  expect(slots.taken).toBe(2);
  slots.take("a");
  expect(refusalOf(() => slots.take("a"))).toBeDefined();
});

test("a server without keys has one limit for all callers", () => {
  const slots = new SlotPool({ max: 3, maxEach: 1, what: "streams" });
  for (let slot = 0; slot < 3; slot++) slots.take(null);
  expect(refusalOf(() => slots.take(null))).toMatchObject({
    message: "3 streams are open, and there can be no more: close some",
  });
});
