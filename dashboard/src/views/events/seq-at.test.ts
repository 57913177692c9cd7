import { expect, test } from "vitest";
import { type ReadOne, seqAt } from "./seq-at.ts";

/** Events of other tenants lie between these. */
const LOG = [3, 4, 9, 30, 31, 32, 900].map((seq) => ({
  seq,
  timestamp: new Date(seq * 1_000).toISOString(),
}));

const readOne: ReadOne = async ({ after, before = Number.POSITIVE_INFINITY }) =>
  after === undefined
    ? LOG.findLast(({ seq }) => seq < before)
    : LOG.find(({ seq }) => seq > after && seq < before);

/** The number of the last event of the list that begins before the number. */
async function lastUpTo(time: number): Promise<number | undefined> {
  const before = await seqAt(time, readOne);
  return (await readOne(before === undefined ? {} : { before }))?.seq;
}

test("finds the last event up to a time", async () => {
  expect(await lastUpTo(9_000)).toBe(9);
  expect(await lastUpTo(29_999)).toBe(9);
  expect(await lastUpTo(31_500)).toBe(31);
  expect(await lastUpTo(899_999)).toBe(32);
});

test("a time after the last event is the end of the log, and one before the first has none", async () => {
  expect(await seqAt(900_000, readOne)).toBeUndefined();
  expect(await lastUpTo(2_000)).toBeUndefined();
});

test("an empty log has no such event", async () => {
  expect(await seqAt(0, async () => undefined)).toBeUndefined();
});
