import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LONGEST } from "./longest-first.ts";

test("the files that run first are there", () => {
  const root = join(import.meta.dirname, "..", "..");
  expect(LONGEST.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});
