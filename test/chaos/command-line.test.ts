import { expect, test } from "vitest";
import { parseCommandLine } from "./command-line.ts";

test("takes a seed, a time and a storage", () => {
  const args = ["--seed", "7", "--minutes", "0.5", "--storage", "postgres"];
  expect(parseCommandLine(args)).toEqual({ seed: 7, minutes: 0.5, storages: ["postgres"] });
});

test("left to itself it takes both storages in turns, and any seed", () => {
  const { seed, storages } = parseCommandLine([]);
  expect(storages).toEqual(["sqlite", "postgres"]);
  expect(Number.isSafeInteger(seed)).toBe(true);
});

test.each([
  [["--seed", "x"], "--seed must be"],
  [["--minutes", "0"], "--minutes must be"],
  [["--storage", "paper"], "--storage must be sqlite or postgres"],
  [["5"], "options go behind"],
  [["--sed", "7"], "Unknown option '--sed'"],
  [["--help"], "--minutes N"],
])("%j is refused, with what to write instead", (args, said) => {
  expect(() => parseCommandLine(args)).toThrow(said);
  expect(() => parseCommandLine(args)).toThrow("npm run chaos");
});
