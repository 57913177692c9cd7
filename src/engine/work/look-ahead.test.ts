import { expect, test } from "vitest";
import { LINGER_MS, LookAhead } from "./look-ahead.ts";

function measured({ runMs, exchangeMs }: { runMs: number; exchangeMs: number }): LookAhead {
  const lookAhead = new LookAhead();
  lookAhead.ran("tasks", runMs);
  lookAhead.exchanged(exchangeMs);
  return lookAhead;
}

test("claims ahead what ends while claims are under way", () => {
  const lookAhead = measured({ runMs: 100, exchangeMs: 10 });
  expect(lookAhead.needed("tasks", 400)).toBeCloseTo(40);
  expect(lookAhead.target("tasks", 400)).toBe(4 * (2 * 10 + LINGER_MS));
});

test("claims nothing ahead where less than one task ends during an exchange, or nothing is known", () => {
  const lookAhead = measured({ runMs: 10_000, exchangeMs: 20 });
  expect(lookAhead.target("tasks", 400)).toBe(0);
  expect(lookAhead.target("tasks", 4)).toBe(0);
  expect(lookAhead.target("main", 400)).toBe(0);
});

test("claims no more than four tasks ahead for each slot, however short they are", () => {
  expect(measured({ runMs: 0, exchangeMs: 10 }).target("tasks", 50)).toBe(200);
  expect(measured({ runMs: 1, exchangeMs: 500 }).target("tasks", 2)).toBe(8);
});

test("follows tasks that become longer, and exchanges that become shorter", () => {
  const lookAhead = measured({ runMs: 1, exchangeMs: 50 });
  const before = lookAhead.target("tasks", 10);
  for (let run = 0; run < 100; run += 1) lookAhead.ran("tasks", 10_000);
  for (let exchange = 0; exchange < 100; exchange += 1) lookAhead.exchanged(5);
  expect([before, lookAhead.target("tasks", 10)]).toEqual([40, 0]);
});

test("claims nothing ahead after a stall, until a task has ended", () => {
  const lookAhead = measured({ runMs: 1, exchangeMs: 10 });
  lookAhead.stalled("tasks");
  expect(lookAhead.target("tasks", 10)).toBe(0);
  lookAhead.ran("tasks", 5);
  expect(lookAhead.target("tasks", 10)).toBeGreaterThan(0);
});
