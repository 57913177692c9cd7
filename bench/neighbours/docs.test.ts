import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ATTACKS } from "./attack-names.ts";

test("docs/benchmarks.md describes each attack, in the order in which they are measured", () => {
  const page = readFileSync(new URL("../../docs/benchmarks.md", import.meta.url), "utf8");
  const table = /<!-- attacks -->([\s\S]*?)<!-- \/attacks -->/.exec(page)?.[1] ?? "";
  const names = [...table.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name);
  expect(names).toEqual([...ATTACKS]);
});
