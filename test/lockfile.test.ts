import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

interface LockedPackage {
  resolved?: string;
  link?: boolean;
  optionalDependencies?: Record<string, string>;
}

const file = join(import.meta.dirname, "..", "package-lock.json");
const { packages } = JSON.parse(readFileSync(file, "utf8")) as { packages: Record<string, LockedPackage> };

test("the lockfile installs through any registry", () => {
  const bound = Object.entries(packages).filter(([, { resolved, link }]) => resolved !== undefined && !link);
  expect(bound.map(([path]) => path)).toEqual([]);
});

test("the lockfile has the packages of every platform: if not, run `npm run lockfile`", () => {
  const names = new Set(Object.keys(packages).map((path) => path.replace(/^.*node_modules\//, "")));
  const wanted = Object.values(packages).flatMap((entry) => Object.keys(entry.optionalDependencies ?? {}));
  expect(wanted.filter((name) => !names.has(name))).toEqual([]);
});
