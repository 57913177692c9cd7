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
  visitor: "caller",
  visitors: "callers",
  surroundings: "dependencies, or the context",
  clerk: "runner",
  eraser: "deleter",
  shaken: "to be rechecked",
};

/** The same outside the storage: words that hide who acts. */
const ACTORS: Readonly<Record<string, string>> = {
  whoever: "the caller, the node, the executor or the reader",
  nobody: "no caller, no node, no executor or no reader",
  somebody: "a caller, a node, an executor or a reader",
  anybody: "any caller, node, executor or reader",
  everybody: "every caller, node, executor or reader",
  untold: "not reported",
};

const SOURCES = ["src/**/*.{ts,sql}", "docs/**/*.md", "dashboard/src/**/*.{ts,tsx}", "*.md"];
/** Migrations that were released are never changed. */
const RELEASED = "src/storage/*/migrations/**";

test.each([
  ["sources and pages use the words of the glossary", WORDS, [RELEASED], 1_000],
  ["sources outside the storage and pages name who acts", ACTORS, ["src/storage/**"], 700],
])("%s", (_name, words, exclude, filesMin) => {
  const files = globSync(SOURCES, { cwd: ROOT, exclude });
  expect(files.length).toBeGreaterThan(filesMin);
  const pattern = new RegExp(`\\b(?:${Object.keys(words).join("|")})\\b`, "gi");
  const found = files.flatMap((file) =>
    [...readFileSync(join(ROOT, file), "utf8").matchAll(pattern)].map(
      ([word]) => `${file}: "${word}": write ${words[word.toLowerCase()]}`,
    ),
  );
  expect(found).toEqual([]);
});
