import { describe, expect, test } from "vitest";
import { countOf, countOfBatch, flood, noRequests } from "./flood.ts";

const UNANSWERED = { status: 0, body: "" };

test("a request is accepted, refused or unanswered", () => {
  expect(countOf({ status: 202, body: "" })).toEqual({ accepted: 1, refused: 0, unanswered: 0 });
  expect(countOf({ status: 429, body: "" })).toEqual({ accepted: 0, refused: 1, unanswered: 0 });
  expect(countOf(UNANSWERED)).toEqual({ accepted: 0, refused: 0, unanswered: 1 });
});

test("each task of a batch is accepted or refused", () => {
  const batch = { status: 202, body: JSON.stringify({ submitted: 60, count: 100 }) };
  expect(countOfBatch(batch, 100)).toEqual({ accepted: 60, refused: 40, unanswered: 0 });
  expect(countOfBatch({ status: 429, body: "" }, 100)).toEqual({ accepted: 0, refused: 100, unanswered: 0 });
  expect(countOfBatch(UNANSWERED, 100)).toEqual({ accepted: 0, refused: 0, unanswered: 100 });
});

describe("a flood", () => {
  test("has no more requests on their way than connections, numbers them and adds up", async () => {
    const counted = noRequests();
    const numbers: number[] = [];
    let onTheWay = 0;
    let most = 0;
    await flood({
      counted,
      connections: 3,
      goesOn: () => numbers.length < 12,
      request: async (n) => {
        numbers.push(n);
        most = Math.max(most, ++onTheWay);
        await new Promise(setImmediate);
        onTheWay -= 1;
        return countOf(n === 4 ? UNANSWERED : { status: 200, body: "" });
      },
    });
    expect(most).toBe(3);
    expect(numbers).toEqual(numbers.map((_, position) => position));
    expect(counted).toEqual({ accepted: numbers.length - 1, refused: 0, unanswered: 1 });
  });

  test("keeps to its rate over all connections", async () => {
    let sent = 0;
    const begun = performance.now();
    await flood({
      counted: noRequests(),
      connections: 4,
      perSecond: 100,
      goesOn: () => sent < 9,
      request: async () => {
        sent += 1;
        return countOf({ status: 200, body: "" });
      },
    });
    expect(performance.now() - begun).toBeGreaterThan((sent - 1) * 10 - 5);
  });
});
