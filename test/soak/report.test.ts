import { expect, test } from "vitest";
import type { Look } from "./look.ts";
import { reportLooks } from "./report.ts";

function looks(at: (place: number) => Look): Look[] {
  return Array.from({ length: 30 }, (_, place) => at(place));
}

test("names what grew, and only that", () => {
  const { table, faults } = reportLooks(looks((place) => ({ rss: 100 + place * 2, heap: 30, handles: 25 })));
  expect(faults).toEqual(["memory of the process: growing"]);
  expect(table).toMatch(/memory of the process .*109 MiB.* growing/);
  expect(table).toMatch(/open files and sockets .*25\.0.* level/);
});

test("leaves out what does not exist where it ran", () => {
  const { table } = reportLooks(looks(() => ({ rss: 100 })));
  expect(table).not.toContain("write-ahead log");
});

test("passes over looks that missed a quantity", () => {
  const { faults } = reportLooks(looks((place) => (place % 2 === 0 ? { rss: 100 } : { rss: 100, lag50: 1 })));
  expect(faults).toEqual([]);
});
