import { expect, test } from "vitest";
import { settleTry, type TryOutcome } from "./try-outcome.ts";

const NOW = 1_000_000;

function settle(outcome: TryOutcome, { tries = 1, random = 0.5 } = {}) {
  return settleTry(outcome, { tries, now: NOW, random: () => random });
}

function answered(status: number, retryAfterMs?: number): TryOutcome {
  return { kind: "answered", status, retryAfterMs };
}

const RESET: TryOutcome = { kind: "failed", error: "reset", permanent: false };

test.each([200, 201, 202, 204, 299])("%i is delivered", (status) => {
  expect(settle(answered(status))).toEqual({
    status: "delivered",
    dueAt: null,
    responseStatus: status,
    error: null,
  });
});

test.each([
  [301, "HTTP 301: redirects are not followed"],
  [308, "HTTP 308: redirects are not followed"],
  [400, "HTTP 400"],
  [404, "HTTP 404"],
  [500, "HTTP 500"],
])("%i is tried again", (status, error) => {
  expect(settle(answered(status))).toEqual({
    status: "pending",
    dueAt: NOW + 1_000,
    responseStatus: status,
    error,
  });
});

test("is tried three times more, ever later, and then no more", () => {
  const waits = [1, 2, 3, 4].map((tries) => settle(RESET, { tries }));
  expect(waits.map(({ status, dueAt }) => [status, dueAt && dueAt - NOW])).toEqual([
    ["pending", 1_000],
    ["pending", 5_000],
    ["pending", 25_000],
    ["failed", null],
  ]);
});

test("chance makes a wait up to a fifth shorter or longer", () => {
  expect(settle(RESET, { random: 0 }).dueAt).toBe(NOW + 800);
  expect(settle(RESET, { random: 0.999_999 }).dueAt).toBe(NOW + 1_200);
});

test("410 and what must not be called are not tried again", () => {
  expect(settle(answered(410))).toMatchObject({ status: "failed", error: "HTTP 410" });
  expect(settle({ kind: "failed", error: "forbidden", permanent: true })).toMatchObject({ status: "failed" });
});

test.each([
  [429, 60_000, 60_000],
  [503, 60_000, 60_000],
  [503, 3_600_000, 300_000],
  [503, 10, 1_000],
  [500, 60_000, 1_000],
  [302, 60_000, 1_000],
])("%i that asks for %i ms waits %i", (status, askedMs, waitMs) => {
  expect(settle(answered(status, askedMs)).dueAt).toBe(NOW + waitMs);
});

test("an endless error is cut, without cutting a character in two", () => {
  const { error } = settle({ kind: "failed", error: `${"x".repeat(499)}🎈🎈`, permanent: false });
  expect(error).toBe(`${"x".repeat(499)}\u{fffd}`);
});
