import { expect, test } from "vitest";
import { previewLines } from "./schedule-preview.ts";

const NOW = Date.parse("2026-05-08T05:00:00Z");

test("a preview shows what was understood, each due time with how far away it is, and notes below", () => {
  expect(
    previewLines(
      {
        normalized: "every Fri at 09:00",
        kind: "recurring",
        next: ["2026-05-08T09:00:00+02:00", "2026-05-15T09:00:00+02:00"],
        notes: ["In Europe/Berlin the clock skips.", "It goes back."],
      },
      NOW,
    ),
  ).toEqual([
    "every Fri at 09:00 (recurring)",
    "",
    "TIME                       DUE",
    "2026-05-08T09:00:00+02:00  in 2 h, Fri 09:00",
    "2026-05-15T09:00:00+02:00  in 7 d, Fri 2026-05-15 09:00",
    "",
    "In Europe/Berlin the clock skips.",
    "It goes back.",
  ]);
});

test("where there are no notes, the table is the end", () => {
  const next = ["2026-05-08T05:30:00+00:00"];
  expect(previewLines({ normalized: "in 30 minutes", kind: "once", next, notes: [] }, NOW)).toEqual([
    "in 30 minutes (once)",
    "",
    "TIME                       DUE",
    "2026-05-08T05:30:00+00:00  in 30 min, Fri 05:30",
  ]);
});
