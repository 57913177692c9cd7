import { expect, test } from "vitest";
import { Places } from "./places.ts";

function refusalOf(take: () => unknown): unknown {
  try {
    take();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("no key takes the places of all others, and each has its own back once it gives them back", () => {
  const places = new Places({ max: 5, maxEach: 2, what: "streams" });
  const [first] = [places.take("a"), places.take("a")];
  expect(refusalOf(() => places.take("a"))).toMatchObject({
    code: "rate_limited",
    message: "2 streams are open with this API key, and there can be no more: close some",
    details: { open: 2, max: 2 },
  });
  places.take("b");
  first?.();
  first?.();
  expect(places.taken).toBe(2);
  places.take("a");
  expect(refusalOf(() => places.take("a"))).toBeDefined();
});

test("where nobody is asked for a key there is one limit for all", () => {
  const places = new Places({ max: 3, maxEach: 1, what: "streams" });
  for (let place = 0; place < 3; place++) places.take(null);
  expect(refusalOf(() => places.take(null))).toMatchObject({
    message: "3 streams are open, and there can be no more: close some",
  });
});
