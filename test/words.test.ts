import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");

/** Words to avoid, and what to write instead: see docs/glossary.md. */
type Words = Readonly<Record<string, string>>;

/** These have no right use in the sources and pages. */
const WORDS: Words = {
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
  placeof: "labelsOf, positionOf or indexOf",
};

/** These hide who acts. */
const ACTORS: Words = {
  whoever: "the caller, the node, the executor or the reader",
  nobody: "no caller, no node, no executor or no reader",
  somebody: "a caller, a node, an executor or a reader",
  anybody: "any caller, node, executor or reader",
  everybody: "every caller, node, executor or reader",
  untold: "not reported",
};

/** In the storage and in the names of tests these stand for something more exact. */
const REPORTS: Words = {
  tell: "notify, signal, report or return",
  tells: "notifies, signals, reports or returns",
  told: "notified, signalled, reported or returned",
};

/** In the code these stand for something more exact, too. */
const PHRASES: Words = {
  "taken in": "submitted, inserted or admitted",
  "handed in": "submitted or inserted",
  "handed out": "claimed, assigned or returned",
  "became of": "the outcome or the result of",
  "become of": "the outcome or the result of",
  "let in": "admitted",
  "lets in": "admits",
  letin: "admit",
};

/** A program gets signals, and receives messages. */
const HEARING: Words = {
  hear: "get the signal, or receive",
  hears: "gets the signal, or receives",
};

/** Columns have these names. In TypeScript they stand for something more exact. */
const COLUMNS: Words = {
  crowded: "manyTenants",
  streak: "consecutiveCritical",
};

const SOURCES = [
  "src/**/*.{ts,sql}",
  "docs/**/*.md",
  "dashboard/src/**/*.{ts,tsx}",
  "clients/**/*.{py,md}",
  "bin/*.js",
  "*.md",
];
/** Migrations that were released are never changed. */
const RELEASED = "src/storage/*/migrations/**";
/** A line that is a comment, or part of one. */
const COMMENT = /^\s*(?:\/\/|\/?\*).*$/gm;
/** The names of tests, which stand at the beginning of a call: `test("…"`, `])("…"`. */
const NAME = /(?:\b(?:test|describe)(?:\.\w+)*|[\])])\(\s*"((?:\\.|[^"\\])*)"/g;

test.each([
  [
    "sources and pages use the words of the glossary, and name who acts",
    { ...WORDS, ...ACTORS },
    SOURCES,
    1_000,
  ],
  [
    "the code says what happened",
    PHRASES,
    ["{src,dashboard/src}/**/*.{ts,tsx,sql}", "bin/*.js", "clients/**/*.py", "examples/**/*.{ts,py,sh}"],
    900,
  ],
  [
    "a program gets signals and receives messages",
    HEARING,
    ["src/**/*.{ts,sql}", "bin/*.js", "clients/**/*.py", "examples/**/*.{ts,py,sh}"],
    800,
  ],
  [
    "the code does not take over the names of old columns",
    COLUMNS,
    [
      "src/*.ts",
      "src/!(storage)/**/*.ts",
      "src/storage/*.ts",
      "src/storage/{sqlite,oracle,conformance}/**/*.ts",
    ],
    1_000,
  ],
  ["the storage says how something is reported", REPORTS, ["src/storage/**/*.{ts,sql}"], 300],
])("%s", (_name, words, pattern, filesMin) => {
  const files = globSync(pattern, { cwd: ROOT, exclude: [RELEASED] });
  expect(files.length).toBeGreaterThan(filesMin);
  expect(files.flatMap((file) => findWords(file, readText(file), words))).toEqual([]);
});

test("names of tests say who acts, and how something is reported", () => {
  const files = globSync(["{src,test,bench,dashboard}/**/*.test.{ts,tsx}", "test/{interface,browser}/*.ts"], {
    cwd: ROOT,
    exclude: ["**/node_modules/**"],
  });
  const names = files.flatMap((file) =>
    [...readText(file).matchAll(NAME)].map(([, name = ""]) => ({ file, name })),
  );
  expect(names.length).toBeGreaterThan(2_000);
  const words = { ...WORDS, ...ACTORS, ...REPORTS, ...PHRASES, ...HEARING, ...COLUMNS };
  expect(names.flatMap(({ file, name }) => findWords(file, name, words))).toEqual([]);
});

test("comments in tests and benchmarks use the words of the glossary, and name who acts", () => {
  const files = globSync("{test,bench,scripts,examples}/**/*.ts", {
    cwd: ROOT,
    exclude: ["**/node_modules/**", "test/words.test.ts"],
  });
  const comments = files.flatMap((file) =>
    [...readText(file).matchAll(COMMENT)].map(([line]) => ({ file, line: line.replaceAll(/`[^`]*`/g, "") })),
  );
  expect(comments.length).toBeGreaterThan(1_000);
  const words = { ...WORDS, ...ACTORS, ...REPORTS, ...PHRASES, ...HEARING, ...COLUMNS };
  expect(comments.flatMap(({ file, line }) => findWords(file, line, words))).toEqual([]);
});

function readText(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

function findWords(file: string, text: string, words: Words): string[] {
  const pattern = new RegExp(`\\b(?:${Object.keys(words).join("|")})\\b`, "gi");
  return [...text.matchAll(pattern)].map(
    ([word]) => `${file}: "${word}": write ${words[word.toLowerCase()]}`,
  );
}
