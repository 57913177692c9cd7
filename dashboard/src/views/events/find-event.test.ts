import { expect, test } from "vitest";
import type { EventPage, EventPageFilter, RotaEvent } from "../../../../src/client/index.ts";
import { firstAfter } from "./find-event.ts";

/** A log whose numbers have gaps, since other tenants use the same numbers. */
const LOG = Array.from({ length: 1_000 }, (_each, index) => ({
  seq: 7 + index * 13,
  timestamp: new Date(index * 1_000).toISOString(),
})) as readonly RotaEvent[];

let reads = 0;

async function read({ after, before, limit = 100 }: EventPageFilter): Promise<EventPage> {
  reads += 1;
  const rows = LOG.filter(({ seq }) => seq > (after ?? -1) && seq < (before ?? Number.POSITIVE_INFINITY));
  const events = (after === undefined ? rows.toReversed() : rows).slice(0, limit);
  return { events, count: events.length, next: null };
}

test.each([0, 1, 500_500, 998_000])(
  "the list before it begins with the last event at %d ms",
  async (atMs) => {
    reads = 0;
    const before = (await firstAfter(atMs, read)) ?? 0;
    const [first] = (await read({ before, limit: 1 })).events;
    expect(first?.timestamp).toBe(new Date(Math.floor(atMs / 1_000) * 1_000).toISOString());
    expect(reads).toBeLessThan(20);
  },
);

test("a time after the last event needs no number, and one before the first leaves nothing", async () => {
  expect(await firstAfter(999_000, read)).toBeUndefined();
  const before = (await firstAfter(-1, read)) ?? 0;
  expect((await read({ before })).events).toEqual([]);
});
