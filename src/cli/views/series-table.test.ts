import { expect, test } from "vitest";
import { seriesLines } from "./series-table.ts";

test("shows a line for each series, with a bar for each point", () => {
  const lines = seriesLines({
    from: "2026-05-11T07:00:00.000Z",
    step: 60,
    series: [
      { key: "main", metric: "done", points: [0, 4, 8] },
      { key: "main", metric: "runMs", points: [null, { p50: 10, p95: 200, max: 210 }, null] },
    ],
  });
  expect(lines.map((line) => line.trimEnd())).toEqual([
    "KEY   METRIC  TOTAL    PEAK  LAST  OVER TIME",
    "main  done       12       8     8   ▅█",
    "main  runMs       –  200 ms  0 ms   █",
  ]);
});

test("says so when nothing happened", () => {
  expect(seriesLines({ from: "2026-05-11T07:00:00.000Z", step: 60, series: [] })).toEqual([
    "There are no data for that time.",
  ]);
});
