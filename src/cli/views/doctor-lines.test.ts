import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { doctorLines } from "./doctor-lines.ts";

test("an examination shows each check with what was found, and below it what is wrong", () => {
  const report = {
    ok: false,
    checks: [
      { name: "storage", ok: true, summary: "The storage responds.", findings: [] },
      { name: "clock", ok: false, summary: "The clocks disagree.", findings: ["By 3 s.", "a\u001b[31m\nb"] },
    ],
  };
  expect(doctorLines(report).map((line) => stripVTControlCharacters(line))).toEqual([
    "✓ storage  The storage responds.",
    "✗ clock    The clocks disagree.",
    "           - By 3 s.",
    "           - a�[31m b",
  ]);
});
