import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

interface LockedPackage {
  resolved?: string;
  link?: boolean;
  optionalDependencies?: Record<string, string>;
}

const ROOT = join(import.meta.dirname, "..");

describe.each([
  ["package-lock.json", "npm run lockfile"],
  ["bench/peers/package-lock.json", "node scripts/complete-lockfile.ts bench/peers"],
])("%s", (file, remedy) => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, file), "utf8")) as {
    packages: Record<string, LockedPackage>;
  };

  test("installs through any registry", () => {
    const bound = Object.entries(packages).filter(
      ([, { resolved, link }]) => resolved !== undefined && !link,
    );
    expect(bound.map(([path]) => path)).toEqual([]);
  });

  test(`has the packages of every platform: if not, run \`${remedy}\``, () => {
    const names = new Set(Object.keys(packages).map((path) => path.replace(/^.*node_modules\//, "")));
    const wanted = Object.values(packages).flatMap((entry) => Object.keys(entry.optionalDependencies ?? {}));
    expect(wanted.filter((name) => !names.has(name))).toEqual([]);
  });
});
