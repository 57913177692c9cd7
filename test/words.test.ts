import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");

/** Words that have no right use in the sources and pages, and what to write instead: see docs/glossary.md. */
const WORDS: Readonly<Record<string, string>> = {
  handfuls: "groups",
  handful: "group",
  firer: "schedule ticker",
  incarnation: "node membership",
  outlet: "response stream",
};

test("sources and pages use the words of the glossary", () => {
  const files = globSync(["src/**/*.{ts,sql}", "docs/**/*.md", "dashboard/src/**/*.{ts,tsx}", "*.md"], {
    cwd: ROOT,
    // Migrations that were released are never changed.
    exclude: ["src/storage/*/migrations/**"],
  });
  expect(files.length).toBeGreaterThan(1_000);
  const pattern = new RegExp(`\\b(?:${Object.keys(WORDS).join("|")})\\b`, "gi");
  const found = files.flatMap((file) =>
    [...readFileSync(join(ROOT, file), "utf8").matchAll(pattern)].map(
      ([word]) => `${file}: "${word}": write ${WORDS[word.toLowerCase()]}`,
    ),
  );
  expect(found).toEqual([]);
});
