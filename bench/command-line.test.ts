import { expect, test } from "vitest";
import { parseCommandLine } from "./command-line.ts";
import { FULL, QUICK } from "./job.ts";
import { ATTACKS } from "./neighbours/attack-names.ts";

test("measures everything but the slow parts by default", () => {
  const { parts, sizes, turns } = parseCommandLine([]);
  expect(parts).toContain("sqlite");
  expect(parts).not.toContain("peers");
  expect(parts).not.toContain("neighbours");
  expect(parts).not.toContain("lists");
  expect([sizes, turns]).toEqual([FULL, 3]);
});

test("runs all attacks on SQLite, with as many tasks as the sizes say, by default", () => {
  const { parts, storages, neighbours } = parseCommandLine(["neighbours"]);
  expect([parts, storages]).toEqual([["neighbours"], ["sqlite"]]);
  expect(neighbours).toEqual({ attacks: ATTACKS, sizes: {} });
});

test("runs the attacks that are named, in the order in which they are measured", () => {
  const args = ["neighbours", "--quick", "--attack", "reads", "--attack", "memory", "--storage", "both"];
  const { sizes, storages, neighbours } = parseCommandLine([...args, "--tasks", "400000"]);
  expect([sizes, storages]).toEqual([QUICK, ["sqlite", "postgres"]]);
  expect(neighbours).toEqual({ attacks: ["memory", "reads"], sizes: { storedTasks: 400_000 } });
});

test.each([
  ["a part", ["neighbors"], /there is no part "neighbors"/],
  ["an attack", ["neighbours", "--attack", "read"], /there is no attack "read"/],
  ["a storage", ["neighbours", "--storage", "mysql"], /--storage must be sqlite, postgres, both/],
  ["a storage by an inherited name", ["neighbours", "--storage", "toString"], /--storage must be/],
  ["a number of tasks", ["neighbours", "--tasks", "many"], /--tasks must be a number from 1/],
  ["an option", ["--fast"], /Unknown option '--fast'/],
  ["a number of turns", ["--turns", "0"], /--turns must be a number from 1/],
])("refuses %s that it does not know, and says what to write", (_, args, said) => {
  expect(() => parseCommandLine(args)).toThrow(said);
  expect(() => parseCommandLine(args)).toThrow(/npm run bench/);
});
