import { expect, test } from "vitest";
import { parseCommandLine } from "./command-line.ts";

test("takes twenty minutes on SQLite by default", () => {
  expect(parseCommandLine([])).toEqual({ minutes: 20, storage: "sqlite", jsonFile: null });
  expect(parseCommandLine(["--minutes", "4", "--storage", "postgres"])).toMatchObject({
    minutes: 4,
    storage: "postgres",
  });
});

test("takes the minutes without their name, which npm keeps to itself", () => {
  expect(parseCommandLine(["5"]).minutes).toBe(5);
});

test("refuses what it could not do, and says what to write", () => {
  for (const args of [
    ["--minutes", "0"],
    ["--help"],
    ["--minuets", "5"],
    ["soon"],
    ["--storage", "mysql"],
    ["3", "--storage", "postgres"],
  ])
    expect(() => parseCommandLine(args)).toThrow(/npm run soak/);
});
