import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { namesIn, section } from "../docs/markdown.ts";
import { CHECKS } from "./checks/index.ts";
import { FAULT_KINDS } from "./plan.ts";

const PAGE = readFileSync(join(import.meta.dirname, "..", "..", "docs", "chaos.md"), "utf8");

test("docs/chaos.md names every fault and every check, and no other", () => {
  expect(namesIn(section(PAGE, "faults"))).toEqual([...FAULT_KINDS]);
  expect(namesIn(section(PAGE, "checks"))).toEqual(Object.keys(CHECKS));
});
